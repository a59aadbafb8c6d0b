"""Diagonals, cumulative extremes, searches, products and other rare operators, against Paddle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import assert_same, graph_of, run, run_single
from paddle_cases import Case, check, fixed_and_open, parametrize_cases, tensor_method

from lite_core.errors import UnsupportedOperatorError

RNG = np.random.default_rng(12)
X = RNG.standard_normal((2, 3, 4)).astype(np.float32)
Y = RNG.standard_normal((2, 3, 4)).astype(np.float32)
TIED = RNG.integers(-2, 3, (2, 3, 5)).astype(np.float32)
WIDE = np.array([[-1e30, 700, 700, -700], [-np.inf, -np.inf, 0, 90]], np.float32)
SQUARE = RNG.standard_normal((3, 5)).astype(np.float32)
ORDERED = np.sort(RNG.integers(0, 9, (2, 6)), axis=1)
NOT_FINITE = np.array([-np.inf, 0, 1, 3, 3, 5, np.inf, np.nan, np.nan], np.float32)
NOT_FINITE_VALUES = np.array([np.nan, np.inf, -np.inf, 0, 3, 5, 9], np.float32)
ZEROS = np.array([0.0, -0.0, 2, -2], np.float32)
PIR = ("pir",)  # Paddle 3 can no longer export these as legacy files


def binary_method(name: str, *arguments: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda p: lambda x, y: getattr(p, name)(x, y, *arguments, **options)


CASES = [
    *fixed_and_open("diagonal", tensor_method("diagonal", axis1=1, axis2=2), X),
    *fixed_and_open("diagonal_above", tensor_method("diagonal", 1, axis1=-1, axis2=0), X),
    *fixed_and_open("diagonal_below", tensor_method("diagonal", -1), X),
    *fixed_and_open("diagonal_outside", tensor_method("diagonal", 7), X),
    *fixed_and_open("trace", tensor_method("trace", 1, 0, 2), X),
    *fixed_and_open("diag_vector", tensor_method("diag", 0, 3.0), X[0, 0]),
    *fixed_and_open("diag_vector_below", tensor_method("diag", -2), X[0, 0]),
    *fixed_and_open("diag_matrix", tensor_method("diag", 1), SQUARE),
    *fixed_and_open("diag_embed", tensor_method("diag_embed"), X),
    *fixed_and_open("diag_embed_axes", tensor_method("diag_embed", -1, 0, 2), X),
    *fixed_and_open("cummax", tensor_method("cummax", 2), TIED, kinds=PIR),
    *fixed_and_open("cummin", tensor_method("cummin", 1), TIED, kinds=PIR),
    Case("cummax_integers", tensor_method("cummax", 0, "int32"), [TIED.astype(np.int64)], kinds=PIR),
    *fixed_and_open("logcumsumexp", tensor_method("logcumsumexp", 1), X),
    Case("logcumsumexp_wide", tensor_method("logcumsumexp", 1), [WIDE]),
    Case("logcumsumexp_flat", tensor_method("logcumsumexp"), [X]),
    *fixed_and_open("masked_fill", lambda p: lambda x, y: p.masked_fill(x, y > 0, -1e9), X, Y[0]),
    *fixed_and_open("repeat_interleave", tensor_method("repeat_interleave", 3, 1), X),
    *fixed_and_open("repeat_interleave_flat", tensor_method("repeat_interleave", 2), X),
    *fixed_and_open("repeat_interleave_numbers", binary_method("repeat_interleave", 1), X, np.array([2, 0, 3])),
    *fixed_and_open("searchsorted", binary_method("searchsorted"), ORDERED[0], RNG.integers(-1, 10, (2, 4))),
    *fixed_and_open("searchsorted_not_finite", binary_method("searchsorted"), NOT_FINITE, NOT_FINITE_VALUES),
    *fixed_and_open(
        "searchsorted_not_finite_right", binary_method("searchsorted", right=True), NOT_FINITE, NOT_FINITE_VALUES
    ),
    Case("searchsorted_empty", binary_method("searchsorted"), [NOT_FINITE[:0], NOT_FINITE_VALUES]),
    Case("searchsorted_many", binary_method("searchsorted"), [np.sort(RNG.random(1000)), RNG.random(50)]),
    *fixed_and_open(
        "searchsorted_rows", binary_method("searchsorted", out_int32=True, right=True), ORDERED, ORDERED[:, 1:4]
    ),
    *fixed_and_open("bucketize", lambda p: lambda x, y: p.bucketize(y, x), ORDERED[0], RNG.integers(-1, 10, (2, 4))),
    *fixed_and_open("index_add", lambda p: lambda x, y: p.index_add(x, p.to_tensor([2, 0, 2]), 2, y), X, Y[:, :, :3]),
    *fixed_and_open("kron", binary_method("kron"), SQUARE, X),
    Case("cross", binary_method("cross", 1), [X, Y]),
    Case("cross_open", binary_method("cross", 1), [X, Y], shapes=[(None, 3, None)] * 2),
    Case("cross_first_of_three", binary_method("cross"), [X, Y]),
    *fixed_and_open("copysign", binary_method("copysign"), np.tile(ZEROS, (4, 1)), np.tile(ZEROS[:, None], (1, 4))),
    Case("baddbmm", lambda p: lambda x, y: p.baddbmm(p.ones([2, 3, 3]), x, y.transpose([0, 2, 1]), 0.5, 2.0), [X, Y]),
]


@parametrize_cases(CASES)
def test_matches_paddle(case: Case, kind: str, paddle_models: Callable[[str], Path]) -> None:
    check(case, paddle_models(kind), kind)


# **** old files, made by hand ****

LABELS = np.array([[0, 1, 1, 0, 1, 2], [4, 4, 0, 4, 5, 5], [0, 0, 0, 0, 0, 0]])
LENGTHS = np.array([[6], [4], [3]])


@pytest.mark.parametrize("shape", [(3, 6), (-1, -1)])
@pytest.mark.parametrize("merge", [False, True])
def test_ctc_align(merge: bool, shape: tuple[int, int]) -> None:
    slots, attrs = ("Output", "OutputLength"), {"blank": 0, "merge_repeated": merge, "padding_value": -7}
    inputs = {"Input": LABELS, "InputLength": LENGTHS}
    found, counts = run("ctc_align", inputs, attrs, outputs=slots, shapes={"Input": shape})
    if merge:
        assert_same(found, np.array([[1, 1, 2, -7, -7, -7], [4, 4, -7, -7, -7, -7], [-7] * 6]))
        assert_same(counts, np.array([[3], [2], [0]]))
    else:
        assert_same(found, np.array([[1, 1, 1, 2, -7, -7], [4, 4, 4, -7, -7, -7], [-7] * 6]))
        assert_same(counts, np.array([[4], [3], [0]]))


def test_trace_of_an_old_model_is_a_vector() -> None:
    assert_same(run_single("trace", {"Input": SQUARE}, version=2_004_000), np.trace(SQUARE)[None])


@pytest.mark.parametrize(
    ("op_type", "inputs", "attrs", "message"),
    [
        ("diagonal", {"Input": X}, {"axis1": 1, "axis2": -2}, "both 1"),
        ("diag_embed", {"Input": X}, {"dim1": 1, "dim2": -3}, "both 1"),
        ("diag_v2", {"X": X}, {}, "rank 3, expected 1 or 2"),
        ("cross", {"X": X[:, :2], "Y": X[:, :2]}, {}, "names no axis"),
        ("cross", {"X": X, "Y": X}, {"dim": 5}, "axis 5 is out of range"),
        ("repeat_interleave", {"X": X}, {"Repeats": 0, "dim": 1}, "repeats 0 times"),
        ("logcumsumexp", {"X": np.float32(1)}, {"exclusive": True}, "exclusive total of a scalar"),
    ],
)
def test_impossible_attributes_are_refused(
    op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises(UnsupportedOperatorError, match=message):
        graph_of(op_type, inputs, attrs)
