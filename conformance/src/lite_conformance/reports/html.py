"""A self-contained HTML page about one run, or about several side by side.

The page consists of the files in ``page/``, inlined into one file that loads nothing. It embeds the records as
JSON, which its script renders.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Sequence
from dataclasses import asdict
from importlib import resources
from typing import Any

from lite_conformance.judge.compare import Measured
from lite_conformance.judge.tolerances import Tolerance
from lite_conformance.reports.changes import GROWTH, compare
from lite_conformance.reports.files import replace_text
from lite_conformance.reports.record import Record, Report, Status
from lite_conformance.reports.summary import (
    LEVEL_NAMES,
    SEVERITY,
    fact_lines,
    pass_rate_text,
    percent,
    printable,
    report_names,
    tolerance_use,
    verdict,
)
from lite_core.errors import InputError
from lite_tools.commands import content_policy, embedded_json

__all__ = ["render_html", "write_html"]

#: The scripts of the page, in the order of their dependencies.
_SCRIPTS = (
    "model.js",
    "dom.js",
    "filters.js",
    "cases.js",
    "summary.js",
    "changes.js",
    "grid.js",
    "sides.js",
    "matrix.js",
    "lists.js",
    "main.js",
)


def write_html(reports: Sequence[Report], file: str | os.PathLike[str], names: Sequence[str] | None = None) -> None:
    """Write the page. Several reports are shown side by side, each compared with the first.

    Args:
        reports: the reports, at least one.
        file: the file to write.
        names: a name for each report; by default its backend, with an addition that distinguishes it from the others.

    Raises:
        InputError: there is no report, or the numbers of names and reports differ.
    """
    replace_text(file, render_html(reports, names))


def render_html(reports: Sequence[Report], names: Sequence[str] | None = None) -> str:
    """Return the page as text. See :func:`write_html`."""
    if not reports:
        raise InputError("an HTML report needs at least one run, got none; pass the reports to show")
    if names is not None and len(names) != len(reports):
        raise InputError(f"expected a name for each of the {len(reports)} report(s), got {len(names)}: {list(names)}")
    shown = [printable(name) for name in names] if names is not None else report_names(reports)
    title = " and ".join(shown) if len(shown) < 3 else f"{shown[0]} and {len(shown) - 1} more"
    style = _page_file("style.css")
    script = '"use strict";\n(() => {\n' + "\n".join(_page_file(name) for name in _SCRIPTS) + "})();\n"
    parts = {
        "title": html.escape(printable(f"{title} · conformance")),
        "policy": content_policy(style, script),
        "style": style,
        "data": embedded_json(_page_data(reports, shown)),
        "script": script,
    }
    # NOTE: a single pass over the template: "{{script}}" in the text of a report is not replaced.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _page_file("page.html"))


def _page_data(reports: Sequence[Report], names: Sequence[str]) -> dict[str, Any]:
    tolerances: dict[Tolerance, int] = {}
    shown = [_report_data(report, name, tolerances) for report, name in zip(reports, names)]
    return {
        "levels": LEVEL_NAMES,
        "severity": [status.value for status in SEVERITY],
        "bad": [status.value for status in Status if status.is_bad],
        "growth": GROWTH,
        "tolerances": [_tolerance_data(tolerance) for tolerance in tolerances],
        "reports": shown,
        "changes": [_changes_data(reports[0], after) for after in reports[1:]],
    }


def _changes_data(before: Report, after: Report) -> dict[str, Any]:
    found = asdict(compare(before, after))
    return {**found, "settings": [printable(line) for line in found["settings"]]}


def _report_data(report: Report, name: str, tolerances: dict[Tolerance, int]) -> dict[str, Any]:
    counts = report.counts()
    return {
        "name": name,
        "verdict": verdict(report, name),
        "facts": fact_lines(report.header),
        "counts": counts,
        "incomplete": printable(report.incomplete),
        "rate": percent(report.weighted_pass_rate()),
        "rate_text": pass_rate_text(report),
        "seconds": report.seconds,
        "records": [_record_data(record, tolerances) for record in report.records],
    }


def _record_data(record: Record, tolerances: dict[Tolerance, int]) -> dict[str, Any]:
    """Return the record without empty and zero fields, and its tolerance as an index into the list of tolerances."""
    fields: dict[str, Any] = {k: getattr(record, k) for k in Record.__slots__ if k not in ("tolerance", "measured")}
    slim = {k: printable(v) if isinstance(v, str) else v for k, v in fields.items() if v or k == "level"}
    slim["status"] = record.status.value
    if record.tolerance is not None:
        slim["tolerance"] = tolerances.setdefault(record.tolerance, len(tolerances))
    if (used := tolerance_use(record)) is not None:
        slim["used"] = used
    if record.measured is not None:
        measured = {k: v for k in Measured.__slots__ if (v := getattr(record.measured, k))}
        slim["measured"] = {k: printable(v) if isinstance(v, str) else v for k, v in measured.items()}
    return slim


def _tolerance_data(tolerance: Tolerance) -> dict[str, Any]:
    return {**asdict(tolerance), "source": printable(tolerance.source), "reason": printable(tolerance.reason)}


def _page_file(name: str) -> str:
    return (resources.files(__package__) / "page" / name).read_text(encoding="utf-8")
