"""Pools over windows: every geometry, kind and element type against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import MACHINES, agree, normal, single_node

from lite_cpu.lowering.pooling import refuse_pool
from lite_cpu.machine import Machine

EPSILON = 2.0**-23
WINDOWS: dict[str, dict[str, Any]] = {
    "3x3,stride 2": {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)},
    "2x2,stride 2": {"kernel_shape": (2, 2), "strides": (2, 2)},
    "pads differ": {"kernel_shape": (2, 3), "strides": (1, 2), "pads": (0, 1, 1, 2)},
    "dilated": {"kernel_shape": (3, 3), "dilations": (2, 1), "pads": (1, 1, 1, 1)},
    "large": {"kernel_shape": (5, 7), "strides": (3, 2), "pads": (2, 3, 2, 3)},
    "ceil": {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1), "ceil_mode": 1},
    "same": {"kernel_shape": (2, 4), "strides": (2, 1), "auto_pad": "SAME_LOWER"},
}


@MACHINES
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("window", WINDOWS)
def test_geometries(machine: Machine, op: str, window: str) -> None:
    attributes = WINDOWS[window]
    agree(machine, op, [normal(2, 21, 9, 11)], attributes, channels_last=True, tolerance=4 * EPSILON, threads=2)


@MACHINES
@pytest.mark.parametrize("channels", [1, 3, 16, 24, 64, 83])
@pytest.mark.parametrize("channels_last", [False, True])
def test_any_number_of_channels(machine: Machine, channels: int, channels_last: bool) -> None:
    attributes = WINDOWS["3x3,stride 2"]
    agree(machine, "MaxPool", [normal(1, channels, 7, 8)], attributes, channels_last=channels_last)


@MACHINES
@pytest.mark.parametrize("window", ["pads differ", "ceil", "large"])
def test_padding_that_counts(machine: Machine, window: str) -> None:
    attributes = {**WINDOWS[window], "count_include_pad": 1}
    agree(machine, "AveragePool", [normal(1, 9, 10, 13)], attributes, tolerance=4 * EPSILON)


@MACHINES
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("channels", [3, 70])
def test_maxima_of_bytes(machine: Machine, dtype: str, channels: int) -> None:
    limits = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(limits.min, limits.max, (2, channels, 7, 8), dtype, endpoint=True)
    agree(machine, "MaxPool", [x], WINDOWS["3x3,stride 2"], channels_last=True)


@MACHINES
def test_nan_and_infinity(machine: Machine) -> None:
    x = normal(1, 20, 9, 9)
    x[0, 3, 4, 4], x[0, 7, 0, 0], x[0, :, 8, :] = np.nan, np.inf, -np.inf
    agree(machine, "MaxPool", [x], WINDOWS["3x3,stride 2"])
    agree(machine, "AveragePool", [x], WINDOWS["3x3,stride 2"], tolerance=4 * EPSILON)


@MACHINES
def test_one_dimension(machine: Machine) -> None:
    attributes = {"kernel_shape": (3,), "strides": (2,), "pads": (1, 1)}
    agree(machine, "MaxPool", [normal(2, 5, 33)], attributes)


@MACHINES
def test_empty_batch(machine: Machine) -> None:
    agree(machine, "AveragePool", [normal(0, 5, 8, 8)], WINDOWS["2x2,stride 2"])


def test_refusals_say_why() -> None:
    with_indices = single_node("MaxPool", [normal(1, 1, 4, 4)], {"kernel_shape": (2, 2)}, outputs=2).nodes[0]
    volume = single_node("MaxPool", [normal(1, 1, 4, 4, 4)], {"kernel_shape": (2, 2, 2)}).nodes[0]
    cubic = single_node("LpPool", [normal(1, 1, 4, 4)], {"kernel_shape": (2, 2), "p": 3}).nodes[0]
    assert "indices" in str(refuse_pool(with_indices))
    assert "3 spatial" in str(refuse_pool(volume))
    assert "p=3" in str(refuse_pool(cubic))
