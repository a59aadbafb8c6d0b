"""Pools over windows: unrolled and large windows, any number of channels, bytes, and special numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import MACHINES, agree, normal, single_node

from lite_cpu.lowering.pooling import refuse_pool
from lite_cpu.machine import Machine

EPSILON = 2.0**-23
#: Windows of 3 x 3 elements with padding.
SQUARE: dict[str, Any] = {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}


@MACHINES
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_windows_too_large_to_unroll(machine: Machine, op: str) -> None:
    attributes = {"kernel_shape": (5, 7), "strides": (3, 2), "pads": (2, 3, 2, 3)}
    agree(machine, op, [normal(2, 21, 9, 11)], attributes, channels_last=True, tolerance=4 * EPSILON, threads=2)


@MACHINES
@pytest.mark.parametrize("channels", [1, 3, 16, 24, 64, 83])
def test_any_number_of_channels(machine: Machine, channels: int) -> None:
    agree(machine, "MaxPool", [normal(1, channels, 7, 8)], SQUARE, channels_last=True)


@MACHINES
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_maxima_of_bytes(machine: Machine, dtype: str) -> None:
    limits = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(limits.min, limits.max, (2, 70, 7, 8), dtype, endpoint=True)
    agree(machine, "MaxPool", [x], SQUARE, channels_last=True)


@MACHINES
def test_nan_and_infinity(machine: Machine) -> None:
    x = normal(1, 20, 9, 9)
    x[0, 3, 4, 4], x[0, 7, 0, 0], x[0, :, 8, :] = np.nan, np.inf, -np.inf
    agree(machine, "MaxPool", [x], SQUARE)
    agree(machine, "AveragePool", [x], SQUARE, tolerance=4 * EPSILON)


def test_refusals_say_why() -> None:
    with_indices = single_node("MaxPool", [normal(1, 1, 4, 4)], {"kernel_shape": (2, 2)}, outputs=2).nodes[0]
    volume = single_node("MaxPool", [normal(1, 1, 4, 4, 4)], {"kernel_shape": (2, 2, 2)}).nodes[0]
    cubic = single_node("LpPool", [normal(1, 1, 4, 4)], {"kernel_shape": (2, 2), "p": 3}).nodes[0]
    assert "indices" in str(refuse_pool(with_indices))
    assert "3 spatial" in str(refuse_pool(volume))
    assert "p=3" in str(refuse_pool(cubic))
