"""Changes between two reports, case by case."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from lite_conformance.reports.record import Record, Report, Status

__all__ = ["GROWTH", "Changes", "compare"]

#: Growth of the required tolerance from which a case is reported, as a factor.
GROWTH = 2.0


@dataclass(slots=True)
class Changes:
    """Changes, as pairs of indices into ``before.records`` and ``after.records``.

    Attributes:
        regressed: passed before, bad now.
        fixed: bad before, passed now.
        moved: any other change of status.
        added: indices in ``after`` of new cases.
        gone: indices in ``before`` of cases that no longer exist.
        grown: cases that require more than :data:`GROWTH` times the tolerance, and are not bad.
    """

    regressed: list[tuple[int, int]] = field(default_factory=list)
    fixed: list[tuple[int, int]] = field(default_factory=list)
    moved: list[tuple[int, int]] = field(default_factory=list)
    added: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    grown: list[tuple[int, int]] = field(default_factory=list)


def compare(before: Report, after: Report) -> Changes:
    """Compare two reports. Cases are matched by suite, name and occurrence: a run on several devices repeats names."""
    old = dict(_keyed_records(before))
    new = dict(_keyed_records(after))
    changes = Changes(
        added=[index for key, index in new.items() if key not in old],
        gone=[index for key, index in old.items() if key not in new],
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


def _keyed_records(report: Report) -> Iterator[tuple[tuple[str, str, int], int]]:
    seen: dict[tuple[str, str], int] = {}
    for index, record in enumerate(report.records):
        name = (record.suite, record.case)
        seen[name] = seen.get(name, 0) + 1
        yield (*name, seen[name]), index


def _growth(a: Record, b: Record) -> float:
    """Return the larger growth factor of the required rtol and atol; 1 if nothing was measured."""
    if a.measured is None or b.measured is None:
        return 1.0
    pairs = (
        (a.measured.required_rtol, b.measured.required_rtol),
        (a.measured.required_atol, b.measured.required_atol),
    )
    return max(_growth_factor(x, y) for x, y in pairs)


def _growth_factor(x: float, y: float) -> float:
    if not math.isfinite(x):
        return 1.0
    if not math.isfinite(y):
        return math.inf
    if x == 0:
        return 1.0 if y == 0 else math.inf
    return y / x
