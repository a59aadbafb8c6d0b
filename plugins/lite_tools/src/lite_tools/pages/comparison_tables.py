"""Tables of the page of a comparison, as HTML that needs no scripts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lite_tools.pages.page import escaped
from lite_tools.pictures import error_size

__all__ = ["figure", "outputs_table", "rows_table"]

#: Columns: heading, and the kind of values that they are sorted by.
_COLUMNS = (
    ("#", "number"),
    ("result", "text"),
    ("operator", "text"),
    ("kernel of b", "text"),
    ("local", "number"),
    ("accumulated", "number"),
    ("max abs", "number"),
    ("ULP", "number"),
    ("cosine", "number"),
    ("judgement", "text"),
)


def rows_table(rows: Sequence[Mapping[str, Any]], prefix: str, first: int | None) -> str:
    """Return a table with a line for each result; ``prefix`` and the index in ``rows`` are the ids of its lines."""
    heads = "".join(f'<th scope="col" data-kind="{kind}"{_class(kind)}>{escaped(name)}</th>' for name, kind in _COLUMNS)
    lines = "\n".join(_line(row, f"{prefix}{i}", is_first=i == first) for i, row in enumerate(rows))
    table = f'<table class="rows"><thead><tr>{heads}</tr></thead><tbody>\n{lines}\n</tbody></table>'
    return f'<div class="frame">{table}</div>'


def outputs_table(outputs: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of the model's outputs with their accumulated errors."""
    heads = ("output", "relative", "max abs", "max relative", "ULP", "cosine", "different")
    head = "".join(f'<th scope="col"{_class("number") if i else ""}>{name}</th>' for i, name in enumerate(heads))
    lines = []
    for output in outputs:
        errors = output.get("errors") or {}
        different = f"{errors.get('different', 0):,} of {errors.get('elements', 0):,}"
        keys = ("max_abs", "max_rel", "max_ulp", "cosine")
        cells = [figure(error_size(errors)), *(figure(errors.get(key)) for key in keys), different]
        numbers = "".join(f'<td class="number">{escaped(cell)}</td>' for cell in cells)
        lines.append(f'<tr><th scope="row"><code>{escaped(output["name"])}</code></th>{numbers}</tr>')
    return f'<div class="frame"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def figure(value: float | str | None) -> str:
    """Format a number with three digits: ``0``, ``1.25e-5``, ``0.031``, ``NaN``; ``–`` if there is none."""
    if value is None:
        return "–"
    if isinstance(value, str) or not math.isfinite(value):
        return "NaN" if value == math.inf else str(value)
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e6:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _class(kind: str) -> str:
    return ' class="number"' if kind == "number" else ""


def _line(row: Mapping[str, Any], key: str, *, is_first: bool) -> str:
    local, accumulated = row.get("local"), row.get("accumulated")
    worst = local or accumulated or {}
    nodes = ", ".join(row.get("nodes") or ())
    passes = f" <span class='quiet'>pass {row['occurrence']}</span>" if row.get("occurrence") else ""
    result = f'<code class="value">{escaped(row["value"])}</code>{passes}'
    if nodes and nodes != row["value"]:
        result += f'<span class="nodes">{escaped(nodes)}</span>'
    numbers = (error_size(local), error_size(accumulated), worst.get("max_abs"), worst.get("max_ulp"))
    cells = "".join(_number_cell(number) for number in numbers)
    cosine = worst.get("cosine")
    status = row["status"]
    mark = ' <span class="mark">first</span>' if is_first else ""
    return (
        f'<tr id="{key}" data-status="{escaped(status)}"><td class="number" data-value="{int(row["index"])}">'
        f'{int(row["index"])}</td><th scope="row">{result}</th><td>{escaped(row.get("op", ""))}</td>'
        f'<td><code>{escaped(row.get("kernel_b", ""))}</code> <span class="quiet">{escaped(row.get("device_b", ""))}'
        f'</span></td>{cells}<td class="number" data-value="{_sortable(cosine)}">{_cosine(cosine)}</td>'
        f'<td><span class="status" data-status="{escaped(status)}">{escaped(status)}</span>{mark}</td></tr>'
    )


def _number_cell(number: float | str | None) -> str:
    return f'<td class="number" data-value="{_sortable(number)}">{escaped(figure(number))}</td>'


def _sortable(number: float | str | None) -> str:
    """Return the text by which a script sorts; empty for no number."""
    if number is None:
        return ""
    return "1e308" if isinstance(number, str) or not math.isfinite(number) else repr(float(number))


def _cosine(cosine: float | None) -> str:
    return "–" if cosine is None else "1" if cosine == 1 else f"{cosine:.6f}"
