"""ONNX Runtime as a backend: supported nodes, refusals, and results compared with the references."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import lite_core as lite
from lite_core.backend import No, Options, Partition, Unavailable, Yes
from lite_core.builder import GraphBuilder
from lite_core.ir import Attribute, DType, Graph, Node, Value
from lite_core.ops.evaluate import evaluate_graph
from lite_core.plugins import plugins_with
from lite_onnxruntime.backend import OnnxRuntimeBackend, _refusal_by_onnxruntime
from lite_onnxruntime.onnx_models import _onnx_format, onnx_model
from lite_onnxruntime.single_node import single_node

BACKEND = OnnxRuntimeBackend()

Body = Callable[[GraphBuilder], Value]


def classifier() -> Graph:
    b = GraphBuilder("classifier")
    weights = np.linspace(-1, 1, 4 * 3 * 3 * 3, dtype=np.float32).reshape(4, 3, 3, 3)
    x = b.add("Conv", [b.input("x", "float32", ["n", 3, 8, 8]), b.constant(weights)], {"pads": (1, 1, 1, 1)})
    x = b.add("Swish", [x], domain="lite")  # not an operator of ONNX
    b.output(b.add("Softmax", [x], {"axis": 1}), "y")
    return b.build()


def load(graph: Graph, **options: object) -> lite.Session:
    return lite.load(graph, backend="onnxruntime", plugins=plugins_with(BACKEND), **options)


def answer(node: Node) -> Yes | No:
    devices = BACKEND.probe()
    assert not isinstance(devices, Unavailable)
    return BACKEND.supports(node, devices[0])


def nodes(op: str, *shapes: tuple[int, ...], dtype: str = "float32", **attributes: object) -> list[Node]:
    """Return nodes of one operator on inputs of the given shapes."""
    b = GraphBuilder("nodes")
    for number, shape in enumerate(shapes):
        b.output(b.add(op, [b.input(f"x{number}", dtype, shape)], attributes), f"y{number}")  # type: ignore[arg-type]
    return b.build().nodes


def test_results_equal_the_references() -> None:
    graph = classifier()
    session = load(graph, threads=1)
    for batch in (1, 3):
        x = np.random.default_rng(batch).normal(size=(batch, 3, 8, 8)).astype(np.float32)
        (expected,) = evaluate_graph(graph, [x])
        np.testing.assert_allclose(session.run(x=x)["y"], expected, rtol=1e-5, atol=1e-6)


def test_several_threads_run_one_session() -> None:
    graph = classifier()
    session = load(graph, threads=1)
    arrays = [np.full((1, 3, 8, 8), number, np.float32) for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: session.run(x=x)["y"], arrays))
    for x, y in zip(arrays, found):
        np.testing.assert_allclose(y, evaluate_graph(graph, [x])[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "int8", "uint64", "bool"])
def test_types_with_and_without_numpy_support(dtype: str) -> None:
    b = GraphBuilder("types")
    x = b.input("x", dtype, ["n", 3])
    b.output(b.add("Transpose", [b.add("Cast", [x], {"to": DType.FLOAT32})]), "floats")
    b.output(b.add("Cast", [b.add("Cast", [x], {"to": DType.FLOAT32})], {"to": DType(dtype)}), "same")
    session = load(b.build(), fallback="never")
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(DType(dtype).numpy)
    found = session.run(x=array)
    np.testing.assert_array_equal(found["floats"], array.astype(np.float32).T)
    np.testing.assert_array_equal(found["same"], array)


def test_output_shape_that_depends_on_data() -> None:
    b = GraphBuilder("nonzero")
    b.output(b.add("NonZero", [b.input("x", "float32", [2, 3])]), "indices")
    session = load(b.build(), fallback="never")
    for count in (0, 2, 6):
        x = np.zeros(6, np.float32)
        x[:count] = 1
        found = session.run(x=x.reshape(2, 3))["indices"]
        np.testing.assert_array_equal(found, np.stack(np.nonzero(x.reshape(2, 3))))


def test_refusal_contains_the_message_of_onnx_runtime() -> None:
    (node,) = nodes("BitwiseNot", (3,), dtype="int8")
    assert isinstance(answer(node), Yes)
    (node,) = nodes("Sin", (3,), dtype="bfloat16")
    reply = answer(node)
    assert isinstance(reply, No)
    assert "Sin" in reply.reason


def test_operators_of_other_domains_are_refused() -> None:
    reply = answer(classifier().nodes[1])
    assert isinstance(reply, No)
    assert "lite.Swish" in reply.reason


def test_answer_is_cached_for_nodes_that_differ_in_sizes_and_names() -> None:
    first, second, other = nodes("Relu", (2, 3), (4, 5), (6,))
    contents = [onnx_model(single_node(node)) for node in (first, second, other)]
    assert contents[0] == contents[1] != contents[2]
    _refusal_by_onnxruntime.cache_clear()
    for node in (first, second, other):
        assert isinstance(answer(node), Yes)
    assert _refusal_by_onnxruntime.cache_info().misses == 2


def test_supports_does_not_change_the_node() -> None:
    b = GraphBuilder("branches")
    x = b.input("x", "float32", [3])
    bodies = {}
    for name, op in (("then_branch", "Neg"), ("else_branch", "Abs")):
        inner = GraphBuilder(name, outer=b)
        inner.output(inner.add(op, [x]))
        bodies[name] = inner.graph
    b.output(b.add("If", [b.input("flag", "bool", [])], bodies), "y")
    graph = b.build()
    before = str(graph)
    assert isinstance(answer(graph.nodes[0]), Yes)
    assert str(graph) == before
    session = load(graph, fallback="never")
    x_values = np.array([-1, 0, 2], np.float32)
    np.testing.assert_array_equal(session.run(x=x_values, flag=True)["y"], -x_values)


def test_error_in_a_run_names_the_backend() -> None:
    b = GraphBuilder("gather")
    x, index = b.input("x", "float32", [3]), b.input("index", "int64", [1])
    b.output(b.add("Gather", [x, index]), "y")
    session = load(b.build(), fallback="never")
    with pytest.raises(lite.ExecutionError, match="onnxruntime"):
        session.run(x=np.zeros(3, np.float32), index=np.array([7]))


def test_score_is_below_other_backends_and_above_host() -> None:
    devices = BACKEND.probe()
    assert not isinstance(devices, Unavailable)
    (device,) = devices
    assert 0 < device.score < 1
    assert device.details["provider"] == "CPUExecutionProvider"
    assert any("providers" in line for line in BACKEND.report())


def test_unavailable_without_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    missing = BACKEND.probe()
    assert isinstance(missing, Unavailable)
    assert missing.remedy == "pip install onnxruntime"


def test_unavailable_without_lite_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    original = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "lite_onnx" else original(name))
    missing = BACKEND.probe()
    assert isinstance(missing, Unavailable)
    assert missing.remedy == "pip install lite-onnx"


def test_refusal_without_a_plugin_that_writes_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lite_onnxruntime.onnx_models.default_plugins", plugins_with)
    _onnx_format.cache_clear()
    (node,) = nodes("Relu", (3,))
    reply = answer(node)
    _onnx_format.cache_clear()
    assert isinstance(reply, No)
    assert "pip install lite-onnx" in reply.reason


def test_options_reach_the_session() -> None:
    devices = BACKEND.probe()
    assert not isinstance(devices, Unavailable)
    executable = BACKEND.compile(Partition("part", _without_swish()), devices[0], Options(threads=3))
    assert executable._session.get_session_options().intra_op_num_threads == 3  # type: ignore[attr-defined]


def _without_swish() -> Graph:
    b = GraphBuilder("part")
    b.output(b.add("Relu", [b.input("x", "float32", [3])]), "y")
    return b.build()


def if_else(b: GraphBuilder, condition: Value, then: Body, other: Body) -> Value:
    """Add an If whose branches have one output each."""
    graphs: dict[str, Attribute] = {}
    for name, body in (("then_branch", then), ("else_branch", other)):
        branch = GraphBuilder(name, outer=b)
        branch.output(body(branch))
        graphs[name] = branch.build()
    return b.add("If", [condition], graphs)


def test_a_branch_that_does_not_fit_the_sizes_is_not_an_error() -> None:
    """A nested If squeezes an axis only if it has one element."""
    b = GraphBuilder("nested")
    x, wanted = b.input("x", "float32", [1, "n"]), b.input("wanted", "bool", [])

    def squeezed(b: GraphBuilder) -> Value:
        last = b.add("Gather", [b.add("Shape", [x]), b.constant(np.array(1))])
        fits = b.add("Equal", [last, b.constant(np.array(1))])
        return if_else(
            b, fits, lambda b: b.add("Squeeze", [x, b.ints(1)]), lambda b: b.add("ReduceMax", [x, b.ints(0, 1)])
        )

    b.output(if_else(b, wanted, squeezed, lambda b: b.add("Neg", [x])), "y")
    session = load(b.build(), fallback="never")
    for row in ([[3.0]], [[1.0, 2.0]]):
        array = np.array(row, np.float32)
        assert session.run(x=array, wanted=np.array(True))["y"].reshape(-1).tolist() == [max(row[0])]
        assert session.run(x=array, wanted=np.array(False))["y"].tolist() == (-array).tolist()
