"""Output of commands: text and tables for people, JSON for programs.

In a terminal, lines are wrapped at words, and tables fit its width: :mod:`lite_tools.commands.text_layout`. In files
and pipes, each line is whole, however long, and each row of a table is one line. Lines that begin with ``next:`` are
whole everywhere: a command that is copied must be in one piece.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from lite_tools.commands.result_stream import result_stream
from lite_tools.commands.text_layout import table_lines, wrapped

__all__ = ["console", "json_text", "milliseconds", "print_json", "print_text", "table"]


class _Console(Console):
    """Rich's console, which wraps text at words in a terminal and not elsewhere."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print texts as :meth:`rich.console.Console.print` does; those in a terminal are wrapped with indentation."""
        width = _width_of(self)
        if width is not None and all(isinstance(each, str) for each in objects):
            objects = (_wrapped_text(str(options.pop("sep", " ")).join(objects), width),)
        super().print(*objects, **options)


#: The console for output to people; use ``markup=False`` for text that does not come from the command itself.
console: Console = _Console(highlight=False, soft_wrap=True)


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    title: str | None = None,
    *,
    output: Console | None = None,
) -> None:
    """Print a table, which fits the terminal; nothing is cut, see :func:`~lite_tools.commands.text_layout.table_lines`.

    Args:
        headers: the names of the columns.
        rows: the cells, of any type that ``str`` shows.
        title: a line above the table.
        output: the console to print it on, instead of :data:`console`.
    """
    output = output or console
    count, lines = table_lines(headers, rows, _width_of(output))
    if title is not None:
        output.print(Text(title, style="italic"), soft_wrap=True)
    for number, line in enumerate(lines):  # Text: square brackets are not markup
        output.print(Text(line, style="bold" if number < count else ""), soft_wrap=True)


def print_text(text: str, *, err: bool = False) -> None:
    """Print a text literally, without markup and colours; in a terminal, its lines are wrapped at words.

    Args:
        text: the text, of one or several lines.
        err: print to standard error.
    """
    stream = sys.stderr if err else sys.stdout
    if stream is None:  # the parent process has closed it
        return
    try:
        width = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError):  # no terminal after all, or closed
        width = 0
    # Not click.echo, which would replace a stream whose encoding lacks a character instead of escaping it.
    print(_wrapped_text(text, width) if width else text, file=stream)


def _width_of(output: Console) -> int | None:
    """Return the number of columns of a terminal; None for files and pipes, even if FORCE_COLOR colours them."""
    try:
        return output.width if output.file.isatty() else None
    except ValueError:  # a closed file
        return None


def _wrapped_text(text: str, width: int) -> str:
    return "\n".join(piece for line in text.split("\n") for piece in _pieces(line, width))


def _pieces(line: str, width: int) -> list[str]:
    return [line] if line.startswith("next: ") else wrapped(line, width)


def milliseconds(seconds: float) -> str:
    """Format seconds as milliseconds."""
    return f"{seconds * 1e3:.1f} ms"


def print_json(data: dict[str, Any]) -> None:
    """Print a command's result for programs, see :func:`json_text`."""
    if (stream := result_stream()) is not None:
        print(json_text(data, indent=2), file=stream)


def json_text(data: Mapping[str, Any], indent: int | None = None) -> str:
    """Return a command's result as strict JSON: inf and nan, which JSON lacks, become strings."""
    return json.dumps(_json_ready({"schema_version": 1, **data}), indent=indent, default=str, allow_nan=False)


def _json_ready(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    if isinstance(value, dict):
        return {key: _json_ready(item) for key, item in value.items()}
    return [_json_ready(item) for item in value] if isinstance(value, (list, tuple)) else value
