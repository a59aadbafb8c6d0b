"""Reductions, norms, cumulative sums, sorting and searches, against Paddle and by hand for old files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import run, run_single
from paddle_cases import Case, check, fixed_and_open, parametrize_cases, tensor_method

RNG = np.random.default_rng(2)
X = RNG.standard_normal((2, 3, 4)).astype(np.float32)
POSITIVE = (np.abs(X) + 0.5).astype(np.float32)
INTEGERS = RNG.integers(-5, 5, (3, 4)).astype(np.int32)
TRUTH = X > 0
SCALAR = np.array(2.5, np.float32)
PIR = ("pir",)  # Paddle 3 can no longer export these as legacy files


CASES = [
    *[
        case
        for name in ("sum", "mean", "max", "min", "prod", "amax", "amin", "logsumexp")
        for case in (
            *fixed_and_open(f"{name}_axis", tensor_method(name, 1), POSITIVE, kinds=PIR),
            *fixed_and_open(f"{name}_axes_kept", tensor_method(name, [0, -1], keepdim=True), POSITIVE, kinds=PIR),
            *fixed_and_open(f"{name}_everything", tensor_method(name), POSITIVE, kinds=PIR),
        )
    ],
    *[
        case
        for name in ("mean", "max", "min")
        for case in (
            *fixed_and_open(f"{name}_axis_legacy", tensor_method(name, 1), X, kinds=("legacy",)),
            *fixed_and_open(f"{name}_everything_legacy", tensor_method(name), X, kinds=("legacy",)),
        )
    ],
    *fixed_and_open("sum_int32", tensor_method("sum", 0), INTEGERS, kinds=PIR),
    *fixed_and_open("sum_bool", tensor_method("sum"), TRUTH, kinds=PIR),
    *fixed_and_open("sum_dtype", tensor_method("sum", 0, dtype="float64"), X, kinds=PIR),
    *fixed_and_open("prod_int32", tensor_method("prod", 0), INTEGERS, kinds=PIR),
    *fixed_and_open("max_int32", tensor_method("max", 0), INTEGERS),
    Case("sum_scalar", tensor_method("sum"), [SCALAR], kinds=PIR),
    *fixed_and_open("all_axis", tensor_method("all", 1), TRUTH, kinds=PIR),
    *fixed_and_open("any_everything", tensor_method("any"), TRUTH, kinds=PIR),
    *fixed_and_open("any_int32", lambda p: lambda x: p.any(p.cast(x, "bool"), axis=0), INTEGERS, kinds=PIR),
    *[
        case
        for order in (0, 1, 2, 3.5, float("inf"), float("-inf"))
        for case in (
            *fixed_and_open(f"norm_{order}", tensor_method("norm", order, 1), X, kinds=PIR),
            *fixed_and_open(f"norm_{order}_vector", tensor_method("norm", order), X.reshape(-1), kinds=PIR),
        )
    ],
    *fixed_and_open("norm_fro", tensor_method("norm", "fro", [0, 1], True), X[0], kinds=PIR),
    *fixed_and_open("norm_everything", tensor_method("norm"), X),
    *fixed_and_open("cumsum", tensor_method("cumsum", 1), X),
    *fixed_and_open("cumsum_flat", tensor_method("cumsum"), X),
    *fixed_and_open("cumsum_int32", tensor_method("cumsum", 0), INTEGERS, kinds=PIR),
    *fixed_and_open("cumprod", tensor_method("cumprod", 1), X, kinds=PIR),
    *fixed_and_open("cumprod_last", tensor_method("cumprod", -1), X, kinds=PIR),
    *fixed_and_open("argmax", tensor_method("argmax", 1), X, kinds=PIR),
    *fixed_and_open("argmin_kept", tensor_method("argmin", -1, keepdim=True), X, kinds=PIR),
    *fixed_and_open("argmax_flat", tensor_method("argmax"), X, kinds=PIR),
    *fixed_and_open("argmax_flat_kept", tensor_method("argmax", keepdim=True), X, kinds=PIR),
    *fixed_and_open("argmax_int32", tensor_method("argmax", 0, dtype="int32"), X, kinds=PIR),
    *fixed_and_open("argsort", tensor_method("argsort", 1), X),
    *fixed_and_open("sort_descending", tensor_method("sort", -1, True), X),
    *fixed_and_open("argsort_scalar", tensor_method("argsort"), SCALAR, kinds=PIR),
    *fixed_and_open("topk", lambda p: lambda x: p.topk(x, 2, axis=1), X),
    *fixed_and_open("topk_smallest", lambda p: lambda x: p.topk(x, 3, largest=False), X),
    *fixed_and_open("topk_computed", lambda p: lambda x, y: p.topk(x, p.shape(y)[0]), X, X, kinds=PIR),
    *fixed_and_open("kthvalue", lambda p: lambda x: p.kthvalue(x, 2, axis=1), X, kinds=PIR),
    *fixed_and_open("kthvalue_kept", lambda p: lambda x: p.kthvalue(x, 3, keepdim=True), X, kinds=PIR),
    Case("unique", lambda p: lambda x: p.unique(x, True, True, True), [INTEGERS], kinds=PIR),
    Case("unique_axis", lambda p: lambda x: p.unique(x, True, True, True, axis=0), [INTEGERS], kinds=PIR),
    Case("unique_int32", lambda p: lambda x: p.unique(x, True, dtype="int32"), [INTEGERS], kinds=PIR),
    *fixed_and_open("nonzero", tensor_method("nonzero"), INTEGERS),
]


@parametrize_cases(CASES)
def test_matches_paddle(case: Case, kind: str, paddle_models: Callable[[str], Path]) -> None:
    check(case, paddle_models(kind), kind)


# **** old files, made by hand ****


@pytest.mark.parametrize("op_type", ["reduce_sum", "mean", "logsumexp", "p_norm", "frobenius_norm", "arg_max"])
def test_full_reductions_are_vectors_before_2_5(op_type: str) -> None:
    attrs: dict[str, Any] = {"reduce_all": True}
    if op_type in ("p_norm", "arg_max"):
        attrs = {"asvector": True} if op_type == "p_norm" else {"flatten": True, "axis": 0}
    assert run_single(op_type, {"X": X}, attrs, version=2_004_002).shape == (1,)
    assert run_single(op_type, {"X": X}, attrs, version=2_005_000).shape == ()


def test_reductions_of_the_only_axis_are_vectors_before_2_5() -> None:
    assert run_single("reduce_max", {"X": X[0, 0]}, {"dim": [0]}, version=1_008_005).shape == (1,)


def test_default_axis_is_the_first() -> None:
    np.testing.assert_allclose(run_single("reduce_mean", {"X": X}), X.mean(axis=0), rtol=1e-6)


def test_old_sums_of_int32_stay_int32() -> None:
    assert run_single("reduce_sum", {"X": INTEGERS}, {"dim": [1]}, version=2_002_000).dtype == np.int32
    assert run_single("reduce_sum", {"X": INTEGERS}, {"dim": [1]}, version=2_003_000).dtype == np.int64


def test_arg_max_of_paddle_1_returns_int64() -> None:
    assert run_single("arg_max", {"X": X}, {"axis": 1, "dtype": None}, version=1_008_005).dtype == np.int64


def test_top_k_of_paddle_1() -> None:
    values, indices = run("top_k", {"X": X, "K": np.array([2], np.int32)}, {"k": 1}, outputs=("Out", "Indices"))
    np.testing.assert_array_equal(values, -np.sort(-X, axis=-1)[..., :2])
    assert indices.dtype == np.int64


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_sums_and_products(exclusive: bool, reverse: bool) -> None:
    line = np.array([2.0, 3.0, 4.0], np.float32)
    totals = {(False, False): [2, 5, 9], (True, False): [0, 2, 5], (False, True): [9, 7, 4], (True, True): [7, 4, 0]}
    products = {
        (False, False): [2, 6, 24],
        (True, False): [1, 2, 6],
        (False, True): [24, 12, 4],
        (True, True): [12, 4, 1],
    }
    flags = {"exclusive": exclusive, "reverse": reverse}
    np.testing.assert_array_equal(run_single("cumsum", {"X": line}, {"axis": 0, **flags}), totals[exclusive, reverse])
    np.testing.assert_array_equal(run_single("cumprod", {"X": line}, {"dim": 0, **flags}), products[exclusive, reverse])


def test_unique_in_order_of_appearance() -> None:
    x = np.array([3, 1, 3, 2], np.int64)
    values, inverse = run("unique", {"X": x}, {"dtype": "int32"}, outputs=("Out", "Index"))
    np.testing.assert_array_equal(values, [3, 1, 2])
    np.testing.assert_array_equal(inverse, np.array([0, 1, 0, 2], np.int32))
    assert inverse.dtype == np.int32
