"""RotaryEmbedding: positions as rotations of pairs of elements."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.microsoft.heads import as_heads, as_rows, length, places
from lite_onnx.lowering.microsoft.naming import MICROSOFT, number
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.registry import lowers

__all__ = ["rotated"]


@lowers("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(node: SourceNode, context: Context) -> Sequence[Item]:
    """Of [B, S, N * h] or [B, N, S, h], for positions [B, S] or the first one of all rows."""
    x, positions = context.value(node, 0), context.value(node, 1)
    tables = [context.value(node, 2), context.value(node, 3)]
    heads, size = int(number(node, "num_heads", 0)), int(number(node, "rotary_embedding_dim", 0))
    is_flat = context.rank(x) == 3
    if is_flat and not heads:
        heads = context.size(x, 2) // (2 * context.size(tables[0], 1))
    planes = as_heads(x, heads, context) if is_flat else x
    if context.rank(positions) == 1:
        first = context.add("Cast", [context.add("Squeeze", [positions, context.ints(0)])], {"to": DType.INT64})
        row = places(length(planes, context), context, first)
        positions = context.add("Unsqueeze", [row, context.ints(0)])
    angles = [context.add("Gather", [table, positions]) for table in tables]
    result = rotated(planes, angles, bool(number(node, "interleaved", 0)), size, context)
    return [as_rows(result, context) if is_flat else result]


def rotated(x: Value, angles: Sequence[Value], interleaved: bool, size: int, context: Context) -> Value:
    """[B, N, S, h] with pairs of its first elements rotated.

    Args:
        x: the heads.
        angles: cosines and sines, [B, S, size / 2] each.
        interleaved: whether pairs lie side by side; else their second elements follow all the first ones.
        size: how many elements; 0 for all.
        context: to add nodes to.
    """
    width = context.size(x, 3)
    size = size or width
    if size < width:
        x, rest = context.add_node("Split", [x, context.ints(size, width - size)], {"axis": -1}, outputs=2)
    cosine, sine = (context.add("Unsqueeze", [angle, context.ints(1)]) for angle in angles)
    left, right = _pairs(x, size, interleaved, context)
    first = context.add("Sub", [context.add("Mul", [left, cosine]), context.add("Mul", [right, sine])])
    second = context.add("Add", [context.add("Mul", [left, sine]), context.add("Mul", [right, cosine])])
    if interleaved:
        spread = [context.add("Unsqueeze", [half, context.ints(-1)]) for half in (first, second)]
        result = context.add("Reshape", [context.add("Concat", spread, {"axis": -1}), context.ints(0, 0, 0, size)])
    else:
        result = context.add("Concat", [first, second], {"axis": -1})
    return result if size == width else context.add("Concat", [result, rest], {"axis": -1})


def _pairs(x: Value, size: int, interleaved: bool, context: Context) -> list[Value]:
    """The first and the second elements of pairs, [B, N, S, size / 2] each."""
    if not interleaved:
        return context.add_node("Split", [x], {"axis": -1, "num_outputs": 2}, outputs=2)
    pairs = context.add("Reshape", [x, context.ints(0, 0, 0, size // 2, 2)])
    halves = context.add_node("Split", [pairs], {"axis": -1, "num_outputs": 2}, outputs=2)
    return [context.add("Squeeze", [half, context.ints(-1)]) for half in halves]
