"""Damaged and hostile models end in an error of Lite's, in bounded time and memory."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from damage import damaged
from onnx import TensorProto, helper

import lite_core as lite
from lite_core.errors import LiteError, ModelFormatError, UnsupportedOperatorError

_DATA = Path(onnx.__file__).parent / "backend/test/data"
#: Of ONNX's data: graphs in nodes, sequences, optionals, recurrent networks, quantization, and convolutions.
_CASES = [
    *(
        f"node/test_{name}"
        for name in ("if", "if_seq", "loop11", "loop13_seq", "scan9_sum", "sequence_map_add_2_sequences")
    ),
    *(
        f"node/test_{name}"
        for name in ("lstm_with_peepholes", "qlinearconv", "resize_tf_crop_and_resize", "einsum_inner_prod")
    ),
    *(f"node/test_{name}" for name in ("constantofshape_int_zeros", "range_float_type_positive_delta_expanded")),
    "pytorch-converted/test_Conv2d_groups",
    "pytorch-operator/test_operator_conv",
]
_SEEDS_OF_EACH = 20
#: A load takes milliseconds. What hangs is ended after this many seconds.
_MOST_SECONDS = 60


class _HangsError(BaseException):
    """A load took too long. Not an Exception, so that nothing takes it for one of a damaged model's."""


@contextmanager
def _limits() -> Iterator[None]:
    """A time limit, and one of memory where the system has it, for what is done inside."""
    resource = pytest.importorskip("resource", reason="the limits are those of Unix")

    def end(signal_: int, frame: Any) -> None:
        raise _HangsError(f"more than {_MOST_SECONDS} seconds")

    status = Path("/proc/self/statm")
    used = int(status.read_text().split()[0]) * resource.getpagesize() if status.exists() else 0
    before = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, _MOST_SECONDS)
    if used:
        resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30), before[1]))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def _load(content: bytes | onnx.ModelProto, folder: Path) -> lite.Session:
    path = folder / "model.onnx"
    path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
    with _limits():
        return lite.load(path, backend="host")


def _refused(content: bytes | onnx.ModelProto, folder: Path) -> str:
    """Why a model is refused."""
    with pytest.raises(LiteError) as caught:
        _load(content, folder)
    assert isinstance(caught.value, (ModelFormatError, UnsupportedOperatorError)), repr(caught.value)
    return str(caught.value)


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[str] = ("x",),
    outputs: Sequence[str] = ("y",),
    initializers: Sequence[onnx.TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """A model of vectors of two elements."""
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in inputs]
    made = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(nodes, "hostile", given, made, initializers)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=10)


def _function(name: str, nodes: Sequence[onnx.NodeProto]) -> onnx.FunctionProto:
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, ["x"], ["y"], nodes, opsets)


def _call(name: str, x: str = "x", y: str = "y") -> onnx.NodeProto:
    return helper.make_node(name, [x], [y], domain="own")


def _with_functions() -> bytes:
    """A model with functions in functions, and a branch in one of them."""
    condition = helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", TensorProto.BOOL, [], [True]))
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(op, ["x"], ["z"])], name, [], [onnx.ValueInfoProto(name="z")]
        )
        for name, op in (("then", "Relu"), ("else", "Neg"))
    }
    inner = _function("inner", [condition, helper.make_node("If", ["c"], ["y"], **branches)])
    outer = _function("outer", [_call("inner", y="a"), helper.make_node("Selu", ["a"], ["y"], alpha=0.5)])
    return bytes(_model([_call("outer", y="b"), _call("inner", "b")], functions=[inner, outer]).SerializeToString())


# **** any damage ****


@pytest.mark.parametrize("case", [*_CASES, "functions"])
def test_only_errors_of_lite_come_out(case: str, tmp_path: Path) -> None:
    if case != "functions" and not (_DATA / case).exists():
        pytest.skip("this version of the package onnx is without the data")
    content = _with_functions() if case == "functions" else (_DATA / case / "model.onnx").read_bytes()
    errors: dict[int, LiteError] = {}
    for seed in range(_SEEDS_OF_EACH):
        try:
            _load(damaged(content, seed), tmp_path)
        except LiteError as error:
            errors[seed] = error
    assert errors
    # "The reader 'onnx' failed with": what it did not foresee.
    known = (ModelFormatError, UnsupportedOperatorError)
    assert {s: e for s, e in errors.items() if not isinstance(e, known) or "the reader 'onnx'" in str(e)} == {}


def test_every_beginning_of_a_file(tmp_path: Path) -> None:
    content = _with_functions()
    for length in range(0, len(content), 7):
        _refused(content[:length], tmp_path)


# **** what asks for much ****


def test_functions_that_double(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lite_onnx.lowering.graphs._MOST_NODES", 1000)
    twice = [_function(f"f{i}", [_call(f"f{i + 1}", "x", "a"), _call(f"f{i + 1}", "a")]) for i in range(40)]
    last = _function("f40", [_call("f41", "x", "a")])
    functions = [*twice, last, _function("f41", [helper.make_node("Relu", ["x"], ["y"])])]
    functions[-2] = _function("f40", [_call("f41")])
    assert "more than 1000 nodes" in _refused(_model([_call("f5")], functions=functions), tmp_path)
    assert "too deep" in _refused(_model([_call("f0")], functions=functions), tmp_path)


def test_constants_that_functions_copy(tmp_path: Path) -> None:
    large = onnx.numpy_helper.from_array(np.zeros(1 << 20, np.float32))
    nodes = [
        helper.make_node("Constant", [], ["c"], value=large),
        helper.make_node("ReduceSum", ["c"], ["sum"], keepdims=0),
        helper.make_node("Add", ["x", "sum"], ["y"]),
    ]
    twice = [_function(f"f{i}", [_call(f"f{i + 1}", "x", "a"), _call(f"f{i + 1}", "a")]) for i in range(12)]
    model = _model([_call("f0")], functions=[*twice, _function("f12", nodes)])
    assert "copies of constants" in _refused(model, tmp_path)


def test_functions_that_call_themselves(tmp_path: Path) -> None:
    functions = [_function("a", [_call("b")]), _function("b", [_call("a")])]
    assert "the function 'a' calls itself" in _refused(_model([_call("a")], functions=functions), tmp_path)


@pytest.mark.parametrize("depth", [8, 30])
def test_loops_in_loops(depth: int, tmp_path: Path) -> None:
    body, kinds = None, {"i": TensorProto.INT64, "c": TensorProto.BOOL, "v": TensorProto.FLOAT}
    for level in range(depth):
        last = f"y{level - 1}" if body is not None else "x"
        nodes = [] if body is None else [helper.make_node("Loop", ["m", "", "x"], [last], body=body)]
        nodes += [helper.make_node("Identity", [f"c{level}"], [f"d{level}"])]
        nodes += [helper.make_node("Concat", [last, f"v{level}"], [f"w{level}"], axis=0)]
        given = [helper.make_tensor_value_info(f"{name}{level}", kind, None) for name, kind in kinds.items()]
        made = [onnx.ValueInfoProto(name=f"{name}{level}") for name in "dw"]
        body = helper.make_graph(nodes, f"body{level}", given, made)
    model = _model([helper.make_node("Loop", ["m", "", "x"], ["y"], body=body)], ("x",))
    model.graph.input.append(helper.make_tensor_value_info("m", TensorProto.INT64, []))
    if depth == 8:
        assert list(_load(model, tmp_path).outputs) == ["y"]
    else:
        assert "too deep" in _refused(model, tmp_path)


def test_what_is_large_is_not_folded(tmp_path: Path) -> None:
    def integers(name: str, *elements: int, rank: int = 1) -> onnx.TensorProto:
        return helper.make_tensor(name, TensorProto.INT64, [len(elements)] if rank else [], elements)

    one = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
    huge = 1 << 40
    for node, constants in [
        (helper.make_node("ConstantOfShape", ["s"], ["y"]), [integers("s", huge, huge)]),
        (helper.make_node("Expand", ["one", "s"], ["y"]), [one, integers("s", huge)]),
        (helper.make_node("Tile", ["one", "s"], ["y"]), [one, integers("s", huge)]),
        (helper.make_node("Pad", ["one", "s"], ["y"]), [one, integers("s", 0, huge)]),
        (
            helper.make_node("Range", ["a", "b", "c"], ["y"]),
            [integers("a", 0, rank=0), integers("b", huge, rank=0), integers("c", 1, rank=0)],
        ),
    ]:
        session = _load(_model([node], (), initializers=constants), tmp_path)
        assert session.outputs["y"].size >= huge, node.op_type


def test_a_constant_that_is_doubled_again_and_again(tmp_path: Path) -> None:
    nodes = [helper.make_node("Concat", [f"a{i}", f"a{i}"], [f"a{i + 1}"], axis=0) for i in range(50)]
    session = _load(_model(nodes, (), ["a50"], [helper.make_tensor("a0", TensorProto.FLOAT, [1], [1.0])]), tmp_path)
    assert session.outputs["a50"].shape == (1 << 50,)


def test_shape_arithmetic_without_end(tmp_path: Path) -> None:
    shape = helper.make_node("Shape", ["x"], ["a0"])
    squares = [helper.make_node("Mul", [f"a{i}", f"a{i}"], [f"a{i + 1}"]) for i in range(40)]
    model = _model([shape, *squares, helper.make_node("ConstantOfShape", ["a40"], ["y"])])
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    assert len(str(_load(model, tmp_path).outputs["y"])) < 10_000
    doubled = [helper.make_node("Concat", [f"a{i}", f"a{i}"], [f"a{i + 1}"], axis=0) for i in range(30)]
    model = _model([shape, *doubled, helper.make_node("ConstantOfShape", ["a30"], ["y"])])
    assert "at most 64 dimensions" in _refused(model, tmp_path)


@pytest.mark.parametrize("dims", [[1 << 40], [-1], [1 << 62, 1 << 62, 0], [1] * 100, [3]])
def test_initializers_of_impossible_sizes(dims: list[int], tmp_path: Path) -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, raw_data=b"\0" * 8)
    message = _refused(_model([helper.make_node("Add", ["x", "w"], ["y"])], initializers=[tensor]), tmp_path)
    assert "w: it " in message


def test_sparse_tensors_are_not_written_out_without_limit(tmp_path: Path) -> None:
    model = _model([helper.make_node("Add", ["x", "w"], ["y"])])
    values, indices = np.ones(1, np.float32), np.zeros(1, np.int64)
    sparse = model.graph.sparse_initializer.add(dims=[1 << 40])
    sparse.values.CopyFrom(onnx.numpy_helper.from_array(values, "w"))
    sparse.indices.CopyFrom(onnx.numpy_helper.from_array(indices, "indices"))
    assert "too large to write out" in _refused(model, tmp_path)
    sparse.dims[:] = [2]
    np.testing.assert_array_equal(_load(model, tmp_path).run(x=np.zeros(2, np.float32))["y"], [1, 0])


def test_many_nodes_of_one_name(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", [f"a{i}"], [f"a{i + 1}"], name="same") for i in range(5000)]
    session = _load(_model(nodes, ["a0"], ["a5000"]), tmp_path)
    assert len(session.graph.nodes) == 5000


def test_cycles(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "b"], ["a"], name="first"), helper.make_node("Relu", ["a"], ["b"])]
    assert "node 'first' is part of a cycle" in _refused(_model(nodes, outputs=["b"]), tmp_path)


def test_a_signal_of_any_length(tmp_path: Path) -> None:
    numbers = {"step": 1, "length": 1 << 40}
    constants = [helper.make_tensor(name, TensorProto.INT64, [], [number]) for name, number in numbers.items()]
    model = _model([helper.make_node("STFT", ["x", "step", "", "length"], ["y"])], initializers=constants)
    assert "frames of 1099511627776 elements" in _refused(model, tmp_path)
