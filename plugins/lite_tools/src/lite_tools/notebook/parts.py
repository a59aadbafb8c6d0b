"""Parts of what a notebook shows of an object: headings, tables, notes. All texts are escaped, and nothing is loaded.

Notebooks have light and dark themes, which a page cannot ask for. The parts therefore take over the text's colour, have
no background, and draw lines and bars in colours that can be seen on both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import resources
from typing import NamedTuple, TypeAlias

from lite_tools.pages.page import escaped

__all__ = ["Bar", "Number", "card", "folded", "listed", "table"]

#: Rows that a table shows; the others are folded.
MOST_ROWS = 10


class Number(NamedTuple):
    """A cell with a number, aligned to the right."""

    text: str


class Bar(NamedTuple):
    """A cell with a bar: a share, 0 to 1, of the cell's width."""

    share: float


Cell: TypeAlias = "str | Number | Bar"


def card(kind: str, name: str, about: str, *parts: str) -> str:
    """Return what a notebook shows of an object.

    Args:
        kind: the kind of the object, such as ``session``.
        name: its name.
        about: what to say about it in a few words.
        parts: further parts, as HTML.
    """
    style = (resources.files(__package__) / "card.css").read_text(encoding="utf-8")
    named = f" <b>{escaped(name)}</b>" if name else ""
    said = f' <span class="dim">{escaped(about)}</span>' if about else ""
    return f'<div class="lite-card"><style>{style}</style><p>{escaped(kind)}{named}{said}</p>{"".join(parts)}</div>'


def table(heads: Sequence[str], rows: Iterable[Sequence[Cell]], most: int = MOST_ROWS) -> str:
    """Return a table, of which ``most`` rows are visible and the others folded; nothing if there are no rows."""
    listed = list(rows)
    if not listed:
        return ""
    body = [f"<tr>{''.join(map(_cell, row))}</tr>" for row in listed]
    kinds = [isinstance(cell, Number) for cell in listed[0]]
    head = "".join(f"<th{_number(kind)}>{escaped(text)}</th>" for text, kind in zip(heads, kinds))
    shown = f"<table><thead><tr>{head}</tr></thead><tbody>{{}}</tbody></table>"
    if len(body) <= most + 1:
        return shown.replace("{}", "".join(body))
    rest = shown.replace("{}", "".join(body[most:]))
    return shown.replace("{}", "".join(body[:most])) + folded(f"{len(body) - most} more", rest)


def folded(summary: str, body: str) -> str:
    """Return a part that is shown after a click on its summary; nothing if it is empty."""
    return f"<details><summary>{escaped(summary)}</summary>{body}</details>" if body else ""


def listed(lines: Iterable[str]) -> str:
    """Return a list of texts; nothing if there are none."""
    items = "".join(f"<li>{escaped(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def _cell(cell: Cell) -> str:
    if isinstance(cell, Bar):
        return f'<td class="bar"><i style="width:{min(max(cell.share, 0), 1):.1%}"></i></td>'
    is_number = isinstance(cell, Number)
    return f"<td{_number(is_number)}>{escaped(cell.text if isinstance(cell, Number) else cell)}</td>"


def _number(is_number: bool) -> str:
    return ' class="number"' if is_number else ""
