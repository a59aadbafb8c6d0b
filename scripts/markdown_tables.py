"""Tables for the pages in docs/."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["code", "table"]


def table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table with one line for each row."""
    lines = [titles, tuple("---" for _ in titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def code(names: Iterable[str]) -> str:
    """Names as code, with commas between them."""
    return ", ".join(f"`{name}`" for name in names)
