"""What several commands share: options, errors, tables, seconds as text."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lite_tools.cli import EXIT_UNAVAILABLE

__all__ = [
    "UnavailableError",
    "backend_option",
    "backends_of",
    "check_writable",
    "compute_option",
    "console",
    "json_option",
    "milliseconds",
    "model_argument",
    "reader_option",
    "seed_option",
    "table",
    "threads_option",
    "tune_option",
]

_WIDE = 10_000


def _make_console() -> Console:
    """Rich's console; as wide as the text where nobody looks at it, so that files and pipes get whole lines."""
    made = Console(highlight=False, soft_wrap=True)
    if not made.is_terminal:
        made.width = _WIDE
    return made


console = _make_console()

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

model_argument: Decorator = click.argument("model", type=click.Path())
json_option: Decorator = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
backend_option: Decorator = click.option(
    "--backend",
    "-b",
    default="auto",
    show_default=True,
    help="Backend to run on, see `lite backends`, or several by preference: opencl,x86.",
)
threads_option: Decorator = click.option("--threads", "-t", type=click.IntRange(1), help="CPU threads.  [default: all]")
seed_option: Decorator = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the random inputs."
)
compute_option: Decorator = click.option(
    "--compute",
    type=click.Choice(["float32", "float16", "bfloat16"]),
    default="float32",
    show_default=True,
    help="What backends may compute in, where they can; a converted file is loaded with the same precision=.",
)
tune_option: Decorator = click.option(
    "--tune", is_flag=True, help="Measure which kernels are fastest here, and keep that (opencl)."
)


def _reader_options(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, Any]:
    """Keyword arguments of a reader: names, and values in JSON."""
    options = {}
    for text in texts:
        name, separator, value = text.partition("=")
        try:
            options[name] = json.loads(value) if separator and name.isidentifier() else None
        except json.JSONDecodeError as error:
            raise click.BadParameter(f"{value!r} of {name} is not JSON: {error}") from None
        if options[name] is None:
            raise click.BadParameter(f'it reads NAME=JSON, such as lengths={{"x": 3}}, not {text!r}')
    return options


reader_option: Decorator = click.option(
    "--reader",
    "-R",
    multiple=True,
    metavar="NAME=JSON",
    callback=_reader_options,
    help='Option of the reader of the model\'s format: lengths={"x": 3} says how many tensors a sequence of an ONNX '
    "model has. Repeatable.",
)


class UnavailableError(click.ClickException):
    """What a command needs is not installed or not there; the message says how to get it. Exit code 3."""

    exit_code = EXIT_UNAVAILABLE


def check_writable(file: str, option: str) -> None:
    """Say before long work, not after it, that a file cannot be written.

    Raises:
        click.BadParameter: its folder does not exist, or the file or its folder is protected.
    """
    path = Path(file)
    folder = path.parent
    if path.is_dir():
        raise click.BadParameter(f"{file!r} is a folder; name a file", param_hint=option)
    if not folder.is_dir():
        raise click.BadParameter(f"{file!r} cannot be written: there is no folder {str(folder)!r}", param_hint=option)
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise click.BadParameter(f"{file!r} cannot be written: permission denied", param_hint=option)


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
