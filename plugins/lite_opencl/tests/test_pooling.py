"""Pools over windows: every geometry, kind and element type, as for both kinds of devices, and the way back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opencl_agreement import KINDS, agree, normal, single_node, steps_of

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


@KINDS
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("window", WINDOWS)
def test_geometries(kind: str, op: str, window: str) -> None:
    agree(kind, op, [normal(2, 3, 9, 51)], WINDOWS[window], tolerance=4 * EPSILON)


@KINDS
@pytest.mark.parametrize("window", ["pads differ", "ceil", "large", "3x3,stride 1"])
def test_padding_that_counts(kind: str, window: str) -> None:
    attributes = {**WINDOWS[window], "count_include_pad": 1}
    agree(kind, "AveragePool", [normal(1, 3, 10, 37)], attributes, tolerance=4 * EPSILON)


@KINDS
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_one_and_three_dimensions(kind: str, op: str) -> None:
    agree(kind, op, [normal(2, 5, 33)], {"kernel_shape": (3,), "strides": (2,), "pads": (1, 1)}, tolerance=4 * EPSILON)
    volume = {"kernel_shape": (2, 3, 3), "strides": (1, 2, 2), "pads": (1, 0, 1, 0, 1, 1), "ceil_mode": 1}
    agree(kind, op, [normal(2, 3, 4, 7, 19)], volume, tolerance=4 * EPSILON)


@KINDS
@pytest.mark.parametrize("p", [1, 3])
def test_other_norms(kind: str, p: int) -> None:
    agree(kind, "LpPool", [normal(1, 3, 8, 21)], {**WINDOWS["3x3,stride 1"], "p": p}, tolerance=32 * EPSILON)
    agree(kind, "GlobalLpPool", [normal(1, 3, 8, 21)], {"p": p}, tolerance=32 * EPSILON)


@KINDS
@pytest.mark.parametrize("window", ["3x3,stride 2", "dilated", "ceil"])
@pytest.mark.parametrize("order", [0, 1])
def test_indices_of_maxima(kind: str, window: str, order: int) -> None:
    x = np.random.default_rng(0).integers(0, 5, (2, 3, 9, 11)).astype(np.float32)
    agree(kind, "MaxPool", [x], {**WINDOWS[window], "storage_order": order}, outputs=2)


@KINDS
@pytest.mark.parametrize("dtype", ["int8", "uint8", "float64"])
def test_maxima_of_other_types(kind: str, dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 120, (2, 3, 7, 18)).astype(dtype)
    agree(kind, "MaxPool", [x], WINDOWS["3x3,stride 2"])


@KINDS
def test_nan_and_infinity(kind: str) -> None:
    x = normal(1, 20, 9, 19)
    x[0, 3, 4, 4], x[0, 7, 0, 0], x[0, :, 8, :] = np.nan, np.inf, -np.inf
    agree(kind, "MaxPool", [x], WINDOWS["3x3,stride 2"])
    agree(kind, "AveragePool", [x], WINDOWS["3x3,stride 2"], tolerance=4 * EPSILON)


@KINDS
def test_empty_batch(kind: str) -> None:
    agree(kind, "AveragePool", [normal(0, 5, 8, 8)], WINDOWS["2x2,stride 2"])


def test_processors_take_lines_that_are_long_enough() -> None:
    def steps(kind: str, width: int) -> list[str]:
        return steps_of(kind, single_node("MaxPool", [normal(1, 2, 8, width)], WINDOWS["2x2,stride 2"]))

    assert (steps("CPU", 16), steps("CPU", 14), steps("GPU", 16)) == (["pool_lines"], ["pool"], ["pool"])


@KINDS
def test_unpooling_puts_maxima_back(kind: str) -> None:
    x, attributes = normal(2, 3, 2, 5), {"kernel_shape": (2, 2), "strides": (2, 2)}
    indices = np.random.default_rng(0).permutation(2 * 3 * 4 * 10)[: x.size].reshape(x.shape)
    agree(kind, "MaxUnpool", [x, indices], attributes, tolerance=EPSILON)
    agree(kind, "MaxUnpool", [x, indices, np.array([2, 3, 6, 11])], attributes, constants=1, tolerance=EPSILON)


@KINDS
def test_of_elements_with_one_index_the_last_stays(kind: str) -> None:
    indices = np.random.default_rng(0).integers(0, 40, (1, 1, 200))
    attributes = {"kernel_shape": (1,), "strides": (1,)}
    agree(kind, "MaxUnpool", [normal(1, 1, 200), indices], attributes)


def test_refusals_say_why() -> None:
    node = single_node("MaxPool", [normal(1, 1, 4, 4, 4, 4)], {"kernel_shape": (2, 2, 2, 2)}).nodes[0]
    assert "4 spatial" in str(refuse_pool(node))
