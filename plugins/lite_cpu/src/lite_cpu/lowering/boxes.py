"""Rewriting of operators on boxes to others, before a graph is lowered."""

from __future__ import annotations

from lite_compiler.boxes import EXPANDED_BOXES, without_box_operators
from lite_core.ir import DType, Node
from lite_cpu.lowering.registry import register_rewritten

__all__ = ["without_box_operators"]


def _refuse(node: Node) -> str | None:
    """Refuse exponentials and logarithms of float64, which the CPU kernels compute in float32."""
    doubles = node.op == "BoxCoder" and any(v.dtype is DType.FLOAT64 for v in node.used())
    return "BoxCoder of float64: the CPU kernels compute its exponentials in float32" if doubles else None


register_rewritten(__name__, *EXPANDED_BOXES, refuse=_refuse)
