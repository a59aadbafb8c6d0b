"""Formatting of Markdown tables for the pages in docs/."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["code", "table"]


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Return a table with one line for each row; the columns with the numbers ``right`` are aligned to the right."""
    numbers = set(right)
    lines = [titles, ["---:" if number in numbers else "---" for number in range(len(titles))], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def code(names: Iterable[str]) -> str:
    """Return names as code, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)
