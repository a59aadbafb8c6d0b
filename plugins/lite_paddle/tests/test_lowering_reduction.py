"""Reductions, norms, running sums, orders and searches, against Paddle and by hand for old files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import only, run
from paddle_cases import Case, both, check, each, of

RNG = np.random.default_rng(2)
X = RNG.standard_normal((2, 3, 4)).astype(np.float32)
POSITIVE = (np.abs(X) + 0.5).astype(np.float32)
INTEGERS = RNG.integers(-5, 5, (3, 4)).astype(np.int32)
TRUTH = X > 0
SCALAR = np.array(2.5, np.float32)
PIR = ("pir",)  # Paddle 3 can no longer export these the old way


CASES = [
    *[
        case
        for name in ("sum", "mean", "max", "min", "prod", "amax", "amin", "logsumexp")
        for case in (
            *both(f"{name}_axis", of(name, 1), POSITIVE, kinds=PIR),
            *both(f"{name}_axes_kept", of(name, [0, -1], keepdim=True), POSITIVE, kinds=PIR),
            *both(f"{name}_everything", of(name), POSITIVE, kinds=PIR),
        )
    ],
    *[
        case
        for name in ("mean", "max", "min")
        for case in (
            *both(f"{name}_axis_legacy", of(name, 1), X, kinds=("legacy",)),
            *both(f"{name}_everything_legacy", of(name), X, kinds=("legacy",)),
        )
    ],
    *both("sum_int32", of("sum", 0), INTEGERS, kinds=PIR),
    *both("sum_bool", of("sum"), TRUTH, kinds=PIR),
    *both("sum_dtype", of("sum", 0, dtype="float64"), X, kinds=PIR),
    *both("prod_int32", of("prod", 0), INTEGERS, kinds=PIR),
    *both("max_int32", of("max", 0), INTEGERS),
    Case("sum_scalar", of("sum"), [SCALAR], kinds=PIR),
    *both("all_axis", of("all", 1), TRUTH, kinds=PIR),
    *both("any_everything", of("any"), TRUTH, kinds=PIR),
    *both("any_int32", lambda p: lambda x: p.any(p.cast(x, "bool"), axis=0), INTEGERS, kinds=PIR),
    *[
        case
        for order in (0, 1, 2, 3.5, float("inf"), float("-inf"))
        for case in (
            *both(f"norm_{order}", of("norm", order, 1), X, kinds=PIR),
            *both(f"norm_{order}_vector", of("norm", order), X.reshape(-1), kinds=PIR),
        )
    ],
    *both("norm_fro", of("norm", "fro", [0, 1], True), X[0], kinds=PIR),
    *both("norm_everything", of("norm"), X),
    *both("cumsum", of("cumsum", 1), X),
    *both("cumsum_flat", of("cumsum"), X),
    *both("cumsum_int32", of("cumsum", 0), INTEGERS, kinds=PIR),
    *both("cumprod", of("cumprod", 1), X, kinds=PIR),
    *both("cumprod_last", of("cumprod", -1), X, kinds=PIR),
    *both("argmax", of("argmax", 1), X, kinds=PIR),
    *both("argmin_kept", of("argmin", -1, keepdim=True), X, kinds=PIR),
    *both("argmax_flat", of("argmax"), X, kinds=PIR),
    *both("argmax_flat_kept", of("argmax", keepdim=True), X, kinds=PIR),
    *both("argmax_int32", of("argmax", 0, dtype="int32"), X, kinds=PIR),
    *both("argsort", of("argsort", 1), X),
    *both("sort_descending", of("sort", -1, True), X),
    *both("argsort_scalar", of("argsort"), SCALAR, kinds=PIR),
    *both("topk", lambda p: lambda x: p.topk(x, 2, axis=1), X),
    *both("topk_smallest", lambda p: lambda x: p.topk(x, 3, largest=False), X),
    *both("topk_computed", lambda p: lambda x, y: p.topk(x, p.shape(y)[0]), X, X, kinds=PIR),
    *both("kthvalue", lambda p: lambda x: p.kthvalue(x, 2, axis=1), X, kinds=PIR),
    *both("kthvalue_kept", lambda p: lambda x: p.kthvalue(x, 3, keepdim=True), X, kinds=PIR),
    Case("unique", lambda p: lambda x: p.unique(x, True, True, True), [INTEGERS], kinds=PIR),
    Case("unique_axis", lambda p: lambda x: p.unique(x, True, True, True, axis=0), [INTEGERS], kinds=PIR),
    Case("unique_int32", lambda p: lambda x: p.unique(x, True, dtype="int32"), [INTEGERS], kinds=PIR),
    *both("nonzero", of("nonzero"), INTEGERS),
]


@each(CASES)
def test_as_paddle(case: Case, kind: str, paddle_models: Callable[[str], Path]) -> None:
    check(case, paddle_models(kind), kind)


# **** old files, by hand ****


@pytest.mark.parametrize("op_type", ["reduce_sum", "mean", "logsumexp", "p_norm", "frobenius_norm", "arg_max"])
def test_full_reductions_are_vectors_before_2_5(op_type: str) -> None:
    attrs: dict[str, Any] = {"reduce_all": True}
    if op_type in ("p_norm", "arg_max"):
        attrs = {"asvector": True} if op_type == "p_norm" else {"flatten": True, "axis": 0}
    assert only(op_type, {"X": X}, attrs, version=2_004_002).shape == (1,)
    assert only(op_type, {"X": X}, attrs, version=2_005_000).shape == ()


def test_reductions_of_the_only_axis_are_vectors_before_2_5() -> None:
    assert only("reduce_max", {"X": X[0, 0]}, {"dim": [0]}, version=1_008_005).shape == (1,)


def test_default_axis_is_the_first() -> None:
    np.testing.assert_allclose(only("reduce_mean", {"X": X}), X.mean(axis=0), rtol=1e-6)


def test_old_sums_of_int32_stay_int32() -> None:
    assert only("reduce_sum", {"X": INTEGERS}, {"dim": [1]}).dtype == np.int32


def test_arg_max_of_version_1_gives_int64() -> None:
    assert only("arg_max", {"X": X}, {"axis": 1, "dtype": None}, version=1_008_005).dtype == np.int64


def test_top_k_of_version_1() -> None:
    values, places = run("top_k", {"X": X, "K": np.array([2], np.int32)}, {"k": 1}, outputs=("Out", "Indices"))
    np.testing.assert_array_equal(values, -np.sort(-X, axis=-1)[..., :2])
    assert places.dtype == np.int64


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_and_products(exclusive: bool, reverse: bool) -> None:
    line = np.array([2.0, 3.0, 4.0], np.float32)
    totals = {(False, False): [2, 5, 9], (True, False): [0, 2, 5], (False, True): [9, 7, 4], (True, True): [7, 4, 0]}
    products = {
        (False, False): [2, 6, 24],
        (True, False): [1, 2, 6],
        (False, True): [24, 12, 4],
        (True, True): [12, 4, 1],
    }
    flags = {"exclusive": exclusive, "reverse": reverse}
    np.testing.assert_array_equal(only("cumsum", {"X": line}, {"axis": 0, **flags}), totals[exclusive, reverse])
    np.testing.assert_array_equal(only("cumprod", {"X": line}, {"dim": 0, **flags}), products[exclusive, reverse])


def test_unique_in_order_of_appearance() -> None:
    x = np.array([3, 1, 3, 2], np.int64)
    values, inverse = run("unique", {"X": x}, {"dtype": "int32"}, outputs=("Out", "Index"))
    np.testing.assert_array_equal(values, [3, 1, 2])
    np.testing.assert_array_equal(inverse, np.array([0, 1, 0, 2], np.int32))
    assert inverse.dtype == np.int32
