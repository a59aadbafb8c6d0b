"""Changes between two reports, case by case."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lite_conformance.reports.record import Record, Report, Status

__all__ = ["GROWTH", "Changes", "compare", "setting_changes"]

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
        settings: see :func:`setting_changes`.
    """

    regressed: list[tuple[int, int]] = field(default_factory=list)
    fixed: list[tuple[int, int]] = field(default_factory=list)
    moved: list[tuple[int, int]] = field(default_factory=list)
    added: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    grown: list[tuple[int, int]] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)

    def is_empty(self) -> bool:
        """Return True if no case changed."""
        return not (self.regressed or self.fixed or self.moved or self.added or self.gone or self.grown)


def compare(before: Report, after: Report) -> Changes:
    """Compare two reports. Cases are matched by suite, name and occurrence: a run on several devices repeats names."""
    old = dict(_keyed_records(before))
    new = dict(_keyed_records(after))
    changes = Changes(
        added=[index for key, index in new.items() if key not in old],
        gone=[index for key, index in old.items() if key not in new],
        settings=setting_changes(before.header, after.header),
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


#: Parts of a header whose values tell under which conditions a run was judged, and how a difference is introduced.
_CONDITIONS = {"device": "device", "plugin": "package", "versions": "", "suite": "the suite's", "stack": "stack:"}
_VERSIONS, _SUITE = "versions", "suite"


def setting_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return what differs between the headers of two reports: versions, references, tolerances, cases, device, stack.

    ``lite-core 0.1.0 → 0.2.0``. Of two backends, the first line has their names, and what only one of them has is left
    out. If the references, tolerances or cases differ, the last line says that a change of a case may come from the
    suite instead of the backend.
    """
    lines = []
    conditions = dict(_CONDITIONS)
    is_other_backend = before.get("backend") != after.get("backend")
    if is_other_backend:
        lines.append(f"backend {before.get('backend')} → {after.get('backend')}")
        conditions = {key: _CONDITIONS[key] for key in (_VERSIONS, _SUITE)}
    for key, title in conditions.items():
        one, other = before.get(key), after.get(key)
        if isinstance(one, Mapping) or isinstance(other, Mapping):
            pairs = [(f"{title} {name}".strip(), a, b) for name, a, b in _pairs(one, other)]
            if is_other_backend and key == _VERSIONS:
                pairs = [(name, a, b) for name, a, b in pairs if a and b]
        else:
            pairs = [(title, one, other)] if one != other else []
        lines += [f"{name} {a or 'not named'} → {b or 'not named'}" for name, a, b in pairs]
    if before.get(_SUITE) != after.get(_SUITE):
        lines.append("the two runs were judged by different suites: a change may come from the suite, not the backend")
    return lines


def _pairs(one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    before = one if isinstance(one, Mapping) else {}
    after = other if isinstance(other, Mapping) else {}
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield str(name), before.get(name), after.get(name)


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
