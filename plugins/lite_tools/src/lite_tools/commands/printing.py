"""Output of commands: text and tables for people, JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["console", "json_text", "milliseconds", "print_json", "table"]

_UNLIMITED_WIDTH = 10_000


def _make_console() -> Console:
    """Create Rich's console; output to files and pipes is not wrapped."""
    created = Console(highlight=False, soft_wrap=True)
    if not created.is_terminal:
        created.width = _UNLIMITED_WIDTH
    return created


#: The console for output to people; use ``markup=False`` for text that does not come from the command itself.
console = _make_console()


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> None:
    """Print a table, in which long cells are wrapped."""
    grid = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for header in headers:
        grid.add_column(header, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(str(cell)) for cell in row))  # Text: square brackets are not markup
    console.print(grid)


def milliseconds(seconds: float) -> str:
    """Format seconds as milliseconds."""
    return f"{seconds * 1e3:.1f} ms"


def print_json(data: dict[str, Any]) -> None:
    """Print a command's result for programs, see :func:`json_text`."""
    print(json_text(data, indent=2))


def json_text(data: Mapping[str, Any], indent: int | None = None) -> str:
    """Return a command's result as strict JSON: inf and nan, which JSON lacks, become strings."""
    return json.dumps(_json_ready({"schema_version": 1, **data}), indent=indent, default=str, allow_nan=False)


def _json_ready(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    if isinstance(value, dict):
        return {key: _json_ready(item) for key, item in value.items()}
    return [_json_ready(item) for item in value] if isinstance(value, (list, tuple)) else value
