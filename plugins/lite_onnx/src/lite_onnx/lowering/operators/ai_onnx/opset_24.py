"""Operators that ONNX introduced in opset 24, expressed by operators of opset 22."""

from __future__ import annotations

from collections.abc import Sequence

from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number
from lite_onnx.lowering.registry import lowers


@lowers("Swish")
def swish(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower ``x * sigmoid(alpha * x)``."""
    return [context.add("Swish", [context.value(node, 0)], {"beta": number(node, "alpha", 1.0)}, domain="lite")]
