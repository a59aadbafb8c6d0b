"""ArgMax, ArgMin, TopK and CumSum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import MACHINES, agree, normal

from lite_cpu.machine import Machine

Array = np.ndarray[Any, Any]
PLACES = pytest.mark.parametrize(
    ("shape", "axis", "dtype"),
    [((5, 83), 1, "float32"), ((5, 83), 1, "int64"), ((2, 33, 7, 5), 1, "float32"), ((83, 37), 0, "int32")],
)


def _with_ties(shape: tuple[int, ...], dtype: str) -> Array:
    return np.random.default_rng(0).integers(0, 6, shape).astype(dtype)


@MACHINES
@PLACES
@pytest.mark.parametrize("last", [0, 1])
def test_arg_extremes(machine: Machine, shape: tuple[int, ...], axis: int, dtype: str, last: int) -> None:
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
@PLACES
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k(machine: Machine, shape: tuple[int, ...], axis: int, dtype: str, largest: int) -> None:
    x = _with_ties(shape, dtype)
    for count in {0, 1, shape[axis] // 2, shape[axis]}:
        k = np.array([count], np.int64)
        agree(machine, "TopK", [x, k], {"axis": axis, "largest": largest}, constants=1, outputs=2)


@MACHINES
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k_takes_nan_for_the_largest(machine: Machine, largest: int) -> None:
    x = normal(3, 50)
    x[0, 7] = x[0, 40] = x[1, 0] = np.nan
    agree(machine, "TopK", [x, np.array([50], np.int64)], {"largest": largest}, constants=1, outputs=2)


@MACHINES
@PLACES
@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (0, 1), (1, 1)])
def test_running_sums(
    machine: Machine, shape: tuple[int, ...], axis: int, dtype: str, exclusive: int, reverse: int
) -> None:
    x = normal(*shape) if dtype == "float32" else _with_ties(shape, dtype)
    attributes = {"exclusive": exclusive, "reverse": reverse}
    agree(machine, "CumSum", [x, np.array(axis)], attributes, constants=1, tolerance=2.0**-23)


@MACHINES
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_running_sums_along_an_axis_that_the_model_computes(machine: Machine, axis: int) -> None:
    agree(machine, "CumSum", [_with_ties((4, 19), "int32"), np.array(axis)])
