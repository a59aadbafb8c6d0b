"""Values inside models: ``lite run --tap`` shows them; ``lite inspect --print-nodes`` makes a file print them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
import numpy as np

from lite_core.session import load
from lite_core.session.session import STORED_TAPS
from lite_tools.cli.model_file import open_verified
from lite_tools.commands.errors import check_writable
from lite_tools.commands.printing import console, print_json
from lite_tools.taps import Tap
from lite_tools.writing import write_model, write_with_metadata

__all__ = ["TapRecorder", "print_nodes_options", "tap_option", "write_printing_model"]

Array = np.ndarray[Any, Any]
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_PATTERN = "the name of a value or a node, a pattern such as conv_*, or before:NODE for the inputs of a node"

tap_option: Decorator = click.option(
    "--tap",
    "patterns",
    multiple=True,
    metavar="NAME",
    help=f"Show values inside the model, which --save includes: {_PATTERN}. Repeatable.",
)


def print_nodes_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--print-nodes`` and ``--output`` to a command."""
    options = (
        click.option(
            "--print-nodes",
            multiple=True,
            metavar="NAME",
            help=f"With -o: write a model that prints values in every run: {_PATTERN}. Repeatable.",
        ),
        click.option("--output", "-o", type=click.Path(dir_okay=False), help="With --print-nodes: the .lite file."),
    )
    for option in reversed(options):
        function = option(function)
    return function


class TapRecorder:
    """The tapped values of the last run.

    Args:
        patterns: the patterns of the values.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._taps: list[Tap] = []
        #: The arguments of :func:`lite_core.load`; none without patterns, so that those stored in a file are used.
        self.arguments: Mapping[str, Any] = {"taps": dict.fromkeys(patterns, self._taps.append)} if patterns else {}

    def clear(self) -> None:
        """Forget the values, before a run."""
        self._taps.clear()

    def arrays(self) -> dict[str, Array]:
        """Return the values by name; ``NAME#1`` is the second one of a value inside a loop."""
        computed: Counter[str] = Counter()
        found = {}
        for tap in self._taps:
            number = computed[tap.value]
            computed[tap.value] += 1
            found[f"{tap.value}#{number}" if number else tap.value] = tap.array
        return found

    def as_dicts(self) -> list[dict[str, Any]]:
        """Return the values for JSON: without their elements."""
        rows = [{**tap._asdict(), "type": f"{tap.array.dtype}{[*tap.array.shape]}", **facts(tap)} for tap in self._taps]
        return [{key: fact for key, fact in row.items() if key != "array"} for row in rows]

    def show(self) -> None:
        """Print a line for each value."""
        if self._taps:
            console.print()
        for tap in self._taps:
            console.print(f"tap {tap}", markup=False, soft_wrap=True)


def facts(tap: Tap) -> dict[str, float | int | None]:
    """Return the range and mean of a value's finite elements, and the numbers of NaN and infinities."""
    numbers = tap.array.reshape(-1).astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    ranges = {name: float(getattr(finite, name)()) if finite.size else None for name in ("min", "max", "mean")}
    return {**ranges, "nan": int(np.isnan(numbers).sum()), "inf": int(np.isinf(numbers).sum())}


def write_printing_model(
    model: str, patterns: Sequence[str], output: str | None, reader: Mapping[str, Any], as_json: bool
) -> None:
    """Write a model whose runs print values, and say how to run it.

    A .lite file keeps its prepared plans and stays trusted; a model of another format becomes a .lite file without any.

    Raises:
        click.UsageError: there is no output, or nothing to print.
        InputError: a pattern names nothing in the model; the message has similar names.
    """
    if not patterns or not output:
        raise click.UsageError("--print-nodes NAME and -o FILE.lite belong together: give both")
    if not output.endswith(".lite"):
        raise click.BadParameter(f"{output!r} must end with .lite, the only format that keeps taps", param_hint="-o")
    check_writable(output, "-o")
    load(model, "host", taps=patterns, reader_options=reader)  # finds the names, or refuses them
    opened = open_verified(model, reader)
    entries = {STORED_TAPS: "\n".join(patterns)}
    if opened.file is not None:
        write_with_metadata(output, opened.file, entries)
    else:
        write_model(output, opened.graph, metadata=entries)
    if as_json:
        print_json({"model": model, "written": output, "taps": list(patterns)})
        return
    console.print(f"{output}: every run prints {', '.join(patterns)} to standard error", markup=False)
    console.print(f"run it: lite run {output}", markup=False)
    console.print("in Python: lite.load(...) prints them, too; lite.load(..., taps=()) does not", markup=False)
