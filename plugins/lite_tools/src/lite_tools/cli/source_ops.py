"""``lite ops --FORMAT``: the operators of a model format, such as Paddle's, and the backends that run them.

A format offers it by one method more than the hook ``lite_formats`` requires: ``operator_table(backends)``, which
returns rows with the attributes of :class:`SourceOperator`, for backends by their names, or for all with None.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import click

from lite_core.plugins import available_backends, default_plugins
from lite_tools.commands.backend_names import known_backends
from lite_tools.commands.errors import UnavailableError
from lite_tools.commands.next_commands import with_correction
from lite_tools.commands.printing import console, print_json, table

__all__ = ["ListsOperators", "SourceOperator", "WithFormats", "print_table"]


_HAS_OPTIONS = "lite_tools.cli.source_ops.has_options"


class SourceOperator(Protocol):
    """An operator of a model format.

    Attributes:
        name: its name in the format.
        backends: backend to ``native`` (all that it becomes runs there), ``host`` (some runs on host), or ``no``.
        operators: Lite's operators that it becomes.
        to_host: backend to those of them that it refuses, each with a reason.
        reason: the reason why it cannot be read; for some, what the reader makes of it.
        inputs: names of its inputs, in one text; empty if unknown.
        outputs: names of its outputs.
        attributes: names of its attributes, each with its type.
    """

    @property
    def name(self) -> str: ...
    @property
    def backends(self) -> dict[str, str]: ...
    @property
    def operators(self) -> Sequence[str]: ...
    @property
    def to_host(self) -> dict[str, dict[str, str]]: ...
    @property
    def reason(self) -> str: ...
    @property
    def inputs(self) -> str: ...
    @property
    def outputs(self) -> str: ...
    @property
    def attributes(self) -> str: ...


@runtime_checkable
class ListsOperators(Protocol):
    """A model format that knows which of its operators run where."""

    name: str

    def operator_table(self, backends: Sequence[str] | None = None) -> Sequence[SourceOperator]:
        """Return a row for every operator of the format, for these backends or all that are installed."""
        ...


class WithFormats(click.Command):
    """A command with a flag for each installed format that lists its operators, such as ``--paddle``.

    Plugins are imported only if the arguments have an option: without one, the command works if a plugin crashes.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        ctx.meta[_HAS_OPTIONS] = any(argument.startswith("-") and argument != "--json" for argument in args)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options of the command, and the flags."""
        known = formats() if ctx.meta.get(_HAS_OPTIONS, True) else []
        return [*super().get_params(ctx), *(_flag(format_) for format_ in known)]


def formats() -> list[ListsOperators]:
    """Return the installed formats that list their operators."""
    return [found for _, found in default_plugins().ask("lite_formats") if isinstance(found, ListsOperators)]


def _flag(format_: ListsOperators) -> click.Option:
    text = f"List the operators of the format {format_.name}, and the backends that run them, instead of Lite's own."
    return click.Option([f"--{format_.name}"], is_flag=True, help=text)


def print_table(chosen: Sequence[str], name: str | None, as_json: bool, backend: str | None = None) -> None:
    """Print the operators of a format, or describe one of them.

    Args:
        chosen: the names of formats that the user chose.
        name: the operator to describe; None for all.
        as_json: print JSON.
        backend: the only backend to ask; None for all that are installed.

    Raises:
        UnavailableError: there is no such backend.
        UsageError: several formats are chosen, or the format has no operator of this name.
    """
    if len(chosen) > 1:
        raise click.UsageError(f"choose one of {', '.join(f'--{format_}' for format_ in chosen)}")
    (format_,) = (found for found in formats() if found.name == chosen[0])
    if backend is not None and backend not in available_backends():
        known_backends(backend)
        raise UnavailableError(f"there is no backend {backend!r}", "lite backends")
    rows = format_.operator_table(None if backend is None else [backend])
    if name is not None:
        found = [row for row in rows if row.name == name]
        if not found:
            raise _unknown(name, chosen[0], rows)
        rows = found
    if as_json:
        print_json({"format": format_.name, "operators": [_as_dict(row) for row in rows]})
    elif name is not None:
        _describe(rows[0])
    else:
        _print_rows(rows)


def _unknown(name: str, format_: str, rows: Sequence[SourceOperator]) -> click.BadParameter:
    near = difflib.get_close_matches(name, [row.name for row in rows], 3)
    meant = f"; did you mean {' or '.join(near)}?" if near else f"; `lite ops --{format_}` lists them"
    error = click.BadParameter(f"the format {format_} has no operator {name!r}{meant}", param_hint="NAME")
    return with_correction(error, name, near, f"lite ops --{format_}")


def _as_dict(row: SourceOperator) -> dict[str, Any]:
    return {
        "name": row.name,
        "backends": row.backends,
        "operators": list(row.operators),
        "to_host": row.to_host,
        "reason": row.reason,
        "inputs": row.inputs,
        "outputs": row.outputs,
        "attributes": row.attributes,
    }


def _print_rows(rows: Sequence[SourceOperator]) -> None:
    backends = list(rows[0].backends)
    listed = [(row.name, *row.backends.values(), ", ".join(row.operators) or row.reason) for row in rows]
    table(("operator", *backends, "becomes, or why not"), listed)
    counts = {backend: Counter(row.backends[backend] for row in rows) for backend in backends}
    read = len(rows) - counts[backends[0]]["no"]
    native = ", ".join(f"{name} {count['native']}" for name, count in counts.items() if count["native"])
    console.print(
        f"\n{len(rows)} operators; {read} of them can be read. native: all that it becomes runs on the backend "
        f"({native});\nhost: some of it is left to host; no: it cannot be read. To ask about a model: lite check MODEL",
        markup=False,
    )


def _describe(row: SourceOperator) -> None:
    console.print(row.name, markup=False)
    for what, text in (("inputs", row.inputs), ("outputs", row.outputs), ("attributes", row.attributes)):
        if text:
            console.print(f"{what}: {text}", markup=False)
    if row.operators:
        console.print(f"becomes: {', '.join(row.operators)}", markup=False)
    if row.reason:
        console.print(f"note: {row.reason}", markup=False)
    console.print()
    reasons = {backend: "; ".join(dict.fromkeys(refused.values())) for backend, refused in row.to_host.items()}
    columns = [(name, mark, reasons.get(name, "") if name != "host" else "") for name, mark in row.backends.items()]
    table(("backend", "runs", "left to host"), columns)
