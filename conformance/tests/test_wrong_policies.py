"""Tests of the cases of infinite states, subnormal results, shift counts and empty choices: each finds its mistakes."""

from __future__ import annotations

import numpy as np
import pytest
import wrong_policies

from lite_conformance import Record, Status, check_backend
from lite_conformance.judge.compare import Expected, allowed, compare
from lite_core.ir import DType

#: The cases that find each mistake: each pattern alone does.
FOUND_BY = {
    "multiplies_missing_peepholes": ["LSTM[f32,infinities,cell]", "LSTM[f32,infinities,candidate]"],
    "interpolates_the_state": ["GRU[f32,infinities,candidate]"],
    "clamps_infinities": ["RNN[f32,infinities,relu]"],
    "loses_nan_below_the_threshold": ["RNN[f32,nan,ThresholdedRelu]"],
    "spoils_other_sequences": ["GRU[f32,infinities,relu]", "LSTM[f32,infinities,relu]"],
    "truncates_subnormals": ["Cast[f32,subnormal-halves,to-f16]", "Cast[f64,subnormal-halves,to-f16]",
                             "Mul[f16,subnormal-halves]"],
    "rounds_subnormals_half_up": ["Cast[f32,subnormal-halves,to-f16]", "Cast[f64,subnormal-halves,to-f16]",
                                  "Cast[f32,subnormal-halves,to-bf16]", "Mul[f16,subnormal-halves]"],
    "refuses_large_counts": ["BitShift[u8,beyond-the-width,left]"],
    "spoils_neighbours_of_large_counts": ["BitShift[u32,beyond-the-width,right,constant-counts]"],
    "chooses_from_nothing": ["nothing-to-choose[ArgMax,size-from-data]", "nothing-to-choose[ArgMin,size-from-data]"],
    "hides_the_chooser": ["nothing-to-choose[ArgMax,size-from-data]"],
}  # fmt: skip
#: The cases in which each backend gives another result, as the policies allow.
ALLOWED = {
    "loses_infinite_sequences": ["GRU[f32,infinities,relu]", "LSTM[f32,infinities,relu]"],
    "flushes_results": ["Cast[*,subnormal-halves*", "Mul[*,subnormal-halves*"],
    "takes_counts_modulo_the_width": ["BitShift[*,beyond-the-width*"],
}


def run(name: str, pattern: str) -> list[Record]:
    records = check_backend(wrong_policies.BACKENDS[name], cases=[pattern])
    return [r for r in records if r.status is not Status.UNSUPPORTED]


@pytest.mark.parametrize("name", FOUND_BY)
def test_mistake_is_found_by_each_case(name: str) -> None:
    for pattern in FOUND_BY[name]:
        assert [r.status for r in run(name, pattern)] == [Status.FAILED], f"{pattern} does not find {name}"


@pytest.mark.parametrize("name", ALLOWED)
def test_allowed_results_raise_no_alarm(name: str) -> None:
    for pattern in ALLOWED[name]:
        records = run(name, pattern)
        assert {r.status for r in records} == {Status.PASSED}, [(r.case, r.reason) for r in records if r.status.is_bad]


def test_every_backend_is_tested() -> None:
    assert {*FOUND_BY, *ALLOWED} == set(wrong_policies.BACKENDS)


def test_subnormal_result_is_right_or_zero() -> None:
    step = 2.0**-24
    truth = np.array([3 * step, 3 * step, 3 * step, 1024 * step, 1024 * step, 0.0])
    found = np.array([3 * step, -0.0, 2 * step, 0.0, 1023 * step, step], np.float16)
    expected = Expected("y", DType.FLOAT16, truth, or_zero=True)
    assert compare(found, expected, 0, 0).wrong == 3
    assert compare(found[[0, 1, 3]], Expected("y", DType.FLOAT16, truth[[0, 1, 3]], or_zero=True), 0, 0).wrong == 0
    assert (allowed(expected, 0, 0)[1] < 0).all()
