"""Operators that ONNX has since opset 24, by those of opset 22."""

from __future__ import annotations

from collections.abc import Sequence

from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators.ai_onnx.heads import length, places
from lite_onnx.lowering.reading import number
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable


@lowers("Swish")
def swish(node: SourceNode, context: Context) -> Sequence[Item]:
    """``x * sigmoid(alpha * x)``."""
    return [context.add("Swish", [context.value(node, 0)], {"beta": number(node, "alpha", 1.0)}, domain="lite")]


@lowers("TensorScatter")
def tensor_scatter(node: SourceNode, context: Context) -> Sequence[Item]:
    """A cache with new elements along an axis, from a position of each row on; after its end from its beginning."""
    cache, new, firsts = context.value(node, 0), context.value(node, 1), context.optional(node, 2)
    rank, axis = context.rank(cache), int(number(node, "axis", -2))
    axis += rank if axis < 0 else 0
    if not 1 <= axis < rank:
        raise Unlowerable(f"its axis {axis} is not one after the first of {rank}")
    order = (0, axis, *(a for a in range(1, rank) if a != axis))
    back = tuple(order.index(a) for a in range(rank))
    moved, updates = (context.add("Transpose", [x], {"perm": order}) for x in (cache, new))
    rows = context.add("Unsqueeze", [places(length(updates, context, 0), context), context.ints(1)])
    columns = context.add("Unsqueeze", [places(length(updates, context, 1), context), context.ints(0)])
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
