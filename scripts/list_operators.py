"""The operators that ``x86`` and ``opencl`` leave to ``host``: blocks of docs/kernels.md and docs/opencl.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from lite_compiler.registry import Registry
from lite_conformance.cases.operators import all_tables
from lite_core import ops
from lite_cpu.lowering.registry import OPERATORS as CPU_OPERATORS
from lite_cpu.lowering.registry import refusal
from lite_opencl.lowering.registry import OPERATORS as OPENCL_OPERATORS
from markdown_tables import code, table

__all__ = ["BLOCKS", "opset", "refusals", "without_kernel"]


def opset() -> set[str]:
    """Return the names of Lite's own operators, with the domain unless it is ONNX's."""
    return {definition.qualified_name for definition in ops.all_ops() if definition.domain in ("", "lite")}


def without_kernel(registry: Registry[Any]) -> list[str]:
    """Return the operators that a backend has no kernel for."""
    return sorted(opset() - registry.registered_operators())


def left_out(registry: Registry[Any]) -> str:
    """Return a table of the operators without kernel by domain."""
    own = [name for name in without_kernel(registry) if name.startswith("lite.")]
    others = [name for name in without_kernel(registry) if name not in own]
    return table(("domain", "operators"), (("ONNX's", code(others)), ("`lite`", code(own))))


def limits() -> str:
    """Return a table of cases that x86 refuses although it has kernels for the operator; similar reasons are merged."""
    operators: dict[str, set[str]] = {}
    examples: dict[str, str] = {}
    for op, reasons in refusals().items():
        for reason in sorted(reasons) if op in CPU_OPERATORS.registered_operators() else ():
            text = re.sub(r"\bu?int(8|16|32|64)\b", "integers", reason.removeprefix(f"{op} "))
            kind = re.sub(r"'[^']*'|\bp=\d+", "...", text)
            operators.setdefault(kind, set()).add(op)
            examples.setdefault(kind, text)
    rows = ((code(sorted(names)), examples[kind]) for kind, names in operators.items())
    return table(("operators", "left to `host`, for example"), sorted(rows, key=lambda row: (row[1], row[0])))


@cache
def refusals() -> Mapping[str, set[str]]:
    """Return for each operator the reasons with which every x86 machine refuses cases of the conformance suite."""
    reasons: dict[str, set[str]] = {name: set() for name in opset()}
    for cases in all_tables():
        for _, dtype, case in cases.cases():
            (node,) = case.build(dtype, 0)[0].nodes
            reason = refusal(node)
            if reason is not None:
                reasons[node.qualified_op].add(reason)
    return reasons


BLOCKS = {
    "operators that x86 leaves to host": partial(left_out, CPU_OPERATORS),
    "limits of the CPU kernels": limits,
    "operators that opencl leaves to host": partial(left_out, OPENCL_OPERATORS),
}
