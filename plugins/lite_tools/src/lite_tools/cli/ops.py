"""``lite ops``: the operators of the opset, or those of a model format."""

from __future__ import annotations

import difflib
from typing import Any

import click

from lite_core import ops
from lite_tools.cli.ops_support import print_support
from lite_tools.cli.source_ops import WithFormats, print_table
from lite_tools.commands.next_commands import with_correction
from lite_tools.commands.options import json_option
from lite_tools.commands.printing import console, print_json, table
from lite_tools.commands.value_types import BACKEND, OPERATOR
from lite_tools.examining.plain_data import operator_row
from lite_tools.examining.plugins import ExaminedPlugin, examine_plugins, qualified_name

_ONNX = "ai.onnx."
_NOTATION = "Signatures: inputs -> outputs, each as NAME: TYPE; ? means optional, * means any number."


@click.command("ops", cls=WithFormats)
@click.argument("name", required=False, type=OPERATOR)
@click.option(
    "--backend", "-b", type=BACKEND, help="Show in which element types this backend runs the operators, and why not."
)
@json_option
def command(name: str | None, backend: str | None, as_json: bool, **formats: bool) -> None:
    """List the operators of Lite's opset, or describe the operator NAME."""
    chosen = [format_ for format_, is_chosen in formats.items() if is_chosen]
    if chosen:
        print_table(chosen, name, as_json, backend)
        return
    if backend is not None and name is None:
        print_support(backend, None, as_json)
        return
    rows = [operator_row(definition) for definition in ops.all_ops() if definition.domain in ("", "lite")]
    named = [] if name is None else _named(name, rows)
    if not named:
        plugins = examine_plugins("lite_ops")
        rows = sorted([*rows, *(row for p in plugins for row in _rows_of(p))], key=lambda r: (r["domain"], r["name"]))
        failed = [plugin.record.label for plugin in plugins if plugin.record.failed]
    if name is not None:
        named = named or _named(name, rows)
        if not named:
            raise _unknown(name, rows)
    if backend is not None:
        print_support(backend, [qualified_name(row) for row in named], as_json)
    elif as_json:
        print_json({"opset": ops.OPSET_VERSION, "operators": named or rows})
    elif name is not None:
        for row in named:
            _describe(row)
    else:
        table(("operator", "signature"), [(qualified_name(row), row["signature"]) for row in rows])
        console.print(f"\n{_NOTATION}")
        console.print(
            f"{len(rows)} operators: those of ONNX opset {ops.OPSET_VERSION}, and Lite's own in the domain lite"
        )
        if failed:
            console.print(f"without those of plugins that failed: {', '.join(failed)}\nnext: lite doctor", markup=False)


def _rows_of(plugin: ExaminedPlugin) -> list[dict[str, Any]]:
    """Return the operators of a plugin, each with its package."""
    return [{**row, "package": f"{plugin.record.distribution} {plugin.record.version}"} for row in plugin.operators]


def _named(name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the operators of a name, with or without a domain; ``ai.onnx`` is ONNX's own."""
    wanted = name.lower().removeprefix(_ONNX)
    if wanted != name.lower():
        return [row for row in rows if wanted == row["name"].lower() and not row["domain"]]
    return [row for row in rows if wanted in (row["name"].lower(), qualified_name(row).lower())]


def _unknown(name: str, rows: list[dict[str, Any]]) -> click.BadParameter:
    """Return the error for a name that no operator has: the operator may be in another domain, or misspelt."""
    operator = name.rpartition(".")[2]
    elsewhere = [qualified_name(row) for row in rows if row["name"].lower() == operator.lower()]
    names = {qualified_name(row).lower(): qualified_name(row) for row in rows}
    names.update((row["name"].lower(), qualified_name(row)) for row in rows)
    near = [names[each] for each in difflib.get_close_matches(name.lower(), names, 3, 0.7)]
    if not elsewhere and not near:
        near = [names[each] for each in difflib.get_close_matches(operator.lower(), names, 3, 0.7)]
    if elsewhere:
        hint = f"it has {' and '.join(elsewhere)}"
    elif near:
        hint = f"did you mean {' or '.join(dict.fromkeys(near))}?"
    else:
        hint = "`lite ops` lists them"
    error = click.BadParameter(f"the opset has no operator {name!r}; {hint}", param_hint="NAME")
    return with_correction(error, name, elsewhere or near, "lite ops")


def _default(attribute: dict[str, Any]) -> str:
    if attribute["required"]:
        return "required"
    return "none" if attribute["default"] is None else str(attribute["default"])


def _describe(row: dict[str, Any]) -> None:
    console.print(f"{qualified_name(row)}: {row['signature']}", markup=False)
    if "package" in row:
        console.print(f"from the package {row['package']}", markup=False)
    console.print(_NOTATION + "\n", markup=False)
    console.print(row["documentation"] + "\n", markup=False)
    table(("type", "one of"), [(name, ", ".join(allowed)) for name, allowed in row["types"].items()])
    if row["attributes"]:
        console.print()
        rows = [(name, a["kind"], _default(a), ", ".join(a["choices"])) for name, a in row["attributes"].items()]
        table(("attribute", "kind", "default", "one of"), rows)
