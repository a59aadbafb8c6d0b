"""What changed from one run to another: the same case, by name, in two reports."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from lite_conformance.reports.record import Record, Report, Status

__all__ = ["GROWTH", "Changes", "compare"]

#: A required tolerance that grew by more than this is reported.
GROWTH = 2.0


@dataclass(slots=True)
class Changes:
    """Pairs of places in ``before.records`` and ``after.records``.

    Attributes:
        regressed: passed before, and is bad now.
        fixed: was bad, and passes now.
        moved: any other change of status.
        added: places in ``after`` of cases that were not there.
        gone: places in ``before`` of cases that are no longer there.
        grown: needs more than :data:`GROWTH` times the tolerance, though it did not become bad.
    """

    regressed: list[tuple[int, int]] = field(default_factory=list)
    fixed: list[tuple[int, int]] = field(default_factory=list)
    moved: list[tuple[int, int]] = field(default_factory=list)
    added: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    grown: list[tuple[int, int]] = field(default_factory=list)


def compare(before: Report, after: Report) -> Changes:
    """What changed. A case is known by its suite and name; a run on several devices has it several times."""
    old = dict(_keyed(before))
    new = dict(_keyed(after))
    changes = Changes(
        added=[place for key, place in new.items() if key not in old],
        gone=[place for key, place in old.items() if key not in new],
    )
    for key, i in old.items():
        if key not in new:
            continue
        j = new[key]
        a, b = before.records[i], after.records[j]
        if a.status is Status.PASSED and b.status.is_bad:
            changes.regressed.append((i, j))
            continue
        if a.status.is_bad and b.status is Status.PASSED:
            changes.fixed.append((i, j))
        elif a.status is not b.status:
            changes.moved.append((i, j))
        if not b.status.is_bad and _growth(a, b) > GROWTH:
            changes.grown.append((i, j))
    return changes


def _keyed(report: Report) -> Iterator[tuple[tuple[str, str, int], int]]:
    seen: dict[tuple[str, str], int] = {}
    for place, record in enumerate(report.records):
        name = (record.suite, record.case)
        seen[name] = seen.get(name, 0) + 1
        yield (*name, seen[name]), place


def _growth(a: Record, b: Record) -> float:
    """How many times more tolerance is required, by the one of the two that grew more; 1 where nothing is known."""
    if a.measured is None or b.measured is None:
        return 1.0
    pairs = (
        (a.measured.required_rtol, b.measured.required_rtol),
        (a.measured.required_atol, b.measured.required_atol),
    )
    return max(_times(x, y) for x, y in pairs)


def _times(x: float, y: float) -> float:
    if not math.isfinite(x):
        return 1.0
    if not math.isfinite(y):
        return math.inf
    if x == 0:
        return 1.0 if y == 0 else math.inf
    return y / x
