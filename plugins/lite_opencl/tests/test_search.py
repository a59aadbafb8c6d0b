"""ArgMax, ArgMin, Hardmax and TopK: the kernels of GPUs, NaN and integers beyond float64."""

from __future__ import annotations

import numpy as np
import pytest
from opencl_agreement import KINDS, agree, normal, single_node, steps_of

AXES = pytest.mark.parametrize(
    ("shape", "axis", "dtype"),
    [((5, 83), 1, "float32"), ((5, 83), 1, "int64"), ((2, 33, 7, 5), 1, "float32"), ((83, 37), 0, "uint8")],
)


def _with_ties(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 6, shape).astype(dtype)


@pytest.mark.full("opencl")
@AXES
@pytest.mark.parametrize("last", [0, 1])
def test_arg_extremes_on_gpus(shape: tuple[int, ...], axis: int, dtype: str, last: int) -> None:
    x = _with_ties(shape, dtype)
    agree("GPU", "ArgMax", [x], {"axis": axis, "select_last_index": last})
    agree("GPU", "ArgMin", [x], {"axis": axis, "select_last_index": last, "keepdims": 0})


@pytest.mark.full("opencl")
@KINDS
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize(("axis", "last"), [(0, 0), (1, 1)])
def test_nan_is_the_most_extreme_number(kind: str, op: str, axis: int, last: int) -> None:
    x = normal(20, 41)
    x[4, 7] = x[4, 30] = x[15, 7] = np.nan
    x[9], x[10, 3] = -np.inf, np.inf
    agree(kind, op, [x], {"axis": axis, "select_last_index": last})


@pytest.mark.full("opencl")
@KINDS
def test_integers_beyond_float64_precision(kind: str) -> None:
    x = np.full((3, 70), 2**62)
    x[0, 50] += 1
    x[1, 60] -= 1
    agree(kind, "ArgMax", [x], {"axis": 1})
    agree(kind, "ArgMin", [x], {"axis": 1})
    agree(kind, "TopK", [x, np.array([3])], constants=1, outputs=2)


@pytest.mark.full("opencl")
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_hardmax_on_gpus(axis: int) -> None:
    agree("GPU", "Hardmax", [_with_ties((4, 9, 35), "float32")], {"axis": axis})


@pytest.mark.full("opencl")
@AXES
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k_on_gpus(shape: tuple[int, ...], axis: int, dtype: str, largest: int) -> None:
    x = _with_ties(shape, dtype)
    for count in {1, shape[axis] // 2, shape[axis]}:
        k = np.array([count], np.int64)
        agree("GPU", "TopK", [x, k], {"axis": axis, "largest": largest}, constants=1, outputs=2)


@pytest.mark.full("opencl")
@KINDS
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k_treats_nan_as_largest(kind: str, largest: int) -> None:
    x = normal(3, 50)
    x[0, 7] = x[0, 40] = x[1, 0] = np.nan
    agree(kind, "TopK", [x, np.array([50], np.int64)], {"largest": largest}, constants=1, outputs=2)


def test_top_k_counts_ranks_on_gpus_in_short_rows() -> None:
    def steps(kind: str, columns: int) -> list[str]:
        return steps_of(kind, single_node("TopK", [normal(1, columns), np.array([2])], {}, constants=1, outputs=2))

    assert (steps("CPU", 50), steps("GPU", 50)) == (["top_k_by_heap"], ["top_k_by_rank"])
    assert steps("GPU", 10_000) == ["top_k_by_heap"]
