"""What several commands share: options, tables, seconds as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = [
    "backend_option",
    "backends_of",
    "console",
    "json_option",
    "milliseconds",
    "model_argument",
    "table",
    "threads_option",
]

console = Console(highlight=False, soft_wrap=True)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

model_argument: Decorator = click.argument("model", type=click.Path())
json_option: Decorator = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
backend_option: Decorator = click.option(
    "--backend", "-b", default="auto", show_default=True, help="Backend, or several in order: opencl,x86."
)
threads_option: Decorator = click.option("--threads", "-t", type=click.IntRange(1), help="Threads to use [all].")


def backends_of(text: str) -> str | list[str]:
    """The ``backend=`` argument for a comma-separated list."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise click.BadParameter("name at least one backend, or auto", param_hint="--backend")
    return names[0] if len(names) == 1 else names


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> None:
    """Print a table; columns wrap rather than lose text."""
    grid = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for header in headers:
        grid.add_column(header, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(str(cell)) for cell in row))  # Text: square brackets are not markup
    console.print(grid)


def milliseconds(seconds: float) -> str:
    """Seconds as text in milliseconds."""
    return f"{seconds * 1e3:.1f} ms"
