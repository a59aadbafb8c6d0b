"""Softmax, LogSoftmax and Hardmax: vectors along and across rows, layouts, and extreme numbers."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import MACHINES, agree, normal

from lite_cpu.machine import Machine

EPSILON = 2.0**-23
OPERATORS = pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])


@MACHINES
@OPERATORS
@pytest.mark.parametrize(("shape", "axis"), [((2, 700), 1), ((7, 83), 0)], ids=["along", "across"])
def test_rows_with_a_partial_vector(machine: Machine, op: str, shape: tuple[int, ...], axis: int) -> None:
    agree(machine, op, [normal(*shape) * 4], {"axis": axis}, tolerance=16 * EPSILON, threads=2)


@MACHINES
def test_along_the_channels_of_a_channels_last_image(machine: Machine) -> None:
    agree(machine, "Softmax", [normal(2, 21, 5, 7)], {"axis": 1}, channels_last=True, tolerance=16 * EPSILON)


@MACHINES
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [0, 1])
def test_exponents_neither_overflow_nor_vanish(machine: Machine, op: str, axis: int) -> None:
    x = normal(19, 19) * 100 + np.float32(1000)
    x[3, 4:] = -np.inf  # like an attention mask
    agree(machine, op, [x], {"axis": axis}, tolerance=16 * EPSILON)


@MACHINES
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_nan_stays_in_its_row(machine: Machine, op: str) -> None:
    x = normal(4, 37)
    x[1, 36], x[2] = np.nan, -np.inf
    agree(machine, op, [x], tolerance=16 * EPSILON)
