"""Emission of expressions from the table of operators, and of the helper functions that expressions call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lite_compiler.chains import default_attributes
from lite_core.ir import DType
from lite_opencl.programs.element_types import c_type
from lite_opencl.programs.sources import kernel_text
from lite_opencl.scalar_ops.definition import Call
from lite_opencl.scalar_ops.table import OPERATORS

__all__ = ["cost", "emit_operator", "helper_functions", "supports"]


def emit_operator(
    op: str, arguments: Sequence[tuple[str, DType] | None], attributes: Mapping[str, Any], output: DType
) -> str:
    """Return an operator as an expression.

    Args:
        op: its qualified name, a key of :data:`OPERATORS`.
        arguments: its inputs as variable and element type; None for an input that is left out.
        attributes: the attributes of the node; the others take their defaults.
        output: element type of its output.
    """
    return OPERATORS[op].emit(Call(arguments, {**default_attributes(op), **attributes}, output))


def supports(op: str, inputs: Sequence[DType | None], attributes: Mapping[str, Any]) -> str | None:
    """Return the reason why an operator cannot be emitted, or None. Types must fit its signature in the opset."""
    entry = OPERATORS.get(op)
    if entry is None:
        return f"{op} is not an element-wise operator"
    return entry.refuse({**default_attributes(op), **attributes}, inputs)


def cost(op: str) -> int:
    """Return the approximate number of floating-point operations for one element."""
    return OPERATORS[op].cost


def helper_functions(steps: Sequence[object], dtypes: Iterable[DType]) -> str:
    """Return the functions that expressions on these element types call; empty for a chain without steps."""
    if not steps:
        return ""
    kinds = {c_type(d).compute: d for d in dtypes}
    lines = [kernel_text("scalar_functions")]
    for name, dtype in sorted(kinds.items()):
        if dtype.is_floating:
            functions = f"FLOATING_FUNCTIONS({name})"
        else:
            sign, unsigned = "SIGNED" if dtype.is_signed else "UNSIGNED", "ulong" if dtype.itemsize == 8 else "uint"
            functions = f"{sign}_FUNCTIONS({name}, {unsigned})"
        lines.append(f"SCALAR_FUNCTIONS({name})\n{functions}\n")
    return "".join(lines)
