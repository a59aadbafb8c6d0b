"""Quantized operators: exact sums, scales of every granularity."""

from __future__ import annotations

import numpy as np
import pytest
from opencl_agreement import KINDS, agree, normal, single_node
from opencl_device import run

from lite_core.ops.evaluate import evaluate_graph

RANDOM = np.random.default_rng(0)


def numbers(dtype: str, *shape: int) -> np.ndarray:
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max, shape, endpoint=True, dtype=dtype)


def same(op: str, arrays: list[np.ndarray], attributes: dict[str, int], outputs: int = 1) -> None:
    """Fail unless results are those of the reference, bit by bit: these operators have none in float64."""
    graph = single_node(op, arrays, attributes, outputs=outputs)
    for actual, expected in zip(run(graph, arrays), evaluate_graph(graph, arrays)):
        np.testing.assert_array_equal(actual, expected)


@KINDS
@pytest.mark.parametrize("types", [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8")])
@pytest.mark.parametrize("constants", [0, 3])
def test_sums_are_exact(kind: str, types: tuple[str, str], constants: int) -> None:
    arrays = [numbers(types[0], 2, 9, 70), numbers(types[1], 70, 33)]
    arrays += [numbers(types[0]), numbers(types[1], 33)]
    agree(kind, "MatMulInteger", arrays, constants=constants)


@pytest.mark.parametrize(
    ("scale", "axis", "block_size"), [((), 1, 0), ((5,), 1, 0), ((4,), -2, 0), ((4, 3, 6), 1, 2), ((2, 5, 6), 0, 3)]
)
@pytest.mark.parametrize("dtype", ["uint8", "int16"])
def test_granularities(scale: tuple[int, ...], axis: int, block_size: int, dtype: str) -> None:
    shape = (4, 6) if scale == (4,) else (4, 5, 6)
    attributes = {"axis": axis, "block_size": block_size}
    # Powers of two: no quotient lies so near to a half that its last bit decides.
    factor = np.asarray(2.0 ** RANDOM.integers(-3, 3, scale), np.float32)
    point = np.asarray(RANDOM.integers(0, 9, scale), dtype)
    x = np.round(normal(*shape) * 64) / 8
    same("QuantizeLinear", [x, factor, point], attributes)
    same("DequantizeLinear", [numbers(dtype, *shape), factor, point], attributes)


@pytest.mark.parametrize("count", [1, 255, 256, 1000])
def test_the_range_of_every_element_counts(count: int) -> None:
    x = np.arange(count, dtype=np.float32) - 100
    same("DynamicQuantizeLinear", [RANDOM.permutation(x)], {}, outputs=3)
