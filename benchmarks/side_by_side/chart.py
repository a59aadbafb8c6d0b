"""Chart of the results as SVG: each engine's speed on each model, relative to the fastest peer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from side_by_side.conditions import Condition
from side_by_side.engines import ENGINES, LITE
from side_by_side.recorded import Cell

__all__ = ["drawing"]

_COLOURS = {
    "lite": "#d1495b",
    "onnxruntime": "#30638e",
    "openvino": "#5b9ec9",
    "paddle": "#9aa5b1",
    "paddle_lite": "#cdd3da",
    "iree": "#7d9d86",
}
_INK, _FAINT, _LOSS = "#1d2530", "#5b6675", "#fbe3e6"
_BAR, _ROW_GAP = 6, 9  # height of a bar, and distance of two models, in pixels
_NAMES, _PANEL, _PANEL_GAP, _NUMBER = 148, 262, 22, 34  # widths: models' names, bars, between panels, Lite's number
_TOP, _BOTTOM, _MARGIN = 92, 44, 16


def drawing(cells: Iterable[Cell], processor: str) -> str:
    """Return the chart of one processor: a panel for each condition, and a row for each model.

    Rows in which Lite is slower than another engine are tinted, and their numbers bold.

    Args:
        cells: the cells to show.
        processor: the processor, for the title.
    """
    shown = [cell for cell in cells if cell.ratio is not None]
    conditions = sorted({cell.condition for cell in shown})
    titles = list(dict.fromkeys(cell.title for cell in shown))
    engines = [name for name in _COLOURS if any(name in cell.engines for cell in shown)]
    row = _BAR * max(1, len(engines)) + _ROW_GAP
    width = 2 * _MARGIN + _NAMES + len(conditions) * (_PANEL + _NUMBER + _PANEL_GAP)
    height = _TOP + row * len(titles) + _BOTTOM
    days = sorted({cell.measured for cell in shown})
    when = " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))
    is_behind = any(cell.ratio is not None and cell.ratio < 1 for cell in shown)
    about = f"{processor}, {when}{'; tinted: Lite is behind' if is_behind else ''}"
    heading = "Speed as a share of the fastest other engine (longer is faster)"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="Helvetica, Arial, sans-serif">',
        f"<title>{heading}: {escape(processor)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(width / 2, 26, heading, size=15, anchor="middle"),
        _text(width / 2, 46, f"float32, medians; {about}", size=12, anchor="middle", colour=_FAINT),
    ]
    for number, title in enumerate(titles):
        middle = _TOP + row * (number + 0.5)
        parts.append(_text(_MARGIN + _NAMES - 10, middle + 4, title, size=12, anchor="end"))
    longest = max((_speed(cell, name) for cell in shown for name in cell.engines), default=1.0)
    for number, condition in enumerate(conditions):
        left = _MARGIN + _NAMES + number * (_PANEL + _NUMBER + _PANEL_GAP)
        own = [cell for cell in shown if cell.condition == condition]
        parts += _panel(own, condition, titles, engines, left=left, row=row, scale=_PANEL / longest)
    parts += _legend(engines, width, height - 16)
    return "\n".join([*parts, "</svg>\n"])


def _panel(
    cells: Sequence[Cell],
    condition: Condition,
    titles: Sequence[str],
    engines: Sequence[str],
    *,
    left: float,
    row: float,
    scale: float,
) -> list[str]:
    """Return the bars of one condition; ``scale`` is the length of a bar of the fastest other engine."""
    behind, bars = [], [_text(left, _TOP - 14, condition.title, size=13)]
    for cell in cells:
        top = _TOP + row * titles.index(cell.title)
        ratio = cell.ratio or 0.0
        if ratio < 1:
            width = _PANEL + _NUMBER
            behind.append(f'<rect x="{left:.1f}" y="{top:.1f}" width="{width}" height="{row:.1f}" fill="{_LOSS}"/>')
        for number, name in enumerate(engines):
            if name not in cell.engines:
                continue
            y, length = top + _ROW_GAP / 2 + number * _BAR, _speed(cell, name) * scale
            bars.append(
                f'<rect x="{left:.1f}" y="{y:.1f}" width="{length:.1f}" height="{_BAR - 1}" fill="{_COLOURS[name]}"/>'
            )
            if name == LITE:
                number_at = left + max(length, scale) + 4  # beside the line of the fastest other engine
                bars.append(_text(number_at, y + 7, cell.ratio_text, size=10, colour=_COLOURS[LITE], bold=ratio < 1))
    line, bottom = left + scale, _TOP + row * len(titles)
    one = (
        f'<line x1="{line:.1f}" y1="{_TOP - 6}" x2="{line:.1f}" y2="{bottom:.1f}" stroke="{_INK}" stroke-width="0.8"/>'
    )
    return [*behind, one, *bars]


def _legend(engines: Sequence[str], width: float, y: float) -> list[str]:
    """Return the colours with the engines' names, in one line."""
    widths = [34 + 6.6 * len(ENGINES[name].title) for name in engines]
    x, parts = (width - sum(widths)) / 2, []
    for name, taken in zip(engines, widths):
        parts.append(f'<rect x="{x:.1f}" y="{y - 9:.1f}" width="11" height="11" fill="{_COLOURS[name]}"/>')
        parts.append(_text(x + 16, y, ENGINES[name].title, size=11))
        x += taken
    return parts


def _speed(cell: Cell, engine: str) -> float:
    """Return an engine's speed in units of that of the fastest engine other than Lite."""
    best = cell.best_peer
    assert best is not None, "only cells with another engine are drawn"
    return cell.engines[best].median / cell.engines[engine].median


def _text(
    x: float, y: float, text: str, *, size: int, anchor: str = "start", colour: str = _INK, bold: bool = False
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"'
    return f"<text {place}{weight}>{escape(text)}</text>"
