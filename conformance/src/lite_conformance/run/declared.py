"""The entries a backend's package declares, applied to the records of a run."""

from __future__ import annotations

from lite_conformance.cases.case import Settings
from lite_conformance.cases.catalogue import operator_names, possible_cases
from lite_conformance.cases.patterns import literal_start
from lite_conformance.reports.record import Record, Status
from lite_conformance.run.expectations import Expectations
from lite_conformance.run.selection import ALL_LEVELS

__all__ = ["apply_expectation", "unmatched_entries"]


_OPTIONAL = ("onnx[", "precision[")


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


def unmatched_entries(expectations: Expectations, settings: Settings) -> list[Record]:
    """Return an error record for each entry of the backend's file that matches no case of the whole suite.

    Entries for cases that exist only with an option (``onnx[...]``, ``model[...]``, ``precision[...]``) are ignored
    without the option, those for operators of plugins (``acme.Squish[...]``) while no plugin has operators of this
    domain.
    """
    patterns = [entry.case for entry in expectations.entries]
    if not patterns or settings.plugin:
        return []
    names = [case.name for case in possible_cases(settings, ALL_LEVELS, patterns)]
    optional = {"model[": bool(settings.models), **{p: any(n.startswith(p) for n in names) for p in _OPTIONAL}}
    absent = tuple(prefix for prefix, exists in optional.items() if not exists)
    records = []
    for entry in expectations.unmatched(names):
        if entry.case.startswith(absent) or _is_of_absent_domain(entry.case):
            continue
        name = f"expectations[{entry.kind}:{entry.case}]"
        record = Record(name, 0, "expectations", backend=settings.backend, status=Status.ERROR)
        record.reason = (
            f"{expectations.source}: [[{entry.kind}]] case = {entry.case!r} matches no case; remove or correct it"
        )
        records.append(record)
    return records


def _is_of_absent_domain(pattern: str) -> bool:
    """Return True if a pattern names the domain of operators, and no operator of this domain is installed."""
    domain = literal_start(pattern).partition("[")[0].rpartition(".")[0]
    return domain not in ("", "lite") and not any(name.startswith(f"{domain}.") for name in operator_names())
