"""Selection of the cases of a run by level and name, and the expectations of the backend's package."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lite_conformance.cases.case import Case, Settings
from lite_conformance.reports.record import Record, Status
from lite_conformance.run.expectations import Expectations, matches
from lite_core.errors import InputError

__all__ = ["apply_expectation", "parse_level", "select", "unmatched_entries"]


def parse_level(text: str) -> range:
    """Parse levels: ``"L2"`` or ``"2"`` for levels 0 to 2; ``"L5-L5"`` or ``"2-3"`` for exactly those.

    Raises:
        InputError: the text has neither form.
    """
    found = re.fullmatch(r"[Ll]?([0-5])(?:\s*(?:-|\.\.)\s*[Ll]?([0-5]))?", text.strip())
    if found is None or (found[2] is not None and found[1] > found[2]):
        raise InputError(f"a level is L0 to L5 (all up to it) or a range such as L2-L3, is {text!r}")
    first, last = found.groups()
    return range(int(first) + 1) if last is None else range(int(first), int(last) + 1)


def select(cases: Sequence[Case], levels: range, patterns: Sequence[str]) -> list[Case]:
    """Return the cases of some levels, or, if patterns are given, the cases of any level that match one of them.

    Raises:
        InputError: a pattern matches no case.
    """
    if not patterns:
        return [case for case in cases if case.level in levels]
    for pattern in patterns:
        if not any(matches(pattern, case.name) for case in cases):
            near = [c.name for c in cases if c.name.startswith(pattern.split("[")[0] + "[")][:5]
            hint = f"; similar names: {', '.join(near)}" if near else ""
            raise InputError(f"no case is called {pattern!r}{hint}; `lite-conformance --list` shows all")
    return [case for case in cases if any(matches(pattern, case.name) for pattern in patterns)]


def unmatched_entries(cases: Sequence[Case], expectations: Expectations, settings: Settings) -> list[Record]:
    """Return an error record for each entry of the backend's file that matches no case of the whole suite.

    Entries for cases that exist only with an option (``onnx[...]``, ``model[...]``) are ignored without the option.
    """
    names = [case.name for case in cases]
    optional = {"model[": bool(settings.models), "onnx[": any(name.startswith("onnx[") for name in names)}
    absent = tuple(prefix for prefix, exists in optional.items() if not exists)
    records = []
    for entry in expectations.unmatched(names):
        if entry.case.startswith(absent):
            continue
        name = f"expectations[{entry.kind}:{entry.case}]"
        record = Record(name, 0, "expectations", backend=settings.backend, status=Status.ERROR)
        record.reason = (
            f"{expectations.source}: [[{entry.kind}]] case = {entry.case!r} matches no case; remove or correct it"
        )
        records.append(record)
    return records


def apply_expectation(record: Record, expectations: Expectations) -> None:
    """Turn an expected failure into XFAIL, and a pass of a case that was expected to fail into XPASS."""
    entry = expectations.find("xfail", record.case)
    if entry is None or record.status in (Status.UNSUPPORTED, Status.SKIPPED, Status.ERROR):
        return
    record.expectation = entry.reason
    if record.status is Status.PASSED:
        record.status = Status.XPASS
        record.reason = f"passes although {expectations.source} says that it fails ({entry.reason}); remove the entry"
    else:
        record.status = Status.XFAIL
