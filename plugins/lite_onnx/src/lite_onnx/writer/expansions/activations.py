"""Expansions of activations."""

from __future__ import annotations

from lite_core.ir import Value
from lite_onnx.writer.expansions.formula import Formula, expands


@expands("Swish")
def swish(f: Formula, x: Value, *, beta: float) -> list[Value]:
    """Expand to ``x * sigmoid(beta * x)``."""
    return [f("Mul", x, f("Sigmoid", x if beta == 1 else f("Mul", x, float(beta))))]
