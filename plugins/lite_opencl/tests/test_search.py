"""ArgMax, ArgMin, Hardmax and TopK, as for both kinds of devices."""

from __future__ import annotations

import numpy as np
import pytest
from opencl_agreement import KINDS, agree, normal, single_node, steps_of

PLACES = pytest.mark.parametrize(
    ("shape", "axis", "dtype"),
    [((5, 83), 1, "float32"), ((5, 83), 1, "int64"), ((2, 33, 7, 5), 1, "float32"), ((83, 37), 0, "uint8")],
)


def _with_ties(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 6, shape).astype(dtype)


@KINDS
@PLACES
@pytest.mark.parametrize("last", [0, 1])
def test_arg_extremes(kind: str, shape: tuple[int, ...], axis: int, dtype: str, last: int) -> None:
    x = _with_ties(shape, dtype)
    agree(kind, "ArgMax", [x], {"axis": axis, "select_last_index": last})
    agree(kind, "ArgMin", [x], {"axis": axis, "select_last_index": last, "keepdims": 0})


@KINDS
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
def test_nan_is_the_most_extreme(kind: str, op: str, axis: int, last: int) -> None:
    x = normal(20, 41)
    x[4, 7] = x[4, 30] = x[15, 7] = np.nan
    x[9], x[10, 3] = -np.inf, np.inf
    agree(kind, op, [x], {"axis": axis, "select_last_index": last})


@KINDS
def test_integers_that_float64_does_not_tell_apart(kind: str) -> None:
    x = np.full((3, 70), 2**62)
    x[0, 50] += 1
    x[1, 60] -= 1
    agree(kind, "ArgMax", [x], {"axis": 1})
    agree(kind, "ArgMin", [x], {"axis": 1})
    agree(kind, "TopK", [x, np.array([3])], constants=1, outputs=2)


@KINDS
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_hardmax(kind: str, axis: int) -> None:
    agree(kind, "Hardmax", [_with_ties((4, 9, 35), "float32")], {"axis": axis})


@KINDS
@PLACES
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k(kind: str, shape: tuple[int, ...], axis: int, dtype: str, largest: int) -> None:
    x = _with_ties(shape, dtype)
    for count in {0, 1, shape[axis] // 2, shape[axis]}:
        k = np.array([count], np.int64)
        agree(kind, "TopK", [x, k], {"axis": axis, "largest": largest}, constants=1, outputs=2)


@KINDS
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k_takes_nan_for_the_largest(kind: str, largest: int) -> None:
    x = normal(3, 50)
    x[0, 7] = x[0, 40] = x[1, 0] = np.nan
    agree(kind, "TopK", [x, np.array([50], np.int64)], {"largest": largest}, constants=1, outputs=2)


def test_gpus_count_ranks_in_rows_that_are_short_enough() -> None:
    def steps(kind: str, columns: int) -> list[str]:
        return steps_of(kind, single_node("TopK", [normal(1, columns), np.array([2])], {}, constants=1, outputs=2))

    assert (steps("CPU", 50), steps("GPU", 50)) == (["top_k_by_heap"], ["top_k_by_rank"])
    assert steps("GPU", 10_000) == ["top_k_by_heap"]
