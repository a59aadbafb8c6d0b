"""Quantization of weights: stored elements, constants that do not change, and accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lite_core import ops
from lite_core.builder import GraphBuilder
from lite_core.errors import InputError
from lite_core.ir import DType, Graph, Value
from lite_core.ops.evaluate import evaluate_graph
from lite_core.ops.infer import infer_graph
from lite_core.passes import optimize
from lite_tools.checking import optimize_checked
from lite_tools.quantization import QuantizationResult, compare_outputs, quantize_weights

Array = np.ndarray[Any, Any]
SCHEMES = ("int8", "float16")
#: The largest rounding error of a weight, as a share of the largest element of its channel.
STEP = {"int8": 0.5 / 127, "float16": 2.0**-11}

random = np.random.default_rng(11)


def weights(b: GraphBuilder, *shape: int, dtype: str = "float32", name: str = "w", size: float = 1.0) -> Value:
    return b.constant(size * random.standard_normal(shape), name, dtype)


def quantized(graph: Graph, scheme: str) -> QuantizationResult:
    """Quantize a graph, and check the result.

    The new graph is valid, its types are those of inference, its outputs are close to those of the original, and the
    original is not changed.
    """
    text = str(graph)
    result = quantize_weights(graph, scheme)
    ops.verify(result.graph)
    assert str(graph) == text
    again = result.graph.copy()
    infer_graph(again)
    assert [str(scope) for scope in again.walk()] == [str(scope) for scope in result.graph.walk()]
    assert [v.name for v in result.graph.outputs] == [v.name for v in graph.outputs]
    for accuracy in compare_outputs(graph, result.graph):
        assert accuracy.max_difference < 0.05
    assert result.bytes_after <= result.bytes_before
    return result


def widening_nodes(result: QuantizationResult, scheme: str) -> int:
    return result.graph.op_counts().get({"int8": "DequantizeLinear", "float16": "Cast"}[scheme], 0)


def layer(op: str) -> tuple[Graph, int]:
    """Return a graph of one layer, and the axis of its weights' output channels."""
    b = GraphBuilder(op)
    image, matrix = (lambda: b.input("x", "float32", [2, 8, 9, 9])), (lambda: b.input("x", "float32", [3, 40]))
    axis = 0
    if op == "Conv":
        y = b.add("Conv", [image(), weights(b, 16, 8, 3, 3), weights(b, 16, name="c")])
    elif op == "ConvTranspose":
        y, axis = b.add("ConvTranspose", [image(), weights(b, 8, 16, 3, 3)]), 1
    elif op == "ConvTranspose of groups":
        y = b.add("ConvTranspose", [image(), weights(b, 8, 16, 3, 3)], {"group": 4})
    elif op == "MatMul":
        y, axis = b.add("MatMul", [matrix(), weights(b, 40, 30)]), 1
    elif op == "MatMul from the left":
        y = b.add("MatMul", [weights(b, 30, 40), b.input("x", "float32", [40, 3])])
    elif op == "Gemm":
        y, axis = b.add("Gemm", [matrix(), weights(b, 40, 30)]), 1
    elif op == "Gemm transposed":
        y = b.add("Gemm", [matrix(), weights(b, 30, 40), weights(b, 30, name="c")], {"transB": 1})
    else:
        raise ValueError(op)
    b.output(y, "y")
    return b.build(), axis


LAYERS = ("Conv", "ConvTranspose", "ConvTranspose of groups", "MatMul", "MatMul from the left", "Gemm")


@pytest.mark.parametrize("op", [*LAYERS, "Gemm transposed"])
def test_int8_has_a_scale_for_each_output_channel(op: str) -> None:
    graph, axis = layer(op)
    result = quantized(graph, "int8")
    (node,) = (n for n in result.graph.nodes if n.op == "DequantizeLinear")
    stored, scales = (result.graph.constants[v] for v in node.inputs if v is not None)
    assert stored.dtype == np.int8
    assert node.attributes["axis"] == axis
    weight = next(a for v, a in graph.constants.items() if v.name == "w")
    others = tuple(d for d in range(weight.ndim) if d != axis)
    np.testing.assert_array_equal(scales, np.abs(weight).max(axis=others) / np.float32(127))
    assert np.abs(stored).max(axis=others).min() == 127
    (record,) = result.weights
    assert (record.name, record.op, record.dtype) == ("w", op.split()[0], DType.FLOAT32)
    assert record.bytes_after == weight.size + scales.nbytes
    assert record.max_error <= 0.501 * scales.max()
    assert 0 < record.relative_rms_error < 0.02


@pytest.mark.parametrize("op", LAYERS)
def test_float16_stores_the_rounded_weight(op: str) -> None:
    graph, _ = layer(op)
    result = quantized(graph, "float16")
    (node,) = (n for n in result.graph.nodes if n.op == "Cast")
    assert node.inputs[0] is not None
    weight = next(a for v, a in graph.constants.items() if v.name == "w")
    np.testing.assert_array_equal(result.graph.constants[node.inputs[0]], weight.astype(np.float16))
    assert result.weights[0].bytes_after == weight.nbytes // 2


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("op", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_layers(scheme: str, op: str, gates: int) -> None:
    b = GraphBuilder(op)
    x, hidden = b.input("x", "float32", [5, 2, 24]), 40
    w, r = weights(b, 2, gates * hidden, 24), weights(b, 2, gates * hidden, hidden, name="r", size=0.1)
    b.output(b.add(op, [x, w, r], {"hidden_size": hidden, "direction": "bidirectional"}), "y")
    result = quantized(b.build(), scheme)
    assert [r.name for r in result.weights] == ["w", "r"]
    assert widening_nodes(result, scheme) == 2


@pytest.mark.parametrize("scheme", SCHEMES)
def test_rows_of_a_table_are_widened_after_the_gather(scheme: str) -> None:
    b = GraphBuilder("embedding")
    indices = b.input("i", "int64", [2, 3])
    b.output(b.add("Gather", [weights(b, 100, 16), indices]), "y")
    graph = b.build()
    result = quantized(graph, scheme)
    gather, widen = result.graph.nodes
    assert gather.op == "Gather"
    assert [v.name for v in widen.outputs if v] == ["y"]
    table = evaluate_graph(result.graph, [np.arange(100)])[0]
    largest = np.abs(table).max()
    assert np.abs(table - graph.constants[graph.nodes[0].inputs[0]]).max() <= largest * STEP[scheme]  # type: ignore[index]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_shared_weight_is_stored_once(scheme: str) -> None:
    b = GraphBuilder("tied")
    table = weights(b, 60, 30)
    x = b.add("Gather", [table, b.input("i", "int64", [4])])
    b.output(b.add("MatMul", [b.add("MatMul", [x, weights(b, 30, 60, name="w2")]), table]), "y")
    result = quantized(b.build(), scheme)
    assert widening_nodes(result, scheme) == 2
    assert {r.name: r.op for r in result.weights} == {"w": "Gather, MatMul", "w2": "MatMul"}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_weights_in_bodies_of_if(scheme: str) -> None:
    b = GraphBuilder("branches")
    x, condition, outer = b.input("x", "float32", [2, 40]), b.input("c", "bool", []), weights(b, 40, 40, name="outer")
    branches = {}
    for name in ("then_branch", "else_branch"):
        inner = GraphBuilder(name, outer=b)
        y = inner.add("MatMul", [inner.add("MatMul", [x, outer]), weights(inner, 40, 40, name=f"w_{name}")])
        inner.output(y, f"y_{name}")
        branches[name] = inner.build()
    b.output(b.add("If", [condition], branches), "y")
    result = quantized(b.build(), scheme)
    assert [r.name for r in result.weights] == ["outer", "w_then_branch", "w_else_branch"]
    assert [n.op for n in result.graph.nodes][-1] == "If"
    assert widening_nodes(result, scheme) == 3
    assert not any(a.dtype == np.float32 and a.size >= 1024 for g in result.graph.walk() for a in g.constants.values())


def test_int8_does_not_change_constants_that_are_not_weights() -> None:
    b = GraphBuilder("others")
    x = b.input("x", "float32", [40, 40])
    mask, both, small = (
        weights(b, 40, 40, name="mask"),
        weights(b, 40, 40, name="both"),
        weights(b, 40, 20, name="small"),
    )
    y = b.add("MatMul", [b.add("Add", [b.add("Mul", [x, mask]), both]), both])
    b.output(b.add("MatMul", [y, small]), "y")
    b.output(weights(b, 40, 40, name="result"))
    result = quantized(b.build(), "int8")
    (record,) = result.weights
    assert record.name == "both"
    assert "Add" in record.kept
    assert result.bytes_after == result.bytes_before


@pytest.mark.parametrize("scheme", SCHEMES)
def test_unsuitable_weights_are_kept_with_a_reason(scheme: str) -> None:
    b = GraphBuilder("extremes")
    x = b.input("x", "float32", [2, 64])
    huge, tiny, nan = (random.standard_normal((64, 64)).astype(np.float32) for _ in range(3))
    huge[0, 0] = 1e6
    tiny *= 1e-7
    nan[1, 1] = np.nan
    for name, array in {"huge": huge, "tiny": tiny, "nan": nan}.items():
        b.output(b.add("MatMul", [x, b.constant(array, name)]), f"y_{name}")
    graph = b.build()
    kept = {r.name: r.kept for r in quantize_weights(graph, scheme).weights if r.kept}
    if scheme == "float16":
        assert list(kept) == ["huge", "tiny"]
        assert "1e+06" in kept["huge"]
    else:
        assert list(kept) == ["nan"]


def test_weight_with_an_outlier_is_kept_by_int8() -> None:
    b = GraphBuilder("outlier")
    array = np.full((20000, 1), 0.45, np.float32)  # less than half a step, and together most of the power
    array[0] = 127
    b.output(b.add("MatMul", [b.input("x", "float32", [2, 20000]), b.constant(array, "w")]), "y")
    (record,) = quantize_weights(b.build(), "int8").weights
    assert record.kept
    assert record.bytes_after == record.bytes_before


def test_scale_of_a_channel_of_zeros_is_1() -> None:
    b = GraphBuilder("zeros")
    array = random.standard_normal((16, 8, 3, 3)).astype(np.float32)
    array[3] = 0
    b.output(b.add("Conv", [b.input("x", "float32", [1, 8, 5, 5]), b.constant(array, "w")]), "y")
    result = quantized(b.build(), "int8")
    scales = next(a for v, a in result.graph.constants.items() if v.name == "w.scale")
    assert scales[3] == 1
    assert np.isfinite(scales).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_floats(dtype: str) -> None:
    b = GraphBuilder(dtype)
    b.output(b.add("MatMul", [b.input("x", dtype, [2, 40]), weights(b, 40, 40, dtype=dtype)]), "y")
    graph = b.build()
    int8, float16 = quantized(graph, "int8"), quantized(graph, "float16")
    if dtype == "float64":
        assert "float64" in int8.weights[0].kept
        assert float16.bytes_after * 4 == float16.bytes_before
    else:
        assert int8.bytes_after == 1600 + 40 * 2
        assert not float16.weights
    assert all(v.dtype == dtype for v in int8.graph.outputs)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("first", SCHEMES)
def test_quantized_graph_does_not_change(first: str, scheme: str) -> None:
    once = quantized(layer("MatMul")[0], first).graph
    twice = quantize_weights(once, scheme)
    assert str(twice.graph) == str(once)
    assert not twice.weights


@pytest.mark.parametrize("scheme", SCHEMES)
def test_passes_keep_quantized_weights(scheme: str) -> None:
    graph, _ = layer("Conv")
    result = quantized(optimize(graph)[0], scheme)
    again, _ = optimize_checked(result.graph)
    assert sum(a.nbytes for a in again.constants.values()) == result.bytes_after
    assert widening_nodes(result, scheme) == 1


def test_error_for_an_unknown_scheme_lists_the_schemes() -> None:
    with pytest.raises(InputError, match=r"'int2'.* float16, int8, int4"):
        quantize_weights(layer("Conv")[0], "int2")


# **** accuracy ****


def scores(scale: float) -> Graph:
    b = GraphBuilder("scores")
    x = b.input("x", "float32", ["n", 4])
    b.output(b.add("Mul", [x, b.constant(np.array([1, 1, 1, scale], np.float32))]), "y")
    return b.build()


def test_accuracy_with_one_wrong_element() -> None:
    data = [{"x": np.array([[0, 1, 2, 4], [4, 0, 0, 0]], np.float32)}]
    (accuracy,) = compare_outputs(scores(1), scores(0.25), data)
    assert accuracy.name == "y"
    assert accuracy.max_difference == 3 / 4
    assert accuracy.snr_db == pytest.approx(10 * np.log10((1 + 4 + 16 + 16) / 9))
    assert accuracy.top1_agreement == 0.5


def test_equal_outputs_have_an_infinite_signal_to_noise_ratio() -> None:
    (accuracy,) = compare_outputs(scores(1), scores(1), samples=3)
    assert (accuracy.max_difference, accuracy.snr_db, accuracy.top1_agreement) == (0, np.inf, 1)


def test_outputs_that_are_not_finite_or_of_another_shape() -> None:
    (accuracy,) = compare_outputs(scores(1), scores(np.nan))
    assert (accuracy.max_difference, accuracy.snr_db) == (np.inf, -np.inf)
    results = iter([np.zeros((2, 3), np.float32), np.zeros((1, 3), np.float32)])
    (accuracy,) = compare_outputs(scores(1), scores(1), make_run=lambda graph: lambda inputs: {"y": next(results)})
    assert (accuracy.max_difference, accuracy.top1_agreement) == (np.inf, None)


def test_only_graphs_with_the_same_outputs_are_compared() -> None:
    b = GraphBuilder("other")
    b.output(b.add("Relu", [b.input("x", "float32", [1, 4])]), "z")
    with pytest.raises(InputError, match="y and z"):
        compare_outputs(scores(1), b.build())
