"""The measures of a comparison: wrong elements, errors, and required tolerances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from lite_conformance.judge.compare import Expected, Measured, allowed, compare, merge
from lite_conformance.judge.tolerances import epsilon, smallest_normal
from lite_core.ir import DType

Array = np.ndarray[Any, Any]
F32 = np.float32


def expected(elements: Any, dtype: str = "float32", magnitude: float | Array = 0.0) -> Expected:
    type = DType.of(dtype)
    return Expected("y", type, np.asarray(elements, np.float64 if type.is_floating else type.numpy), magnitude)


def measure(actual: Any, want: Expected, rtol: float = 0.0, atol: float = 0.0) -> Measured:
    return compare(np.asarray(actual).astype(want.dtype.numpy), want, rtol, atol)


# **** units in the last place ****


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("number", [1.0, 1.5, 1.9375, 2.0, 3.0, 0.5, 0.75, 100.0, -1.5])
def test_next_number_differs_by_one_ulp(dtype: str, number: float) -> None:
    type = DType.of(dtype)
    away = abs(number)
    step = 2.0 ** math.floor(math.log2(away)) * epsilon(type)
    assert measure([np.copysign(away + step, number)], expected([number], dtype)).max_ulp == 1.0
    assert measure([np.copysign(away + 4 * step, number)], expected([number], dtype)).max_ulp == 4.0


def test_ulp_of_a_power_of_two_is_that_of_larger_numbers() -> None:
    below = np.nextafter(F32(2), F32(0))
    assert measure([below], expected([2.0])).max_ulp == 0.5


def test_ulp_below_the_normal_numbers_is_constant() -> None:
    # 2**-125 instead of 0, in units of 2**-149.
    assert measure([2.0**-125], expected([0.0])).max_ulp == 2.0**24
    assert measure([2.0**-1021], expected([0.0], "float64")).max_ulp == 2.0**53


# **** NaN, infinities, and numbers out of range ****


@pytest.mark.parametrize(
    ("actual", "truth", "wrong"),
    [
        (np.nan, np.nan, 0),
        (np.inf, np.inf, 0),
        (-np.inf, -np.inf, 0),
        (0.0, -0.0, 0),
        (np.inf, -np.inf, 1),
        (np.nan, 1.0, 1),
        (1.0, np.nan, 1),
        (np.nan, np.inf, 1),
        (np.inf, np.nan, 1),
        (3e38, np.inf, 1),
        (np.inf, 3e38, 1),
    ],
)
def test_nan_and_infinities(actual: float, truth: float, wrong: int) -> None:
    measured = measure([actual], expected([truth], magnitude=1.0), 1e6, 1e6)
    assert measured.wrong == wrong
    assert measured.max_abs == (math.inf if wrong else 0.0)
    assert not any(math.isnan(n) for n in (measured.max_abs, measured.max_rel, measured.max_ulp, measured.nmse))


def test_truth_out_of_range_is_an_infinity() -> None:
    assert measure([np.inf, -np.inf], expected([1e39, -7e4 * 1e35])).wrong == 0
    assert measure([np.finfo(F32).max], expected([1e39]), 1.0).wrong == 1
    assert measure([np.inf], expected([65520.0], "float16")).wrong == 0
    assert measure([65504.0], expected([65504.0], "float16")).wrong == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_subnormal_numbers_may_be_flushed(dtype: str) -> None:
    least = smallest_normal(DType.of(dtype))
    assert measure([0.0, 0.0], expected([least, -least / 2], dtype)).wrong == 0
    assert measure([0.0], expected([2 * least], dtype)).wrong == 1
    assert measure([2 * least], expected([0.0], dtype)).wrong == 1


# **** required tolerances ****


def _random_cases() -> list[tuple[Array, Expected]]:
    random = np.random.default_rng(7)
    cases = []
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        for _ in range(25):
            truth = random.standard_normal(17) * 10.0 ** random.integers(-2, 3)
            actual = (truth * (1 + 0.1 * random.standard_normal(17))).astype(DType.of(dtype).numpy)
            cases.append((actual, expected(truth, dtype, np.abs(truth) + random.uniform(0, 2, 17))))
    return cases


@pytest.mark.parametrize("which", ["rtol", "atol"])
def test_required_tolerance_passes_and_a_smaller_one_fails(which: str) -> None:
    for actual, want in _random_cases():
        required = getattr(compare(actual, want, 0.0, 0.0), f"required_{which}")
        less = required * (1 - 1e-12)
        assert compare(actual, want, **{"rtol": 0.0, "atol": 0.0, which: required}).wrong == 0
        assert compare(actual, want, **{"rtol": 0.0, "atol": 0.0, which: less}).wrong > 0


def test_required_rtol_and_atol_depend_on_the_other_tolerance() -> None:
    want = expected([1.0, 100.0], magnitude=1.0)
    measured = measure([1.5, 101.0], want, rtol=0.02, atol=0.1)
    assert (measured.wrong, measured.required_rtol, measured.required_atol) == (1, 0.5, 0.5)
    assert measure([1.5, 101.0], want, rtol=0.5, atol=0.1).wrong == 0
    assert measure([1.5, 101.0], want, rtol=0.02, atol=0.5).wrong == 0


def test_required_rtol_is_infinite_if_zero_is_expected() -> None:
    measured = measure([1.0], expected([0.0], magnitude=4.0))
    assert (measured.required_rtol, measured.required_atol, measured.max_rel) == (math.inf, 0.25, 0.0)


def test_tolerance_is_the_maximum_of_rtol_and_atol_not_the_sum() -> None:
    want = expected([1.0], magnitude=1.0)
    assert measure([1.75], want, rtol=0.5, atol=0.5).wrong == 1
    assert measure([1.5], want, rtol=0.5, atol=0.5).wrong == 0


def test_magnitude_per_element() -> None:
    want = expected([0.0, 0.0], magnitude=np.array([1.0, 100.0]))
    measured = measure([0.5, 50.0], want, atol=0.4)
    assert (measured.wrong, measured.required_atol) == (2, 0.5)
    assert measure([0.5, 30.0], want, atol=0.4).wrong == 1


def test_allowed_errors_agree_with_the_comparison() -> None:
    for actual, want in _random_cases():
        for rtol, atol in ((0.0, 0.0), (0.1, 0.0), (0.0, 0.1), (0.05, 0.05)):
            truth, limits = allowed(want, rtol, atol)
            wrong = np.abs(actual.astype(np.float64) - truth) > limits
            assert int(wrong.sum()) == compare(actual, want, rtol, atol).wrong


# **** integers and booleans ****


def test_integers_that_are_equal_as_float64_differ() -> None:
    most = 2**63 - 1
    measured = measure(np.array([most - 1]), expected(np.array([most]), "int64"), 1.0, 1.0)
    assert (measured.wrong, measured.max_abs, measured.required_rtol) == (1, 1.0, math.inf)
    assert measured.worst == f"y[0]: {most - 1}, expected {most}"
    assert measure(np.array([2**64 - 2], np.uint64), expected(np.array([2**64 - 1], np.uint64), "uint64")).wrong == 1


def test_booleans_and_small_integers() -> None:
    assert measure([True, False], expected([True, True], "bool")).wrong == 1
    measured = measure([-128, 3], expected([127, 3], "int8"))
    assert (measured.wrong, measured.elements, measured.max_abs) == (1, 2, 255.0)
    assert measure([1, 2], expected([1, 2], "uint8")) == Measured(elements=2)


# **** shapes, and several comparisons ****


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_empty_tensors_pass(dtype: str) -> None:
    assert measure(np.zeros((0, 3)), expected(np.zeros((0, 3)), dtype)) == Measured()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_scalars(dtype: str) -> None:
    measured = measure(1.25, expected(1.5, dtype))
    assert (measured.wrong, measured.worst, measured.max_abs) == (1, "y: 1.25, expected 1.5", 0.25)
    assert measure(7, expected(8, "int32")).worst == "y: 7, expected 8"


def test_worst_element_is_a_wrong_one() -> None:
    want = expected([[1000.0, 1.0]])
    measured = measure([[1001.0, 1.5]], want, rtol=0.01)
    assert (measured.wrong, measured.max_abs, measured.worst) == (1, 1.0, "y[0, 1]: 1.5, expected 1")


def test_nmse_of_huge_and_tiny_numbers() -> None:
    for scale in (1.0, 1e-200, 1e200):
        want = expected([3 * scale, 4 * scale], "float64")
        assert measure([3 * scale, 4.5 * scale], want).nmse == pytest.approx(0.01)


def test_merge_takes_the_worst_of_each_measure() -> None:
    right = measure([1000.0], expected([1001.0]), rtol=0.1)
    wrong = measure([1.5], expected([1.0]), rtol=0.1)
    both = merge([right, wrong])
    assert (both.wrong, both.elements, both.max_abs, both.max_rel) == (1, 2, 1.0, 0.5)
    assert both.worst == "y[0]: 1.5, expected 1"
    assert merge([]) == Measured()
    assert merge([both]) == both
