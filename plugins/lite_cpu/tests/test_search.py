"""ArgMax, ArgMin, TopK and CumSum: vectors along and across rows, and NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import MACHINES, agree, normal

from lite_cpu.machine import Machine

Array = np.ndarray[Any, Any]


def _with_ties(shape: tuple[int, ...], dtype: str) -> Array:
    return np.random.default_rng(0).integers(0, 6, shape).astype(dtype)


@MACHINES
@pytest.mark.parametrize(
    ("shape", "axis", "dtype"), [((5, 83), 1, "float32"), ((83, 37), 0, "int32")], ids=["along", "across"]
)
@pytest.mark.parametrize("last", [0, 1])
def test_ties_between_the_vectors_of_a_row(
    machine: Machine, shape: tuple[int, ...], axis: int, dtype: str, last: int
) -> None:
    x = _with_ties(shape, dtype)
    agree(machine, "ArgMax", [x], {"axis": axis, "select_last_index": last}, threads=2)
    agree(machine, "ArgMin", [x], {"axis": axis, "select_last_index": last, "keepdims": 0})


@MACHINES
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
def test_nan_is_the_most_extreme(machine: Machine, op: str, axis: int, last: int) -> None:
    x = normal(20, 41)
    x[4, 7] = x[4, 30] = x[15, 7] = np.nan
    x[9], x[10, 3] = -np.inf, np.inf
    agree(machine, op, [x], {"axis": axis, "select_last_index": last})


@MACHINES
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k_takes_nan_for_the_largest(machine: Machine, largest: int) -> None:
    x = normal(3, 50)
    x[0, 7] = x[0, 40] = x[1, 0] = np.nan
    agree(machine, "TopK", [x, np.array([50], np.int64)], {"largest": largest}, constants=1, outputs=2)


@MACHINES
@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (0, 1), (1, 1)])
def test_running_sums_across_rows(machine: Machine, exclusive: int, reverse: int) -> None:
    attributes = {"exclusive": exclusive, "reverse": reverse}
    agree(machine, "CumSum", [normal(7, 83), np.array(0)], attributes, constants=1, tolerance=2.0**-23)
