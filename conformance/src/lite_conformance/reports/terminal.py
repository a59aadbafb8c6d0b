"""The summary of a run on the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from rich.console import Console
from rich.text import Text

from lite_conformance.reports.record import Record, Report, Status
from lite_conformance.reports.summary import (
    LEVEL_NAMES,
    SEVERITY,
    bad_records,
    by_reason,
    loosened,
    number,
    pass_rate_text,
    printable,
    reason_text,
    seconds_text,
    slowest,
    tolerance_use,
    verdict,
)
from lite_tools.commands import table

__all__ = ["print_summary"]

_STYLES = {
    Status.PASSED: "green",
    Status.FAILED: "bold red",
    Status.CRASHED: "bold magenta",
    Status.HUNG: "bold magenta",
    Status.ERROR: "bold red",
    Status.XPASS: "bold yellow",
    Status.XFAIL: "yellow",
    Status.UNSUPPORTED: "dim",
    Status.SKIPPED: "dim",
}
_COLUMNS = (Status.PASSED, *(status for status in reversed(SEVERITY[:-1])))
_MAX_BAD_SHOWN = 40
_MAX_GROUPS_SHOWN = 6


def print_summary(report: Report, console: Console) -> None:
    """Print levels, bad cases, unsupported cases with reasons, loosened tolerances, slow cases and the verdict.

    If the console is not a terminal, the output has no colours and frames. Texts of the report are printed
    literally, with control characters escaped.
    """
    if report.records:
        _levels(console, report)
        _print(console)
    broken = bad_records(report)
    for record in broken[:_MAX_BAD_SHOWN]:
        _bad_case(console, record)
    if len(broken) > _MAX_BAD_SHOWN:
        _print(console, f"... and {len(broken) - _MAX_BAD_SHOWN:,} more; the HTML and JSON reports have them all")
    if broken:
        _print(console)
    _groups(console, "unsupported", by_reason(report.records, Status.UNSUPPORTED))
    _groups(console, "expected failures", by_reason(report.records, Status.XFAIL))
    _groups(console, "skipped", by_reason(report.records, Status.SKIPPED))
    _loosened(console, report)
    _slowest(console, report)
    _verdict(console, report, broken)


def _levels(console: Console, report: Report) -> None:
    shown = [s for s in _COLUMNS if s is Status.PASSED or any(r.status is s for r in report.records)]
    rows = []
    for level in sorted({r.level for r in report.records}):
        cases = [r for r in report.records if r.level == level]
        counts = [sum(r.status is status for r in cases) for status in shown]
        name = f"L{level} {LEVEL_NAMES.get(level, '')}".rstrip()
        rows.append((name, *(f"{n:,}" if n else "-" for n in counts), seconds_text(sum(r.seconds for r in cases))))
    table(("level", *(status.value for status in shown), "time"), rows, output=console)


def _bad_case(console: Console, record: Record) -> None:
    line = Text()
    line.append(str(record.status).upper(), style=_STYLES[record.status])
    line.append(f" {_one_line(record.case)}", style="bold")
    reason = record.reason or (reason_text(record) if record.expectation else "")
    if reason:
        line.append(f": {_one_line(reason)}")
    _print(console, line)
    if record.measured is not None and record.tolerance is not None:
        _print(console, f"  {_needs(record)}")
    if record.repro:
        _print(console, Text(f"  {printable(record.repro)}", style="cyan"), whole=True)


def _needs(record: Record) -> str:
    """Return ``worst y[0]: 1.25, expected 1.5; needs rtol 0.2 (used 1e-05) or atol 0.25 (used 1e-06)``."""
    measured, tolerance = record.measured, record.tolerance
    assert measured is not None
    assert tolerance is not None
    is_in_reason = not measured.worst or measured.worst in record.reason
    worst = "" if is_in_reason else f"worst {_one_line(measured.worst)}; "
    share = tolerance_use(record) or 0.0
    times = f", {number(share)} times too much" if 1 < share < float("inf") else ""
    pairs = (("rtol", measured.required_rtol, tolerance.rtol), ("atol", measured.required_atol, tolerance.atol))
    ways = [f"{kind} {number(needed)} (used {number(used)})" for kind, needed, used in pairs if isfinite(needed)]
    return worst + (f"needs {' or '.join(ways)}{times}" if ways else "no tolerance would do")


def _groups(console: Console, title: str, groups: list[tuple[str, list[Record]]]) -> None:
    if not groups:
        return
    total = sum(len(records) for _, records in groups)
    _print(console, Text(f"{title}: {total:,}", style="bold"))
    for reason, records in groups[:_MAX_GROUPS_SHOWN]:
        _print(console, f"  {len(records):>6,}  {_one_line(reason)}{_operators(records)}")
    if len(groups) > _MAX_GROUPS_SHOWN:
        rest = groups[_MAX_GROUPS_SHOWN:]
        _print(console, f"  {sum(len(r) for _, r in rest):>6,}  for {len(rest):,} other reason(s)")
    _print(console)


def _loosened(console: Console, report: Report) -> None:
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in loosened(report):
        if (t := record.tolerance) is not None:
            rtol, atol = (number(value) for value in t.default)
            change = f"rtol {number(t.rtol)} (default {rtol}), atol {number(t.atol)} (default {atol})"
            groups.setdefault((t.reason or "no reason given", change), []).append(record)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    _groups(console, "loosened tolerances", [(f"{change}: {reason}", records) for (reason, change), records in ordered])


def _slowest(console: Console, report: Report) -> None:
    records = slowest(report)
    if not records:
        return
    _print(console, Text("slowest", style="bold"))
    for record in records:
        _print(console, f"  {seconds_text(record.seconds):>10}  {_one_line(record.case)}")
    _print(console)


def _verdict(console: Console, report: Report, broken: list[Record]) -> None:
    executed = report.counts()["executed"]
    if rate := pass_rate_text(report):
        _print(console, rate)
    style = "bold red" if broken or not executed or report.incomplete else "bold green"
    _print(console, Text(verdict(report), style=style))
    command = next((record.repro for record in broken if record.repro), "")
    if command:
        _print(console, f"next: {printable(command)}")


def _operators(records: Iterable[Record]) -> str:
    names = sorted({_one_line(record.op) for record in records if record.op})
    if not names:
        return ""
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f" ({', '.join(names[:4])}{more})"


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())


def _print(console: Console, what: Text | str = "", *, whole: bool = False) -> None:
    """Print without markup, emoji and highlighting; wrapped in a terminal, unless it is ``whole``, to be copied."""
    # NOTE: a stream that is not UTF-8 (a log, an old Windows console) raises on characters it cannot encode.
    plain = str(what).encode(console.encoding, "backslashreplace").decode(console.encoding)
    if isinstance(what, Text):
        what.plain = plain
    is_whole = whole or isinstance(what, str) or not console.file.isatty()  # the shared console wraps texts itself
    console.print(what if isinstance(what, Text) else plain, markup=False, emoji=False, soft_wrap=is_whole)
