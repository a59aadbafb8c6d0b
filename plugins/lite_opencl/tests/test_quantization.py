"""Quantized operators: tiles of exact sums, and a reduction over all elements."""

from __future__ import annotations

import numpy as np
import pytest
from opencl_agreement import agree, single_node
from opencl_device import run
from tiers import in_part

from lite_core.ops.evaluate import evaluate_graph

RANDOM = np.random.default_rng(0)


def numbers(dtype: str, *shape: int) -> np.ndarray:
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max, shape, endpoint=True, dtype=dtype)


@pytest.mark.parametrize("kind", in_part("opencl", ["CPU", "GPU"], ["CPU"]))
@pytest.mark.parametrize("constants", in_part("opencl", [0, 3], [3]))
def test_integer_products_are_exact(kind: str, constants: int) -> None:
    arrays = [numbers("uint8", 2, 9, 70), numbers("int8", 70, 33), numbers("uint8"), numbers("int8", 33)]
    agree(kind, "MatMulInteger", arrays, constants=constants)


@pytest.mark.parametrize("count", [1, 255, 256, 1000])
def test_dynamic_quantization_uses_all_elements(count: int) -> None:
    x = RANDOM.permutation(np.arange(count, dtype=np.float32) - 100)
    graph = single_node("DynamicQuantizeLinear", [x], {}, outputs=3)
    for actual, expected in zip(run(graph, [x]), evaluate_graph(graph, [x])):
        np.testing.assert_array_equal(actual, expected)
