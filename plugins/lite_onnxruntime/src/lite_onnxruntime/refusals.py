"""Nodes that ONNX Runtime opens and then cannot run, or computes otherwise than ONNX says."""

from __future__ import annotations

from lite_core.ir import Node

__all__ = ["refusal"]


def refusal(node: Node) -> str | None:
    """Why a node is not for ONNX Runtime although it would take it; None where it is."""
    if node.domain:
        return f"ONNX has no operator {node.qualified_op}"
    return None
