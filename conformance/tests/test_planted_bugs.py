"""The table of planted bugs, with the case of the suite that finds each."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import correct_backends as correct
import planted_contract as contract
import planted_numbers as numbers
import planted_saving as saving
import planted_state as state
import pytest
from planted_parts import PlantedExecutable, backend_of, bugs_of

from lite_conformance.cases.case import Context, Settings
from lite_conformance.cases.catalogue import CaseFinder
from lite_conformance.drive.subject import Subject
from lite_conformance.reports.record import Record, Status
from lite_conformance.run.executor import execute


def _name(thing: Any) -> str:
    return getattr(thing, "__name__", str(thing))


CASES = CaseFinder(Settings("planted"))
IN_A_NEW_PROCESS = Path(__file__).with_name("new_process_backends.py")

#: For each bug a case that finds it, and part of the reason that the case gives.
FOUND_BY: list[tuple[Any, str, str]] = [
    # accumulators
    (numbers.Float16Accumulator, "MatMul[f16,3x5,8195-terms]", "wrong"),
    (numbers.Float16Accumulator, "MatMul[bf16,3x5,8195-terms]", "wrong"),
    (numbers.Float16Accumulator, "MatMul[f32,3x5,1031-terms]", "wrong"),
    (numbers.Float16Accumulator, "Conv[f16,k1,8195-terms]", "wrong"),
    (numbers.Float16Accumulator, "ReduceSum[f16,rows,8195-terms]", "wrong"),
    (numbers.Bfloat16Accumulator, "MatMul[bf16,3x5,8195-terms]", "wrong"),
    (numbers.Bfloat16Accumulator, "Conv[f16,k1,8195-terms]", "wrong"),
    (numbers.Bfloat16Accumulator, "ReduceSum[bf16,rows,8195-terms]", "wrong"),
    (numbers.Float16Lanes, "MatMul[f16,3x5,8195-terms]", "wrong"),
    (numbers.Float16Lanes, "Conv[bf16,k1,8195-terms]", "wrong"),
    (numbers.Float16Lanes, "ReduceSum[f16,rows,8195-terms]", "wrong"),
    (numbers.Float16Blocks, "MatMul[f16,3x5,8195-terms]", "wrong"),
    (numbers.Float16Blocks, "ReduceSum[f32,rows,1031-terms]", "wrong"),
    (numbers.Float16Tail, "MatMul[f32,3x5,1031-terms]", "wrong"),
    (numbers.Float16WhenLong, "MatMul[f32,3x5,1031-terms]", "wrong"),
    (numbers.Float16Products, "Conv[f32,k1,1031-terms]", "wrong"),
    (numbers.Float32Accumulator, "MatMul[f64,3x5,1031-terms]", "wrong"),
    (numbers.LosesLastTerm, "ReduceSum[f32,rows,1031-terms]", "wrong"),
    # element types
    (numbers.Int64ThroughFloat64, "Add[i64,overflow]", "wrong"),
    (numbers.Int64ThroughFloat64, "ReduceMax[i64,near-the-largest]", "wrong"),
    (numbers.Int64ThroughFloat32, "Mul[i64,big]", "wrong"),
    (numbers.Int64ThroughInt32, "Add[i64,big]", "wrong"),
    (numbers.Float64ThroughFloat32, "Exp[f64,drawn]", "wrong"),
    (numbers.Float32ThroughBfloat16, "Add[f32,2x3]", "wrong"),
    (numbers.Bfloat16ThroughFloat16, "Mul[bf16,big]", "wrong"),
    (numbers.Uint8AsInt8, "Max[u8,full-range]", "wrong"),
    (numbers.Uint32AsInt32, "Greater[u32,full-range]", "wrong"),
    (numbers.Uint64AsInt64, "Div[u64,full-range]", "wrong"),
    (numbers.BoolOfAllBits, "Greater[f32,drawn]", "neither true nor false"),
    (numbers.TruncatesBfloat16, "Add[bf16,rounded]", "wrong"),
    (numbers.SaturatesFloat16, "Mul[f16,out-of-range,float16]", "wrong"),
    (numbers.SaturatesIntegers, "Add[i8,overflow]", "wrong"),
    (numbers.SaturatesIntegers, "Mul[i32,overflow]", "wrong"),
    (numbers.LosesNan, "Max[f32,nan]", "expected nan"),
    (numbers.LosesNan, "Clip[f32,nan]", "expected nan"),
    (numbers.LosesNan, "Relu[f32,nan-in-every-lane]", "expected nan"),
    (numbers.LosesNan, "ReduceMax[f32,nan,axis1]", "expected nan"),
    (numbers.GarbageSubnormals, "Mul[f16,subnormal]", "wrong"),
    # sizes
    (numbers.WrongScalars, "Add[f32,drawn]", "wrong"),
    (numbers.WrongForOneElement, "Add[f32,drawn]", "wrong"),
    (numbers.WrongForOddSizes, "Add[f32,drawn]", "wrong"),
    (numbers.WrongForHighRanks, "Transpose[f32,2x3x2x3x2x3,504132,rank6]", "wrong"),
    (numbers.WrongForLargeTensors, "Add[f32,large,3x70001]", "wrong"),
    (numbers.FailsForEmptyTensors, "Add[f32,drawn]", "ZeroDivisionError"),
    # the number of the run
    (state.WrongInFirstRun, "Add[f32,2x3]", "wrong"),
    (state.WrongFromSecondRun, "contract[runs]", "another result"),
    (state.WrongInFiftiethRun, "stress[deterministic,Add]", "run 50"),
    # inputs
    (state.InputsOfFirstRun, "contract[runs]", "same outputs"),
    (state.InputsOfFirstRun, "contract[inputs-rewritten]", "another result"),
    (state.AddressesOfFirstRun, "contract[inputs-rewritten]", "another result"),
    (state.AddressesOfFirstRun, "contract[old-buffers-overwritten]", "another result"),
    (state.ResultsByAddress, "contract[inputs-rewritten]", "another result"),
    (state.UploadsByStorage, "contract[inputs-rewritten]", "another result"),
    (state.OneStorageForTwoInputs, "contract[one-array-twice]", "wrong"),
    # references after a run
    (state.KeepsInputs, "contract[buffers-not-kept]", "input"),
    (state.KeepsInputs, "contract[session-arrays-not-kept]", "input"),
    (state.KeepsBuffers, "contract[buffers-not-kept]", "refers to"),
    (state.KeepsPartOfAnOutput, "contract[buffers-not-kept]", "output"),
    (state.KeepsScratch, "contract[buffers-not-kept]", "scratch"),
    (contract.KeepsStorage, "contract[buffers-not-kept]", "input"),
    (contract.KeepsWrappedArrays, "contract[session-arrays-not-kept]", "array of its"),
    (state.WritesToEarlierOutput, "contract[old-buffers-overwritten]", "of an earlier one"),
    (state.PersistentScratch, "contract[runs]", "another result"),
    # outputs
    (state.AddsToOutput, "Add[f32,2x3]", "wrong"),
    (state.AddsToOutput, "Add[i32,2x3]", "wrong"),
    (state.MaximumWithOutput, "contract[inputs-rewritten]", "another result"),
    (state.OutputIsInput, "contract[runs]", "changed its input"),
    (state.ReturnsEarly, "Add[f32,2x3]", "wrong"),
    (state.OutputsEndWithExecutable, "contract[outputs-outlive-the-executable]", "changed after"),
    # constants
    (state.WritesConstants, "contract[other-constants]", "compile() changed the constant"),
    (state.AddressesOfConstants, "contract[constants-outlive-the-graph]", "another result"),
    (state.ConstantsById, "contract[constants-of-dropped-graphs]", "dropped graphs"),
    (state.ConstantsByAddress, "contract[constants-of-dropped-graphs]", "dropped graphs"),
    (state.ConstantsByType, "contract[other-constants]", "differ in constants"),
    (state.ConstantsByName, "contract[other-constants]", "differ in constants"),
    (state.NeedsAlignedConstants, "contract[constants-outlive-the-graph]", "unaligned"),
    (state.NeedsAlignedTensors, "stress[guard-page,Add]", "unaligned"),
    # several executables
    (state.ExecutablesByPartitionName, "contract[other-constants]", "differ in constants"),
    (state.ExecutablesByNodes, "contract[other-constants]", "differ in constants"),
    (state.LastConstants, "contract[other-constants]", "differ in constants"),
    (state.LastConstants, "contract[executables-side-by-side]", "wrong"),
    (state.KernelsByOperator, "Softmax[f32,drawn]", "wrong"),
    (state.KernelsByOperatorAndRank, "Softmax[f32,drawn]", "wrong"),
    (state.KernelOfFirstShape, "Add[f32,drawn]", "wrong"),
    (state.DroppingClearsConstants, "contract[other-executable-dropped]", "another result"),
    # threads
    (state.ThreadOfCompilation, "contract[other-threads]", "another result"),
    (state.UnequalSums, "stress[parallel,Add]", "another result"),
    (state.LosesRowsOfThreads, "stress[parallel,Add]", "wrong"),
    # options, answers, memory, profiles
    (state.GlobalPrecision, "contract[options]", "compiled before"),
    (state.LowestPrecision, "contract[options]", "was compiled"),
    (contract.ForgetsAnswers, "contract[answers]", "about other nodes"),
    (contract.TiresOfQuestions, "contract[answers]", "too many questions"),
    (contract.UploadsLate, "contract[memory]", "must copy it"),
    (contract.IgnoresOffset, "contract[memory-view]", "outside it"),
    (contract.ProfilesWithoutResults, "contract[profiled-runs]", "run_profiled() gave another result"),
    (contract.ProfilesNegativeTimes, "contract[profiled-runs]", "-1.0 seconds"),
    (contract.ProfilesNothing, "contract[profiled-runs]", "list of KernelTime"),
    (contract.ShowsNothing, "contract[observed-runs]", "not the output"),
    (contract.ShowsAnotherArray, "contract[observed-runs]", "another array"),
    (contract.IgnoresReplacements, "contract[observed-runs]", "an observer replaced"),
    # saving
    (saving.SecondOutputAfterRestore, "contract[save-and-restore]", "several outputs"),
    (saving.LastOutputAfterRestore, "contract[save-and-restore]", "several outputs"),
    (saving.SecondConstantAfterRestore, "contract[save-and-restore]", "another result"),
    (saving.WrongInFirstRestoredRun, "contract[save-and-restore]", "another result"),
    (saving.LastSavedState, "contract[restore-several]", "restored twice"),
    (saving.RestoredForOneThread, "contract[restore-with-threads]", "another result"),
    (saving.AddressesOfPieces, "contract[pieces-not-referenced]", "released"),
    (saving.NeedsTheOriginal, "contract[restore-several]", "not loaded"),
    (saving.OneExecutablePerProgram, "contract[restore-several]", "not loaded"),
    (saving.SaveEndsExecutable, "contract[save-again]", "another result"),
    (saving.SavesOnlyOnce, "contract[save-again]", "saved twice"),
    (saving.SavesStateOfRuns, "contract[save-again]", "saved after a run"),
    (saving.SavesOnlyWhatRan, "contract[save-and-restore]", "another result"),
    (saving.RestoredSavesWrongly, "contract[save-again]", "itself restored"),
    (saving.ListsUnknownConstants, "contract[save-and-restore]", "a_name_before_the_passes"),
    (saving.DescribesTypes, "contract[restore-for-a-similar-graph]", "another operator"),
    (saving.DescribesOperators, "contract[restore-for-a-similar-graph]", "another attribute"),
    (saving.DescribesNodes, "contract[restore-for-a-similar-graph]", "exchanged operands"),
    (saving.DescribesAllButConstants, "contract[restore-for-a-similar-graph]", "other constants"),
    (saving.DescribesAllButSizes, "contract[restore-for-a-similar-graph]", "Stale(reason) is due"),
    (saving.RestoredLeaks, "stress[restore-repeatedly]", "grow"),
]

#: Races: a case finds them with some probability.
RACES: list[tuple[Any, str, str]] = [
    (state.SharedTemporary, "stress[executables-in-threads]", "another result"),
    (state.LazyTables, "stress[threads,Add]", "another result"),
    (state.LazyTables, "stress[executables-in-threads]", "another result"),
    (saving.RestoredIsLazy, "stress[restored-in-threads]", "another result"),
]

#: Bugs that only show in a new process, by the names that it finds the backends by.
FOUND_IN_A_NEW_PROCESS = [
    ("lazy_backend", "stress[first-use-in-threads]", "not initialised"),
    ("saves_handles", "contract[restore-in-a-new-process]", "another result"),
]

# Attempts at a race on a machine under load.
_ATTEMPTS = 30

#: Bugs that the contributors' tier looks for: those of the table in their shortest form.
_QUICK = (numbers.Float16Accumulator, state.KeepsInputs, state.ConstantsById, saving.SecondOutputAfterRestore)


def _record(subject: Subject, case: str) -> Record:
    return execute(CASES[case], Context(subject, Settings(subject.specification or "planted")))


def _is_found(bug: Any, case: str, reason: str) -> None:
    record = _record(Subject.first(backend_of(bug)), case)
    assert record.status is Status.FAILED, f"{record.status} {record.reason}"
    assert reason in record.reason


@pytest.mark.parametrize(("bug", "case", "reason"), [row for row in FOUND_BY if row[0] in _QUICK], ids=_name)
def test_planted_bug_is_found(bug: Any, case: str, reason: str) -> None:
    _is_found(bug, case, reason)


@pytest.mark.full("conformance")
@pytest.mark.parametrize(("bug", "case", "reason"), [row for row in FOUND_BY if row[0] not in _QUICK], ids=_name)
def test_any_planted_bug_is_found(bug: Any, case: str, reason: str) -> None:
    _is_found(bug, case, reason)


@pytest.mark.full("conformance")
@pytest.mark.parametrize(("bug", "case", "reason"), RACES, ids=_name)
def test_race_is_found(bug: Any, case: str, reason: str) -> None:
    records = (_record(Subject.first(backend_of(bug)), case) for _ in range(_ATTEMPTS))
    found = next((record for record in records if record.status is Status.FAILED), None)
    assert found is not None, f"{case} did not find it in {_ATTEMPTS} attempts"
    assert reason in found.reason


@pytest.mark.full("conformance")
@pytest.mark.parametrize(("name", "case", "reason"), FOUND_IN_A_NEW_PROCESS)
def test_bug_is_found_in_a_new_process(name: str, case: str, reason: str) -> None:
    for _ in range(_ATTEMPTS):
        record = _record(Subject.open(f"{IN_A_NEW_PROCESS}:{name}"), case)
        if record.status is Status.FAILED:
            break
    assert record.status is Status.FAILED, f"{record.status} {record.reason}"
    assert reason in record.reason


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the rounding mode has another number")
def test_changed_rounding_mode_is_found() -> None:
    try:
        _is_found(state.LeavesRoundingMode, "contract[arithmetic-unchanged]", "rounding")
    finally:
        state.round_to(state.FE_TONEAREST)


def test_constants_of_any_strides_are_contiguous_for_backends() -> None:
    record = _record(Subject.first(backend_of(correct.ReadsMemory)), "contract[arrays-of-any-strides]")
    assert record.status is Status.PASSED, record.reason


@pytest.mark.full("conformance")
@pytest.mark.parametrize("case", [case for _, case, _ in FOUND_IN_A_NEW_PROCESS])
def test_correct_backend_passes_in_a_new_process(case: str) -> None:
    record = _record(Subject.open(f"{IN_A_NEW_PROCESS}:saves_programs"), case)
    assert record.status is Status.PASSED, record.reason


def test_backend_object_skips_cases_in_a_new_process() -> None:
    record = _record(Subject.first(backend_of(saving.SavesPrograms)), "contract[restore-in-a-new-process]")
    assert record.status is Status.SKIPPED
    assert "file.py:name" in record.reason


@pytest.mark.full("conformance")
@pytest.mark.parametrize("case", sorted({case for _, case, _ in (*FOUND_BY, *RACES)}))
def test_correct_backends_are_not_alarmed(case: str) -> None:
    for kind in (PlantedExecutable, saving.SavesPrograms, correct.ReadsMemory, correct.NaiveSums, correct.CachesWell):
        record = _record(Subject.first(backend_of(kind)), case)
        assert record.status in (Status.PASSED, Status.UNSUPPORTED), f"{kind.__name__}: {record.reason}"


def test_every_planted_bug_is_in_the_table() -> None:
    listed = {bug for bug, _, _ in (*FOUND_BY, *RACES)}
    planted = {bug for module in (contract, numbers, saving, state) for bug in bugs_of(module)}
    assert planted - listed == {
        state.LazyBackend,
        state.LeavesRoundingMode,
        saving.SavesHandles,
        saving.SavesPrograms,
    }
