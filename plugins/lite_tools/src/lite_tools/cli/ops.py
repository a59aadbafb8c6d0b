"""``lite ops``: the operators of the opset."""

from __future__ import annotations

from typing import Any

import click

from lite_core import ops
from lite_core.ops import AttributeSpec, OpDef
from lite_tools.commands.options import json_option
from lite_tools.commands.printing import console, print_json, table

_NOTATION = "Signatures: inputs -> outputs, each as NAME: TYPE; ? means optional, * means any number."


@click.command("ops")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the operators of Lite's opset, or describe the operator NAME."""
    definitions = list(ops.all_ops())
    if name is not None:
        wanted = name.lower()
        definitions = [d for d in definitions if wanted in (d.name.lower(), d.qualified_name.lower())]
        if not definitions:
            raise click.BadParameter(f"the opset has no operator {name!r}; `lite ops` lists them", param_hint="NAME")
    if as_json:
        print_json({"opset": ops.OPSET_VERSION, "operators": [_as_dict(d) for d in definitions]})
    elif name is not None:
        for definition in definitions:
            _describe(definition)
    else:
        table(("operator", "signature"), [(d.qualified_name, d.signature) for d in definitions])
        console.print(f"\n{_NOTATION}")
        console.print(
            f"{len(definitions)} operators: those of ONNX opset {ops.OPSET_VERSION}, and Lite's own in the domain lite"
        )


def _as_dict(definition: OpDef) -> dict[str, Any]:
    return {
        "name": definition.name,
        "domain": definition.domain,
        "signature": definition.signature,
        "types": {k: [d.value for d in v] for k, v in definition.types.items()},
        "attributes": {
            k: {"kind": a.kind, "default": a.default, "required": a.required, "choices": list(a.choices)}
            for k, a in definition.attributes.items()
        },
        "documentation": definition.documentation,
    }


def _default(attribute: AttributeSpec) -> str:
    if attribute.required:
        return "required"
    return "none" if attribute.default is None else str(attribute.default)


def _describe(definition: OpDef) -> None:
    console.print(f"{definition.qualified_name}: {definition.signature}", markup=False)
    console.print(_NOTATION + "\n", markup=False)
    console.print(definition.documentation + "\n", markup=False)
    types = [(name, ", ".join(d.value for d in allowed)) for name, allowed in definition.types.items()]
    table(("type", "one of"), types)
    if definition.attributes:
        console.print()
        rows = [(name, a.kind, _default(a), ", ".join(a.choices)) for name, a in definition.attributes.items()]
        table(("attribute", "kind", "default", "one of"), rows)
