"""Formatting of Markdown tables for the pages in docs/."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["code", "table"]


def table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table with one line for each row."""
    lines = [titles, tuple("---" for _ in titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def code(names: Iterable[str]) -> str:
    """Return names as code, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)
