"""JUnit XML for CI systems: one test suite per suite of the run, one test case per case."""

from __future__ import annotations

import math
import os
import re
from xml.etree import ElementTree

from lite_conformance.reports.files import replace_text
from lite_conformance.reports.record import Record, Report, Status
from lite_conformance.reports.summary import fact_lines, number, printable, reason_text

__all__ = ["write_junit"]

_SKIPPED = (Status.XFAIL, Status.UNSUPPORTED, Status.SKIPPED)
_FAILURE = (Status.FAILED, Status.XPASS)


def write_junit(report: Report, file: str | os.PathLike[str]) -> None:
    r"""Write the report as JUnit XML.

    ``failed`` and ``xpass`` become ``<failure>``; ``crashed``, ``hung`` and ``error`` become ``<error>``;
    ``xfail``, ``unsupported`` and ``skipped`` become ``<skipped>``. Control characters, which XML does not allow,
    are escaped (``\x1b``). A run that is not complete has one more ``<error>``, in the test suite ``run``.
    """
    suites: dict[str, list[Record]] = {}
    for record in report.records:
        suites.setdefault(record.suite, []).append(record)
    backend = str(report.header.get("backend") or "")
    root = ElementTree.Element("testsuites", {"name": printable(f"lite-conformance {backend}".strip())})
    totals = _totals(report.records, report.seconds)
    root.attrib.update(
        {key: totals[key] for key in totals if key != "skipped"}
    )  # Jenkins' schema does not allow it here
    for name, records in suites.items():
        suite = ElementTree.SubElement(root, "testsuite", {"name": printable(name)})
        suite.attrib.update(_totals(records, sum(r.seconds for r in records)))
        if started := _timestamp(report):
            suite.set("timestamp", started)
        properties = ElementTree.SubElement(suite, "properties")
        for key, value in fact_lines(report.header):
            ElementTree.SubElement(properties, "property", {"name": printable(key), "value": printable(value)})
        for record in records:
            suite.append(_case(record, backend))
    if report.incomplete:
        _add_incomplete(root, report)
    ElementTree.indent(root, " ")
    text = ElementTree.tostring(root, encoding="unicode")
    replace_text(file, f"<?xml version='1.0' encoding='utf-8'?>\n{text}")


def _add_incomplete(root: ElementTree.Element, report: Report) -> None:
    """Add a test case that fails, so that a run of which only the first cases ran does not look like a success."""
    why = printable(report.incomplete)
    counts = {"tests": "1", "failures": "0", "errors": "1", "skipped": "0", "time": "0.000"}
    suite = ElementTree.SubElement(root, "testsuite", {"name": "run", **counts})
    case = ElementTree.SubElement(suite, "testcase", {"classname": "run", "name": "complete", "time": "0.000"})
    ElementTree.SubElement(case, "error", {"message": why, "type": "incomplete"}).text = why
    for key in ("tests", "errors"):
        root.set(key, str(int(root.get(key, "0")) + 1))


def _case(record: Record, backend: str) -> ElementTree.Element:
    qualifiers = [record.backend or backend, record.suite, record.op]
    case = ElementTree.Element(
        "testcase",
        {
            "classname": printable(".".join(part for part in qualifiers if part)),
            "name": printable(record.case),
            "time": _seconds(record.seconds),
        },
    )
    if record.status in _SKIPPED:
        ElementTree.SubElement(case, "skipped", {"message": printable(f"{record.status}: {reason_text(record)}")})
    elif record.status.is_bad:
        tag = "failure" if record.status in _FAILURE else "error"
        message = record.reason or record.expectation or str(record.status)
        found = ElementTree.SubElement(case, tag, {"message": printable(message), "type": str(record.status)})
        found.text = printable(_failure_text(record))
    return case


def _failure_text(record: Record) -> str:
    """Return the description of a bad case, the reason first."""
    lines = [record.reason or str(record.status)]
    if record.expectation:
        lines.append(f"expectation: {record.expectation}")
    if record.device:
        lines.append(f"device: {record.device}")
    if record.tolerance is not None:
        loose = f", loosened: {record.tolerance.reason}" if record.tolerance.loosened else ""
        lines.append(f"allowed: rtol {number(record.tolerance.rtol)}, atol {number(record.tolerance.atol)}{loose}")
    if record.measured is not None:
        m = record.measured
        lines += [
            f"required: rtol {number(m.required_rtol)} or atol {number(m.required_atol)}",
            f"measured: max abs {number(m.max_abs)}, max rel {number(m.max_rel)}, "
            f"max ULP {number(m.max_ulp)}, NMSE {number(m.nmse)}",
            f"wrong elements: {m.wrong} of {m.elements}",
        ]
        if m.worst:
            lines.append(f"worst: {m.worst}")
    if record.repro:
        lines.append(f"repeat: {record.repro}")
    if record.details:
        lines += ["", record.details]
    return "\n".join(lines)


def _totals(records: list[Record], seconds: float) -> dict[str, str]:
    return {
        "tests": str(len(records)),
        "failures": str(sum(r.status in _FAILURE for r in records)),
        "errors": str(sum(r.status.is_bad and r.status not in _FAILURE for r in records)),
        "skipped": str(sum(r.status in _SKIPPED for r in records)),
        "time": _seconds(seconds),
    }


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}" if math.isfinite(seconds) else "0.000"


def _timestamp(report: Report) -> str:
    """Return the start as ``2025-01-31T12:00:00``, without a time zone, which not all readers of JUnit accept."""
    found = re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", str(report.header.get("started") or ""))
    return found.group() if found else ""
