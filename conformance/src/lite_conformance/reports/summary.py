"""Parts that all reports share: the verdict, groups by reason, numbers and names as text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from lite_conformance.reports.record import Record, Report, Status

__all__ = [
    "LEVEL_NAMES",
    "SEVERITY",
    "bad_records",
    "by_reason",
    "fact_lines",
    "loosened",
    "number",
    "pass_rate_text",
    "percent",
    "printable",
    "reason_text",
    "report_names",
    "seconds_text",
    "slowest",
    "tolerance_use",
    "verdict",
]

#: The names of the levels.
LEVEL_NAMES = {0: "probe", 1: "contract", 2: "operators", 3: "graphs", 4: "models", 5: "stress"}

#: Every status, the worst first.
SEVERITY = (
    Status.CRASHED,
    Status.HUNG,
    Status.ERROR,
    Status.FAILED,
    Status.XPASS,
    Status.XFAIL,
    Status.UNSUPPORTED,
    Status.SKIPPED,
    Status.PASSED,
)

# C0 without tab and line feed, DEL, C1, surrogates, the noncharacters U+FFFE and U+FFFF, the separators U+2028 and
# U+2029, and the marks for the direction of writing.
_NOT_PRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def printable(text: str) -> str:
    r"""Return the text with control characters escaped, such as ``\x1b``.

    The result is safe for a terminal and legal in XML 1.0. Tabs and line feeds stay; CR LF becomes LF.
    """
    return _NOT_PRINTABLE.sub(_escaped, text.replace("\r\n", "\n"))


def _escaped(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def number(value: float) -> str:
    """Format with at most three significant digits: ``0``, ``1.25e-05``, ``0.031``, ``12``, ``inf``, ``nan``."""
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if value == 0:
        return "0"
    size = abs(value)
    if 1e-3 <= size < 1e5:
        return f"{value:.0f}" if size >= 1000 else f"{value:.3g}"
    mantissa, exponent = f"{value:.2e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent):+03d}"


def percent(share: float | None) -> str:
    """Format as ``97.3 %``, or a dash for None. Never rounds up to ``100 %``."""
    if share is None or not math.isfinite(share):
        return "–"
    rounded = math.floor(share * 1000) / 10 if share < 1 else 100.0
    return f"{rounded:.0f} %" if rounded in (0.0, 100.0) else f"{rounded:.1f} %"


def seconds_text(seconds: float) -> str:
    """Format a duration: ``35 ms``, ``4.2 s``, ``95 s``, ``12 min 5 s``."""
    if not math.isfinite(seconds):
        return "–"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 120:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def verdict(report: Report, name: str = "") -> str:
    """Return one line: ``host: 6,812 passed, 0 failed, 120 unsupported in 95 s``.

    Passed and failed are always included, the other statuses only if there are such cases.
    """
    counts = report.counts()
    tested = report.header.get("package") or report.header.get("backend") or "conformance"
    name = name or printable(str(tested))
    parts = [f"{counts[Status.PASSED]:,} passed", f"{counts[Status.FAILED]:,} failed"]
    for status in (*SEVERITY[:3], *SEVERITY[4:-1]):
        if counts[status]:
            parts.append(f"{counts[status]:,} {status}")
    line = f"{name}: {', '.join(parts)} in {seconds_text(report.seconds)}"
    line += "" if counts["executed"] else "; nothing was executed"
    return f"{line}; {printable(report.incomplete)}" if report.incomplete else line


def pass_rate_text(report: Report) -> str:
    """Return the weighted pass rate with its meaning: of which cases, and how much of real models they stand for.

    Empty if there is no rate, because the report has no case of an operator that real models use.
    """
    rate = report.weighted_pass_rate()
    if rate is None:
        return ""
    operators = len({r.op for r in report.records if r.op and r.level == 2})
    return (
        f"weighted pass rate: {percent(rate)} of {operators:,} operator(s), which are "
        f"{percent(report.weight_covered())} of the nodes of real models"
    )


def bad_records(report: Report) -> list[Record]:
    """Return the cases that make the run fail, the worst status first, then the operators of most weight."""
    rank = {status: index for index, status in enumerate(SEVERITY)}
    return sorted((r for r in report.records if r.status.is_bad), key=lambda r: (rank[r.status], -r.weight))


def reason_text(record: Record) -> str:
    """Return the reason by which records are grouped: the one in the backend's package, else the one of the run."""
    return (record.expectation or record.reason or "no reason given").strip()


def by_reason(records: Iterable[Record], status: Status) -> list[tuple[str, list[Record]]]:
    """Return the records of one status, grouped by reason, the largest group first."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        if record.status is status:
            groups.setdefault(reason_text(record), []).append(record)
    return sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))


def loosened(report: Report) -> list[Record]:
    """Return the cases whose tolerance is larger than the suite's default."""
    return [r for r in report.records if r.tolerance is not None and r.tolerance.loosened]


def slowest(report: Report, count: int = 5) -> list[Record]:
    """Return the slowest cases, the slowest first."""
    timed = (r for r in report.records if r.seconds > 0)
    return sorted(timed, key=lambda r: -r.seconds)[:count]


def tolerance_use(record: Record) -> float | None:
    """Return the used share of the tolerance: 1 is all of it, 3 three times too much; None if nothing was compared.

    For a failure it is the smaller share of rtol and atol, for a pass the larger one. A required tolerance that is
    not finite, or that exceeds an allowed 0, gives infinity.
    """
    if record.measured is None or record.tolerance is None:
        return None
    relative = _share(record.measured.required_rtol, record.tolerance.rtol)
    absolute = _share(record.measured.required_atol, record.tolerance.atol)
    return min(relative, absolute) if min(relative, absolute) > 1 else max(relative, absolute)


def _share(required: float, allowed: float) -> float:
    if required == 0:
        return 0.0
    if not math.isfinite(required) or allowed == 0:
        return math.inf
    return required / allowed


def fact_lines(header: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the header as pairs of a label and a text, the known keys first, without empty values."""
    known = (
        *("incomplete", "backend", "device", "plugin", "stack", "platform", "versions", "suite"),
        *("options", "started"),
    )
    keys = [*(k for k in known if k in header), *(k for k in header if k not in known)]
    pairs = [(str(key), printable(_as_text(header[key]))) for key in keys]
    return [(label, text) for label, text in pairs if text]


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{k} {_as_text(v)}".rstrip() for k, v in value.items() if v is not None)
    if isinstance(value, (list, tuple)):
        return ", ".join(_as_text(v) for v in value)
    return str(value)


def report_names(reports: Sequence[Report]) -> list[str]:
    """Return a distinct name for each report: its backend, with an addition if backends repeat.

    The addition is the first of these that distinguishes all reports: the versions that differ, the plugin, the
    device, the time of the run, a number.
    """
    plain = [printable(str(r.header.get("backend") or "")) or "report" for r in reports]
    if len(set(plain)) == len(plain):
        return plain
    versions = [_versions(report) for report in reports]
    differing = {name for found in versions for name in found if len({other.get(name) for other in versions}) > 1}
    candidates = [
        [_as_text({name: found[name] for name in found if name in differing}) for found in versions],
        [_as_text(r.header.get("plugin")) for r in reports],
        [_as_text(r.header.get("device")) for r in reports],
        [_as_text(r.header.get("started")) for r in reports],
        [f"({number})" for number in range(1, len(reports) + 1)],
    ]
    named = [[f"{name} {printable(more)}".strip() for name, more in zip(plain, extra)] for extra in candidates]
    return next((names for names in named if len(set(names)) == len(names)), named[-1])


def _versions(report: Report) -> dict[str, str]:
    given = report.header.get("versions")
    return {str(k): str(v) for k, v in given.items()} if isinstance(given, dict) else {}
