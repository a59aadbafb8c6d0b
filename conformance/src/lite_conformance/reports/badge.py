"""A badge: the result of a report as a small SVG picture, for the page of a package."""

from __future__ import annotations

from html import escape

from lite_conformance.reports.record import Report, Status
from lite_conformance.reports.summary import printable

__all__ = ["badge_svg", "badge_text"]

_COLOURS = {"good": "#2e7d32", "bad": "#b3261e", "unknown": "#5f6368"}
_HEIGHT, _MARGIN = 20, 7
#: Widths of characters in Verdana of 11 pixels: narrow ones, wide ones, all others.
_NARROW, _WIDE = set("fijlrtI.,:;|!'()[] -"), set("mwMWQ%@")


def badge_text(report: Report) -> tuple[str, str]:
    """Return the text of a badge and its kind: ``good``, ``bad`` or ``unknown``."""
    counts = report.counts()
    bad = sum(record.status.is_bad for record in report.records)
    if bad:
        return f"{bad:,} of {len(report.records):,} bad", "bad"
    if report.incomplete or not report.something_ran():
        return "not finished" if report.incomplete else "nothing ran", "unknown"
    required = report.header.get("must_pass")
    if isinstance(required, dict) and report.header.get("profile") and required.get("cases") == len(report.records):
        passed, title = counts[Status.PASSED], f"{report.header['profile']} v{required.get('version')}"
        if passed == len(report.records):
            return title, "good"
        return f"{title}: {passed:,} of {len(report.records):,}", "bad"
    return f"{counts[Status.PASSED]:,} passed", "good"


def badge_svg(label: str, message: str, kind: str) -> str:
    """Return a badge with two texts side by side.

    Args:
        label: the left text.
        message: the right text.
        kind: ``good``, ``bad`` or ``unknown``: the colour of the right half.
    """
    label, message = printable(label), printable(message)
    left, right = _width(label) + 2 * _MARGIN, _width(message) + 2 * _MARGIN
    total = left + right
    title = escape(f"{label}: {message}")

    def text(words: str, middle: float) -> str:
        return f'<text x="{middle:g}" y="14" text-anchor="middle">{escape(words)}</text>'

    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{_HEIGHT}" role="img" aria-label="{title}">'
        f"<title>{title}</title>"
        f'<clipPath id="r"><rect width="{total}" height="{_HEIGHT}" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{left}" height="{_HEIGHT}" fill="#3c4043"/>'
        f'<rect x="{left}" width="{right}" height="{_HEIGHT}" fill="{_COLOURS[kind]}"/></g>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f"{text(label, left / 2)}{text(message, left + right / 2)}</g></svg>\n"
    )


def _width(text: str) -> int:
    return round(sum(4 if c in _NARROW else 10 if c in _WIDE else 7 for c in text))
