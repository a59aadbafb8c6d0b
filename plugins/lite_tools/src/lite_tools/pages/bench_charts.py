"""Charts of a measurement as SVG: distributions of latencies, phases, and the course of the measurement.

Colours and fonts are those of the page's style sheet, which also has a dark version. The elements need no script; the
meaning of a mark is its tooltip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from lite_tools.pages.page import escaped

__all__ = ["Distribution", "PhaseBar", "course_chart", "distribution_chart", "phase_chart"]

_WIDTH, _LEFT, _RIGHT = 960, 210, 150
_BINS = 64
#: Latencies further apart than this ratio are drawn on a logarithmic axis.
_LOG_RATIO = 8.0
_COLOURS = 6


class Distribution(NamedTuple):
    """The latencies of a row of the chart in milliseconds, turn by turn, with the number of its colour."""

    name: str
    turns: Sequence[Sequence[float]]
    colour: int

    @property
    def times(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """All latencies."""
        return np.concatenate([np.asarray(turn, np.float64) for turn in self.turns])


class PhaseBar(NamedTuple):
    """The phases of a row of the chart: pairs of a name and milliseconds."""

    name: str
    phases: Sequence[tuple[str, float]]


class _Axis(NamedTuple):
    """A horizontal axis: a function from milliseconds to a coordinate, and the ticks."""

    place: Callable[[float], float]
    ticks: Sequence[float]


def distribution_chart(rows: Sequence[Distribution]) -> str:
    """Return the distribution of each row's latencies as an area, with marks at the median, p95 and p99."""
    highest = max(float(np.quantile(row.times, 0.99)) for row in rows) * 1.02
    lowest = min(float(row.times.min()) for row in rows) * 0.99
    axis = _axis(lowest, highest, is_log=highest / lowest > _LOG_RATIO)
    step, top = 58, 8
    bottom = top + step * len(rows)
    parts = [_grid(axis, top, bottom, "ms")]
    for number, row in enumerate(rows):
        middle = top + step * number + step / 2
        parts += _distribution(row, axis, middle, step * 0.36)
    return _svg(bottom + 34, "Distribution of latencies", parts)


def _distribution(row: Distribution, axis: _Axis, middle: float, height: float) -> list[str]:
    times = row.times
    coordinates = np.array([axis.place(float(time)) for time in times])
    inside = coordinates[coordinates <= _WIDTH - _RIGHT]
    counts, edges = np.histogram(inside, _BINS, (_LEFT, _WIDTH - _RIGHT))
    smooth = np.convolve(counts, (0.25, 0.5, 0.25), "same")
    halves = height * smooth / max(float(smooth.max()), 1.0)
    centres = (edges[:-1] + edges[1:]) / 2
    drawn = np.flatnonzero(smooth)
    outline = [(float(centres[n]), float(halves[n])) for n in range(drawn[0], drawn[-1] + 1)] if drawn.size else []
    above = [f"{x:.1f},{middle - h:.1f}" for x, h in outline]
    below = [f"{x:.1f},{middle + h:.1f}" for x, h in reversed(outline)]
    p50, p95, p99 = (float(q) for q in np.quantile(times, (0.5, 0.95, 0.99)))
    colour = f"c{row.colour % _COLOURS}"
    marks = [
        f'<line class="mark {kind}" x1="{axis.place(at):.1f}" x2="{axis.place(at):.1f}" y1="{middle - height:.1f}" '
        f'y2="{middle + height:.1f}"><title>{kind} {_ms(at)}</title></line>'
        for kind, at in (("p99", p99), ("p95", p95), ("p50", p50))
    ]
    return [
        _label(row.name, middle + 4),
        f'<polygon class="area {colour}" points="{" ".join((*above, *below))}">'
        f"<title>{escaped(row.name)}: {times.size} runs, {_ms(float(times.min()))} to {_ms(float(times.max()))}</title>"
        "</polygon>",
        *marks,
        f'<text class="value" x="{_WIDTH - _RIGHT + 12}" y="{middle - 1:.1f}">{_ms(p50)}</text>',
        f'<text class="quiet" x="{_WIDTH - _RIGHT + 12}" y="{middle + 15:.1f}">p95 {_ms(p95)}</text>',
    ]


def phase_chart(rows: Sequence[PhaseBar]) -> str:
    """Return a bar for each row, in which the phases follow each other."""
    axis = _axis(0.0, max(sum(ms for _, ms in row.phases) for row in rows) * 1.02 or 1.0)
    step, top = 36, 8
    bottom = top + step * len(rows)
    parts = [_grid(axis, top, bottom, "ms")]
    for number, row in enumerate(rows):
        middle, start = top + step * number + step / 2, 0.0
        parts.append(_label(row.name, middle + 4))
        for index, (name, ms) in enumerate(row.phases):
            left, right = axis.place(start), axis.place(start + ms)
            parts.append(
                f'<rect class="bar phase{index}" x="{left:.1f}" y="{middle - 9:.1f}" height="18" '
                f'width="{max(right - left, 0.5):.1f}"><title>{escaped(name)} {_ms(ms)}</title></rect>'
            )
            start += ms
        parts.append(f'<text class="value" x="{_WIDTH - _RIGHT + 12}" y="{middle + 4:.1f}">{_ms(start)}</text>')
    return _svg(bottom + 34, "Time of the phases before the measured runs", parts)


def course_chart(rows: Sequence[Distribution]) -> str:
    """Return the median of each turn in its order, as a difference from the row's median in percent."""
    lines = [
        (row, [100 * (float(np.median(turn)) / float(np.median(row.times)) - 1) for turn in row.turns]) for row in rows
    ]
    span = max(5.0, *(abs(value) for _, values in lines for value in values))
    span = min(span, 50.0)
    height, top, right = 150.0, 10.0, _WIDTH - 20
    most = max(len(values) for _, values in lines)
    parts = []
    for value in (-span, 0.0, span):
        y = top + height / 2 * (1 - value / span)
        parts.append(f'<line class="grid" x1="60" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick end" x="52" y="{y + 4:.1f}">{value:+.0f} %</text>' if value else "")
    parts.append(f'<text class="tick end" x="52" y="{top + height / 2 + 4:.1f}">median</text>')
    for row, values in lines:
        points = [
            f"{60 + (right - 60) * index / max(most - 1, 1):.1f},"
            f"{top + height / 2 * (1 - max(-span, min(span, value)) / span):.1f}"
            for index, value in enumerate(values)
        ]
        parts.append(
            f'<polyline class="line c{row.colour % _COLOURS}" points="{" ".join(points)}">'
            f"<title>{escaped(row.name)}</title></polyline>"
        )
    return _svg(top + height + 12, "Medians of the turns in their order", parts)


def _axis(low: float, high: float, is_log: bool = False) -> _Axis:
    width = _WIDTH - _LEFT - _RIGHT
    if is_log:
        low, ratio = max(low, 1e-9), math.log(high / max(low, 1e-9))
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = [m * 10.0**d for d in decades for m in (1, 2, 5) if low <= m * 10.0**d <= high]
        if len(ticks) > 9:
            ticks = [tick for tick in ticks if math.isclose(math.log10(tick), round(math.log10(tick)), abs_tol=1e-9)]
        return _Axis(lambda ms: _LEFT + width * math.log(max(ms, low) / low) / ratio, ticks)
    span = high - low or 1.0
    step = 10.0 ** math.floor(math.log10(span / 4))
    step *= next(m for m in (1, 2, 5, 10) if span / (step * m) <= 7)
    first = math.ceil(low / step)
    return _Axis(
        lambda ms: _LEFT + width * (ms - low) / span, [step * n for n in range(first, math.floor(high / step) + 1)]
    )


def _grid(axis: _Axis, top: float, bottom: float, unit: str) -> str:
    parts = []
    for tick in axis.ticks:
        x = axis.place(tick)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>')
        parts.append(f'<text class="tick mid" x="{x:.1f}" y="{bottom + 16}">{tick:g}</text>')
    parts.append(f'<text class="tick" x="{_WIDTH - _RIGHT + 12}" y="{bottom + 16}">{unit}</text>')
    return "".join(parts)


def _label(name: str, y: float) -> str:
    shown = name if len(name) <= 30 else f"{name[:29]}…"
    return f'<text class="name end" x="{_LEFT - 14}" y="{y:.1f}">{escaped(shown)}<title>{escaped(name)}</title></text>'


def _svg(height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<div class="scroll"><svg class="chart" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escaped(title)}">{"".join(parts)}</svg></div>'
    )


def _ms(ms: float) -> str:
    return f"{ms:.4g} ms" if ms < 1e4 else f"{ms / 1e3:.4g} s"
