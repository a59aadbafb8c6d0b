"""Tests of the cases of NaN, overflow, division by zero, subnormal numbers and zeros: each finds its mistakes."""

from __future__ import annotations

import numpy as np
import pytest
import wrong_special

from lite_conformance import Record, Status, check_backend
from lite_conformance.judge.compare import Expected, allowed, compare
from lite_core.ir import DType

#: The cases that find each mistake; each operator of the backend has some.
FOUND_BY = {
    "passes_over_nan": "nan*",
    "returns_the_second_operand": "nan,left]",
    "clips_nan_to_a_bound": "nan,only-m*",
    "ignores_bounds_that_are_nan": "nan-as-m*",
    "activates_nan": "nan*",
    "reduces_past_nan": "nan*",
    "adds_zero_for_nan": "nan*",
    "spreads_nan": "nan*",
    "saturates": "overflow*",
    "refuses_to_divide_by_zero": "by-zero*",
    "loses_the_rest": "by-zero*",
    "saturates_the_quotient": "lowest-by-minus-one*",
    "moves_and_flushes": "every-bit*",
    "adds_zero": "every-bit*",
}
#: The cases in which each backend gives another result, as the policies allow.
ALLOWED = {
    "divides_by_zero_to_anything": "u8,by-zero*",
    "flushes": "f16,subnormal*",
    "computes_other_zeros": "f32,nan*",
    "changes_the_payload": "f32,every-bit*",
}


def failures(name: str, cases: list[str]) -> set[str]:
    """Return the operators of the cases that fail."""
    records = check_backend(wrong_special.BACKENDS[name], cases=cases)
    assert not any(r.status is Status.ERROR for r in records), [r.reason for r in records]
    return {r.case.partition("[")[0] for r in records if r.status is Status.FAILED}


@pytest.mark.parametrize("name", FOUND_BY)
def test_mistake_is_found_in_every_operator(name: str) -> None:
    backend = wrong_special.BACKENDS[name]
    types = ("i32",) if FOUND_BY[name].startswith(("overflow", "by-zero", "lowest")) else ("f32",)
    cases = [f"{op}[{type},{FOUND_BY[name]}" for op in backend.ops for type in types]
    assert failures(name, cases) == set(backend.ops)


@pytest.mark.parametrize("name", ALLOWED)
def test_allowed_results_raise_no_alarm(name: str) -> None:
    backend = wrong_special.BACKENDS[name]
    records: list[Record] = check_backend(backend, cases=[f"{op}[{ALLOWED[name]}" for op in backend.ops])
    assert {r.status for r in records} == {Status.PASSED}, [(r.case, r.reason) for r in records if r.status.is_bad]


def test_every_backend_is_tested() -> None:
    assert {*FOUND_BY, *ALLOWED} == set(wrong_special.BACKENDS)


def test_unspecified_elements_pass_and_others_do_not() -> None:
    expected = Expected("y", DType.INT32, np.array([1, 2, 3], np.int32), unspecified=np.array([True, False, False]))
    assert compare(np.array([9, 2, 3], np.int32), expected, 0, 0).wrong == 0
    assert compare(np.array([9, 2, 4], np.int32), expected, 0, 0).wrong == 1
    real = Expected("y", DType.FLOAT32, np.array([1.0, 2.0]), unspecified=np.array([True, False]))
    assert compare(np.array([np.nan, 2], np.float32), real, 0, 0).wrong == 0
    assert compare(np.array([np.nan, np.nan], np.float32), real, 0, 0).wrong == 1
    assert allowed(real, 0, 0)[1][0] == np.inf


def test_moves_keep_signs_of_zeros_and_subnormal_numbers() -> None:
    tiny = float(np.finfo(np.float32).smallest_subnormal)
    moved = Expected("y", DType.FLOAT32, np.array([-0.0, tiny, np.nan]), every_bit=True)
    assert compare(np.array([-0.0, tiny, -np.nan], np.float32), moved, 0, 0).wrong == 0
    assert compare(np.array([0.0, 0.0, np.nan], np.float32), moved, 0, 0).wrong == 2
    computed = Expected("y", DType.FLOAT32, np.array([-0.0, tiny, np.nan]))
    assert compare(np.array([0.0, 0.0, np.nan], np.float32), computed, 0, 0).wrong == 0
