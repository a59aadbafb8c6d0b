"""Operators that ONNX introduced in opset 24, expressed by operators of opset 22."""

from __future__ import annotations

from collections.abc import Sequence

from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number
from lite_onnx.lowering.operators.ai_onnx.heads import length, position_range
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable


@lowers("Swish")
def swish(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower ``x * sigmoid(alpha * x)``."""
    return [context.add("Swish", [context.value(node, 0)], {"beta": number(node, "alpha", 1.0)}, domain="lite")]


@lowers("TensorScatter")
def tensor_scatter(node: SourceNode, context: Context) -> Sequence[Item]:
    """Write new elements to a cache along an axis, from each row's start position; a circular cache wraps around."""
    cache, new, firsts = context.value(node, 0), context.value(node, 1), context.optional(node, 2)
    rank, axis = context.rank(cache), int(number(node, "axis", -2))
    axis += rank if axis < 0 else 0
    if not 1 <= axis < rank:
        raise Unlowerable(f"its axis {axis} must be 1 to {rank - 1}")
    order = (0, axis, *(a for a in range(1, rank) if a != axis))
    back = tuple(order.index(a) for a in range(rank))
    moved, updates = (context.add("Transpose", [x], {"perm": order}) for x in (cache, new))
    rows = context.add("Unsqueeze", [position_range(length(updates, context, 0), context), context.ints(1)])
    columns = context.add("Unsqueeze", [position_range(length(updates, context, 1), context), context.ints(0)])
    if firsts is not None:
        columns = context.add("Add", [columns, context.add("Unsqueeze", [firsts, context.ints(1)])])
    if number(node, "mode", "linear") == "circular":
        columns = context.add("Mod", [columns, length(moved, context, 1)])
    shape = context.add("Shape", [updates], {"start": 0, "end": 2})
    spread = [
        context.add("Unsqueeze", [context.add("Expand", [index, shape]), context.ints(2)]) for index in (rows, columns)
    ]
    written = context.add("ScatterND", [moved, context.add("Concat", spread, {"axis": 2}), updates])
    return [context.add("Transpose", [written], {"perm": back})]
