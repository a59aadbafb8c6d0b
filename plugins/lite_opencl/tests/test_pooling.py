"""Pools that compute lines with vectors, ties and NaN; the conformance suite tests pools of single pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opencl_agreement import KINDS, agree, normal, single_node, steps_of
from tiers import in_part

from lite_opencl.lowering.pooling import refuse_pool

EPSILON = 2.0**-23
WINDOWS: dict[str, dict[str, Any]] = {
    "3x3,stride 2": {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)},
    "2x2,stride 2": {"kernel_shape": (2, 2), "strides": (2, 2)},
    "3x3,stride 1": {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)},
    "pads differ": {"kernel_shape": (2, 3), "strides": (1, 2), "pads": (0, 1, 1, 2)},
    "dilated": {"kernel_shape": (3, 3), "dilations": (2, 3), "pads": (1, 1, 1, 1)},
    "large": {"kernel_shape": (5, 7), "strides": (3, 3), "pads": (2, 3, 2, 3)},
    "ceil": {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1), "ceil_mode": 1},
    "same": {"kernel_shape": (2, 4), "strides": (2, 1), "auto_pad": "SAME_LOWER"},
}


@pytest.mark.parametrize("op", in_part("opencl", ["MaxPool", "AveragePool", "LpPool"], ["MaxPool"]))
@pytest.mark.parametrize("window", in_part("opencl", WINDOWS, ["3x3,stride 2"]))
def test_lines(op: str, window: str) -> None:
    agree("CPU", op, [normal(2, 3, 9, 51)], WINDOWS[window], tolerance=4 * EPSILON)


@pytest.mark.parametrize("op", in_part("opencl", ["MaxPool", "AveragePool"], ["AveragePool"]))
def test_pixels(op: str) -> None:
    agree("GPU", op, [normal(2, 3, 9, 51)], WINDOWS["pads differ"], tolerance=4 * EPSILON)


@pytest.mark.full("opencl")
@pytest.mark.parametrize("window", ["pads differ", "ceil", "large", "3x3,stride 1"])
def test_padding_included_in_averages_of_lines(window: str) -> None:
    attributes = {**WINDOWS[window], "count_include_pad": 1}
    agree("CPU", "AveragePool", [normal(1, 3, 10, 37)], attributes, tolerance=4 * EPSILON)


@pytest.mark.full("opencl")
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_lines_in_one_and_three_dimensions(op: str) -> None:
    agree("CPU", op, [normal(2, 5, 33)], {"kernel_shape": (3,), "strides": (2,), "pads": (1, 1)}, tolerance=4 * EPSILON)
    volume = {"kernel_shape": (2, 3, 3), "strides": (1, 2, 2), "pads": (1, 0, 1, 0, 1, 1), "ceil_mode": 1}
    agree("CPU", op, [normal(2, 3, 4, 7, 19)], volume, tolerance=4 * EPSILON)


@pytest.mark.full("opencl")
@pytest.mark.parametrize("p", [1, 3])
def test_other_norms_of_lines(p: int) -> None:
    agree("CPU", "LpPool", [normal(1, 3, 8, 21)], {**WINDOWS["3x3,stride 1"], "p": p}, tolerance=32 * EPSILON)


@pytest.mark.full("opencl")
@pytest.mark.parametrize("order", [0, 1])
def test_index_of_the_first_of_equal_maxima(order: int) -> None:
    x = np.random.default_rng(0).integers(0, 5, (2, 3, 9, 11)).astype(np.float32)
    agree("CPU", "MaxPool", [x], {**WINDOWS["3x3,stride 2"], "storage_order": order}, outputs=2)


@pytest.mark.full("opencl")
@KINDS
def test_nan_and_infinity(kind: str) -> None:
    x = normal(1, 20, 9, 19)
    x[0, 3, 4, 4], x[0, 7, 0, 0], x[0, :, 8, :] = np.nan, np.inf, -np.inf
    agree(kind, "MaxPool", [x], WINDOWS["3x3,stride 2"])
    agree(kind, "AveragePool", [x], WINDOWS["3x3,stride 2"], tolerance=4 * EPSILON)


def test_processors_pool_long_lines_by_vectors() -> None:
    def steps(kind: str, width: int) -> list[str]:
        return steps_of(kind, single_node("MaxPool", [normal(1, 2, 8, width)], WINDOWS["2x2,stride 2"]))

    assert (steps("CPU", 16), steps("CPU", 14), steps("GPU", 16)) == (["pool_lines"], ["pool"], ["pool"])


@pytest.mark.full("opencl")
def test_unpooling_keeps_the_last_element_of_an_index() -> None:
    indices = np.random.default_rng(0).integers(0, 40, (1, 1, 200))
    attributes = {"kernel_shape": (1,), "strides": (1,)}
    agree("CPU", "MaxUnpool", [normal(1, 1, 200), indices], attributes)


def test_pools_with_four_spatial_dimensions_are_refused() -> None:
    node = single_node("MaxPool", [normal(1, 1, 4, 4, 4, 4)], {"kernel_shape": (2, 2, 2, 2)}).nodes[0]
    assert refuse_pool(node) is not None
