"""Tests of the suite itself: each intentionally wrong backend is caught at the expected level."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from lite_conformance import Record, Status, check_backend

FILE = Path(__file__).with_name("wrong_backends.py")

# The operators that the wrong backends claim to support, in one element type.
OPERATORS = ("Add[f32,*]", "Relu[f32,*]", "Softmax[f32,*]", "MatMul[f32,*]")
# The cases of level 1 that these backends fail, and others that they must pass; test_planted_bugs.py tests the rest.
CONTRACT = (
    "probe[*]",
    *(
        f"contract[{name}]"
        for name in (
            "answers*",
            "memory*",
            "graph-unchanged",
            "runs",
            "outputs-stay",
            "storage-reused",
            "outlives-the-graph",
            "two-of-one-graph",
            "read-only-inputs",
            "member-names",
            "options",
            "save-and-restore",
            "damaged-save",
            "session",
        )
    ),
)
NAMES = ("probe[member-names]", "contract[member-names]")
OPTIONS = ("contract[options]",)
SAVING = ("contract[save-and-restore]",)
LEAKS = ("stress[compile-repeatedly]", "stress[run-repeatedly]")
STRESS = tuple(
    f"stress[{what},{op}]" for what in ("deterministic", "threads", "guard-page") for op in ("Add", "Softmax")
)
ALL = (*CONTRACT, *OPERATORS, *STRESS)


@dataclass(frozen=True)
class Catch:
    """The expected failures of a wrong backend.

    Attributes:
        name: name of the backend in wrong_backends.py.
        level: the lowest level with a bad record.
        status: status of one bad record.
        case: start of the name of that record's case.
        reason: part of its reason.
        cases: the cases to run.
        only: if given, the name of every bad case starts with one of these.
    """

    name: str
    level: int
    status: Status
    case: str
    reason: str
    cases: tuple[str, ...] = ALL
    only: tuple[str, ...] = ()


CATCHES = [
    Catch("two_devices_one_number", 0, Status.FAILED, "probe[devices]", "same index", CONTRACT, ("probe[d", "contra")),
    Catch("dies_in_probe", 0, Status.CRASHED, "probe[open]", "SIGSEGV"),
    Catch("misspelt_restore", 0, Status.FAILED, "probe[member-names]", "'restor'", CONTRACT, NAMES),
    Catch("misspelt_memory", 0, Status.FAILED, "probe[member-names]", "'synchronise'", CONTRACT, NAMES),
    Catch("misspelt_executable", 1, Status.FAILED, "contract[member-names]", "run_profiled", CONTRACT, NAMES),
    Catch("misspelt_when_restored", 1, Status.FAILED, "contract[save-and", "'constants_reads'", CONTRACT, SAVING),
    Catch("takes_any_option", 1, Status.FAILED, "contract[options]", "InputError", CONTRACT, OPTIONS),
    Catch("stumbles_over_options", 1, Status.FAILED, "contract[options]", "KeyError", CONTRACT, OPTIONS),
    Catch("needs_an_option", 1, Status.FAILED, "contract[options]", "level", CONTRACT, OPTIONS),
    Catch("no_without_a_reason", 0, Status.FAILED, "probe[unknown-operator]", "without a reason"),
    Catch("raises_in_supports", 1, Status.FAILED, "contract[answers-for-unknown", "TypeError", only=("contract",)),
    Catch("restores_anything", 1, Status.FAILED, "contract[damaged-save]", "of nonsense", only=("contract[damaged",)),
    Catch("mixes_up_pieces", 1, Status.FAILED, "contract[damaged-save]", "reverse order", only=("contract[damaged",)),
    Catch("saves_one_piece", 1, Status.FAILED, "contract[save-and", "gave bytes", CONTRACT, only=("contract[",)),
    Catch("mislabels_weights", 1, Status.FAILED, "contract[save-and", "in the layout that it states", CONTRACT),
    Catch("reads_unlisted", 1, Status.FAILED, "contract[save-and", "the restored executable", CONTRACT),
    Catch("returns_a_view", 1, Status.FAILED, "contract[runs]", "storage"),
    Catch("modifies_its_input", 1, Status.FAILED, "contract[", "changed its input"),
    Catch("off_by_one_row", 2, Status.FAILED, "Add[f32,", "wrong", cases=OPERATORS),
    Catch("ignores_axis", 2, Status.FAILED, "Softmax[f32,", "wrong", cases=OPERATORS, only=("Softmax",)),
    Catch("writes_past_the_end", 2, Status.FAILED, "Add[f32,", "past its end", cases=OPERATORS),
    Catch("leaves_the_tail", 2, Status.FAILED, "Add[f32,", "wrong", cases=OPERATORS),
    Catch("half_precision", 2, Status.FAILED, "Add[f32,", "wrong", cases=OPERATORS),
    Catch("loses_nan", 2, Status.FAILED, "Add[f32,", "expected nan", cases=OPERATORS),
    Catch("raises", 2, Status.FAILED, "Add[f32,", "IndexError", cases=OPERATORS),
    Catch("hangs", 2, Status.HUNG, "Add[f32,", "not done after 5 s", cases=("Add[f32,*empty]", "Add[f32,2x3]")),
    Catch("segfaults", 2, Status.CRASHED, "Add[f32,", "SIGSEGV", cases=("Add[f32,*]",)),
    Catch(
        "exits",
        2,
        Status.CRASHED,
        "MatMul[f32,",
        "exit code 7",
        cases=("Add[f32,*]", "MatMul[f32,*x257*]"),
        only=("MatMul",),
    ),
    Catch("reads_past_the_end", 5, Status.CRASHED, "stress[guard-page", "SIGSEGV", only=("stress[guard-page",)),
    Catch(
        "reads_past_constants",
        5,
        Status.CRASHED,
        "stress[guard-page,Gemm]",
        "SIGSEGV",
        cases=("stress[guard-page,Add]", "stress[guard-page,Gemm]"),
        only=("stress[guard-page,Gemm]",),
    ),
    Catch("not_deterministic", 5, Status.FAILED, "stress[deterministic", "another result", cases=STRESS),
    Catch("not_thread_safe", 5, Status.FAILED, "stress[threads", "another result", only=("stress[threads",)),
    Catch("leaks", 5, Status.FAILED, "stress[run-repeatedly]", "grow", cases=LEAKS),
    Catch(
        "keeps_executables",
        5,
        Status.FAILED,
        "stress[compile-repeatedly]",
        "grow",
        cases=LEAKS,
        only=("stress[compile-repeatedly]",),
    ),
]


def run(name: str, cases: tuple[str, ...], examples: int = 20) -> list[Record]:
    timeout = 5.0 if name == "hangs" else 60.0
    return check_backend(f"{FILE}:backend_{name}", cases=cases, jobs=2, timeout=timeout, examples=examples)


@pytest.mark.parametrize("catch", CATCHES, ids=lambda c: c.name)
def test_mistake_is_caught_at_the_expected_level(catch: Catch) -> None:
    bad = [r for r in run(catch.name, catch.cases) if r.status.is_bad]
    assert bad, f"nothing is wrong with {catch.name}"
    assert min(r.level for r in bad) == catch.level
    listed = [f"{r.status} {r.case}: {r.reason}" for r in bad]
    found = [r for r in bad if r.status is catch.status and r.case.startswith(catch.case)]
    assert any(catch.reason in r.reason for r in found), listed
    if catch.only:
        assert all(r.case.startswith(catch.only) for r in bad), listed


def test_correct_backend_passes() -> None:
    records = run("right", (*ALL, *LEAKS))
    assert not [r for r in records if r.status.is_bad]
    assert {r.level for r in records if r.status is Status.PASSED} == {0, 1, 2, 5}


def test_every_wrong_backend_is_tested() -> None:
    import wrong_backends

    assert {c.name for c in CATCHES} | {"right"} == set(wrong_backends.BACKENDS)


def test_crash_record_has_the_example_and_the_stack() -> None:
    (record,) = run("segfaults", ("Add[f32,drawn]",), 500)  # old versions of hypothesis rarely draw an empty tensor
    assert record.status is Status.CRASHED
    assert "Add(float32[" in record.reason
    assert "in segfaults" in record.details
    assert "--case 'Add[f32,drawn]' --seed 0" in record.repro
