"""Decoders as exporters write them: their operators are recognised, and the results are those of ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from runtime_models import run_by_onnxruntime

import lite_core as lite
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Value
from lite_core.ops.evaluate import evaluate_graph
from lite_core.session import make_ready

Array = np.ndarray[Any, Any]


def ops_of(graph: Graph) -> list[str]:
    return [node.qualified_op for node in make_ready(graph).graph.nodes]


def assert_unchanged(graph: Graph, *arrays: Array) -> None:
    """Check that the passes preserve the results."""
    expected = evaluate_graph(graph.copy(), arrays)
    for result, wanted in zip(evaluate_graph(make_ready(graph).graph, arrays), expected):
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)


# **** RMS normalization ****


def rms(b: GraphBuilder, x: Value, kind: str) -> Value:
    square = b.add("Mul", [x, x]) if kind == "Reciprocal" else b.add("Pow", [x, b.constant(2.0, dtype="float32")])
    mean = b.add("ReduceMean", [square, b.ints(-1)], {"keepdims": 1})
    root = b.add("Sqrt", [b.add("Add", [mean, b.constant(1e-5, dtype="float32")])])
    if kind == "Quotient":
        return b.add("Div", [x, root])
    inverse = b.add("Reciprocal", [root]) if kind == "Reciprocal" else None
    return b.add("Mul", [x, inverse or b.add("Div", [b.constant(1.0, dtype="float32"), root])])


@pytest.mark.parametrize("kind", ["Div", "Quotient", "Reciprocal"])
def test_rms_normalization(kind: str) -> None:
    b = GraphBuilder("rms")
    x = b.input("x", "float32", ["n", 8])
    b.output(b.add("Mul", [b.constant(np.arange(8, dtype=np.float32)), rms(b, x, kind)]), "y")
    assert ops_of(b.graph.copy()) == ["RMSNormalization"]
    assert_unchanged(b.build(), np.random.default_rng(0).standard_normal((3, 8), np.float32))


def test_a_mean_over_another_axis_is_no_rms_normalization() -> None:
    b = GraphBuilder("rms")
    x = b.input("x", "float32", [8, 8])
    mean = b.add("ReduceMean", [b.add("Mul", [x, x]), b.ints(0)], {"keepdims": 1})
    root = b.add("Sqrt", [b.add("Add", [mean, b.constant(1e-5, dtype="float32")])])
    b.output(b.add("Mul", [b.add("Div", [x, root]), b.constant(np.ones(8, np.float32))]), "y")
    assert "RMSNormalization" not in ops_of(b.build())


# **** attention ****


@pytest.mark.parametrize("scaled", ["scores", "query and keys"])
@pytest.mark.parametrize("with_mask", [False, True])
def test_attention_of_groups(scaled: str, with_mask: bool) -> None:
    b = GraphBuilder("attention")
    q = b.input("q", "float32", ["b", 4, "s", 8])
    k, v = (b.input(name, "float32", ["b", 2, "t", 8]) for name in "kv")
    arrays = [
        np.random.default_rng(i).standard_normal(s, np.float32)
        for i, s in enumerate([(2, 4, 3, 8)] + [(2, 2, 5, 8)] * 2)
    ]

    def repeated(x: Value) -> Value:
        sizes = [b.add("Shape", [x], {"start": a, "end": a + 1}) for a in (0, 2)]
        wide = b.add("Concat", [sizes[0], b.ints(2, 2), sizes[1], b.ints(8)], {"axis": 0})
        shape = b.add("Concat", [sizes[0], b.ints(4), sizes[1], b.ints(8)], {"axis": 0})
        return b.add("Reshape", [b.add("Expand", [b.add("Unsqueeze", [x, b.ints(2)]), wide]), shape])

    turned = b.add("Transpose", [repeated(k)], {"perm": (0, 1, 3, 2)})
    root = b.constant(0.6, dtype="float32")
    if scaled == "scores":
        scores = b.add("Mul", [b.add("MatMul", [q, turned]), root])
    else:
        scores = b.add("MatMul", [b.add("Mul", [q, root]), b.add("Mul", [turned, root])])
    if with_mask:
        scores = b.add("Add", [scores, b.input("mask", "float32", [1, 1, "s", "t"])])
        arrays.append(np.random.default_rng(9).standard_normal((1, 1, 3, 5), np.float32))
    b.output(b.add("MatMul", [b.add("Softmax", [scores], {"axis": -1}), repeated(v)]), "y")
    assert ops_of(b.graph.copy()) == ["Attention"]
    assert_unchanged(b.build(), *arrays)


def test_attention_without_groups_or_a_cache_stays_as_it_is() -> None:
    b = GraphBuilder("attention")
    q, k, v = (b.input(name, "float32", [1, 4, 3, 8]) for name in "qkv")
    scores = b.add("MatMul", [q, b.add("Transpose", [k], {"perm": (0, 1, 3, 2)})])
    b.output(b.add("MatMul", [b.add("Softmax", [scores], {"axis": -1}), v]), "y")
    assert "Attention" not in ops_of(b.build())


# **** caches of a declared length ****


def test_equal_lengths_of_past_and_present_are_one_buffer(tmp_path: Path) -> None:
    found = [lite.load(group_query(tmp_path, length), backend="host") for length in ("length", "total")]
    fixed, grown = ({node.op for node in session.graph.nodes} for session in found)
    assert "TensorScatter" in fixed
    assert "TensorScatter" not in grown
    path = group_query(tmp_path, "total")
    option = lite.load(path, backend="host", reader_options={"fixed_caches": True})
    assert "TensorScatter" in {node.op for node in option.graph.nodes}
    rng = np.random.default_rng(0)
    inputs = {n: rng.standard_normal((1, *s), np.float32) for n, s in (("q", (2, 32)), ("k", (2, 16)), ("v", (2, 16)))}
    inputs |= {n: rng.standard_normal((1, 2, 9, 8), np.float32) for n in ("past_k", "past_v")}
    inputs |= {"lengths": np.array([6], np.int32), "total": np.array(9, np.int32)}
    expected = run_by_onnxruntime(onnx.load(path), inputs)
    for name, array in option.run(inputs).items():
        used = slice(0, 7)  # behind the 7 positions in use, ONNX Runtime writes zeros
        np.testing.assert_allclose(array[..., used, :], expected[name][..., used, :], rtol=1e-5, atol=1e-5)


def test_a_cache_that_is_full_is_an_error(tmp_path: Path) -> None:
    session = lite.load(group_query(tmp_path, "length"), backend="host")
    inputs = {n: np.zeros((1, 2, w), np.float32) for n, w in (("q", 32), ("k", 16), ("v", 16))}
    inputs |= {n: np.zeros((1, 2, 9, 8), np.float32) for n in ("past_k", "past_v")}
    with pytest.raises(lite.LiteError, match=r"2 new positions from index 8.*cache of 9"):
        session.run({**inputs, "lengths": np.array([9], np.int32), "total": np.array(10, np.int32)})


def group_query(folder: Path, present: str) -> Path:
    """Write a model of one GroupQueryAttention whose past has the length ``length``, and its present ``present``."""
    from onnx import TensorProto, helper

    def value(name: str, *shape: str | int, dtype: int = TensorProto.FLOAT) -> Any:
        return helper.make_tensor_value_info(name, dtype, shape)

    names = ["q", "k", "v", "past_k", "past_v", "lengths", "total"]
    node = helper.make_node(
        "GroupQueryAttention", names, ["y", "new_k", "new_v"], domain="com.microsoft", num_heads=4, kv_num_heads=2
    )
    inputs = [value("q", 1, 2, 32), *(value(n, 1, 2, 16) for n in "kv")]
    inputs += [value(n, 1, 2, "length", 8) for n in ("past_k", "past_v")]
    inputs += [value("lengths", 1, dtype=TensorProto.INT32), value("total", dtype=TensorProto.INT32)]
    outputs = [value("y", 1, 2, 32), *(value(n, 1, 2, present, 8) for n in ("new_k", "new_v"))]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], "g", inputs, outputs), opset_imports=opsets, ir_version=9)
    path = folder / f"{present}.onnx"
    path.write_bytes(model.SerializeToString())
    return path
