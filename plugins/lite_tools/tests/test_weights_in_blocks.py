"""Weights as int4 in blocks: accuracy, the form of the graph, and the weights that stay wider."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.errors import InputError
from lite_core.ir import DType, Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_tools.quantization import quantize_weights
from lite_tools.quantization.blocks import store_int4
from lite_tools.quantization.schemes import Stored, Unsuitable

Array = np.ndarray[Any, Any]


def normal(*shape: int) -> Array:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def network() -> Graph:
    """Return a table of embeddings, a convolution, and products of all forms."""
    b = GraphBuilder("network")
    x = b.add("Gather", [b.constant(normal(100, 64), "table"), b.input("x", "int64", [2, 9])])
    x = b.add("MatMul", [x, b.constant(normal(64, 72), "right")])
    b.output(b.add("MatMul", [b.constant(normal(20, 72), "left"), b.add("Transpose", [x], {"perm": (0, 2, 1)})]), "y")
    flat = b.add("Reshape", [x, b.ints(18, 72)])
    b.output(b.add("Gemm", [flat, b.constant(normal(40, 72), "transposed")], {"transB": 1}), "z")
    return b.build()


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("depth", [64, 72])
def test_blocks_along_the_depth(axis: int, depth: int) -> None:
    weight = normal(depth, 40) if axis == 0 else normal(40, depth)
    stored = store_int4(weight, axis, 32)
    assert isinstance(stored, Stored)
    assert stored.scales is not None
    assert stored.scales.shape[axis] == -(-depth // 32)
    scales = np.repeat(stored.scales, 32, axis).take(range(depth), axis)
    np.testing.assert_array_equal(stored.restored, stored.array.astype(np.float32) * scales)
    # No rounding to one of 16 numbers of normally distributed blocks is far better than a tenth.
    assert np.sqrt(np.square(stored.restored - weight).mean()) < 0.1
    # The largest element of a block is at most limited by a fifth.
    assert np.abs(stored.restored - weight).max() < 0.2 * np.abs(weight).max()
    np.testing.assert_array_equal(stored.scales, stored.scales.astype(np.float16).astype(np.float32))


def test_blocks_of_zeros_and_of_tiny_numbers() -> None:
    weight = normal(64, 32)
    weight[:32], weight[32:, :16] = 0, weight[32:, :16] * np.float32(1e-12)
    stored = store_int4(weight, 0, 32)
    assert isinstance(stored, Stored)
    assert not stored.restored[:32].any()
    np.testing.assert_allclose(stored.restored[32:, :16], weight[32:, :16], atol=5e-13)


def test_unsuitable_matrices_say_why() -> None:
    not_finite, outliers = normal(64, 32), np.full((64, 32), 0.1, np.float32)
    not_finite[3, 3], outliers[::32] = np.inf, 1.5
    for weight, reason in ((not_finite, "finite"), (outliers, "int4 would have"), (normal(64, 32) + 0.0, "")):
        stored = store_int4(weight.astype(np.float64) if not reason else weight, 0, 32)
        assert isinstance(stored, Unsuitable)
        assert reason in stored.reason


def test_only_right_operands_of_products_become_int4() -> None:
    graph = network()
    result = quantize_weights(graph, "int4")
    types = {w.name: w.stored_as for w in result.weights}
    assert types == {"table": "int8", "left": "int8", "right": "int4", "transposed": "int4"}
    widening = [n for n in result.graph.nodes if n.op == "DequantizeLinear"]
    attributes = {v.name: dict(n.attributes) for n in widening for v in n.outputs if v is not None}
    assert attributes["right"] == {"axis": 0, "block_size": 32}
    assert attributes["transposed"] == {"axis": 1, "block_size": 32}
    assert result.bytes_after < 0.25 * result.bytes_before
    x = [np.arange(18).reshape(2, 9)]
    for before, after in zip(evaluate_graph(graph, x), evaluate_graph(result.graph, x)):
        assert np.abs(before - after).max() < 0.15 * np.abs(before).max()


def test_larger_blocks_are_smaller_and_less_exact() -> None:
    small, large = (quantize_weights(network(), "int4", block=n).weights[1] for n in (16, 64))
    assert small.name == large.name == "right"
    assert small.bytes_after > large.bytes_after
    assert small.relative_rms_error < large.relative_rms_error


def test_named_weights_are_kept() -> None:
    result = quantize_weights(network(), "int4", keep=["*t", "tab??"])
    kept = {w.name for w in result.weights if w.kept}
    assert kept == {"right", "left", "table"}
    assert {v.name: v.dtype for v in result.graph.constants}["right"] is DType.FLOAT32


def test_errors_name_the_argument() -> None:
    with pytest.raises(InputError, match="multiple of 16.*24"):
        quantize_weights(network(), "int4", block=24)
    with pytest.raises(InputError, match="'nothing'"):
        quantize_weights(network(), "int4", keep=["nothing"])
