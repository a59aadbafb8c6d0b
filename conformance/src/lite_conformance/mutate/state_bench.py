"""Trying a backend with a fault of state on the cases that look for such faults, level by level."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from lite_conformance.cases import contract, stress
from lite_conformance.cases.case import Case, Context, Settings
from lite_conformance.drive.subject import Subject
from lite_conformance.judge.outcome import Failure, Refused, Skipped
from lite_conformance.mutate.deadline import TimeUp, time_limit
from lite_conformance.mutate.state import StateBackend
from lite_conformance.mutate.verdict import Verdict

__all__ = ["try_backend"]

_SECONDS_PER_CASE = 120.0
#: Cases that compute nothing, and take seconds because they ask about every operator.
_WITHOUT_RUNS = ("contract[answers]", "contract[answers-for-unknown-shapes]", "contract[memory]")


def try_backend(backend: StateBackend, seed: int) -> Verdict:
    """Run the cases of levels 1 and 5 on a backend that supports one operator until one of them fails."""
    subject = _subject(backend.op)
    assert isinstance(subject.backend, StateBackend)
    subject.backend.become(backend)
    context = Context(subject, Settings(backend.name, seed))
    for case in _cases(backend.op):
        try:
            with time_limit(_SECONDS_PER_CASE):
                case.run(context)
        except (Refused, Skipped):
            continue
        except Failure as failure:
            return Verdict(True, case.level, case.name, failure.reason[:200])
        except TimeUp:
            return Verdict(True, case.level, case.name, f"not done after {_SECONDS_PER_CASE:g} s")
    return Verdict(False, reason="every case passed")


@cache
def _subject(op: str) -> Subject:
    """Return one subject for all mutants of an operator: searching for the cases that it supports takes seconds."""
    return Subject.first(StateBackend(op, lambda *_: None))


def _cases(op: str) -> Iterator[Case]:
    yield from (case for case in contract.cases() if case.name not in _WITHOUT_RUNS)
    yield from (case for case in stress.cases() if case.op == op)
