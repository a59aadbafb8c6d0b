"""RotaryEmbedding, which ONNX introduced in opset 23: positions encoded as rotations of pairs of elements."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number
from lite_onnx.lowering.operators.ai_onnx.heads import as_heads, as_rows
from lite_onnx.lowering.registry import lowers

__all__ = ["apply_rotary"]


@lowers("RotaryEmbedding")
def rotary_embedding(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower the rotation of [B, S, N * h] or [B, N, S, h]; positions, if given, select cosines and sines."""
    x, angles = context.value(node, 0), [context.value(node, 1), context.value(node, 2)]
    if node.has(3):
        angles = [context.add("Gather", [table, context.value(node, 3)]) for table in angles]
    size, interleaved = int(number(node, "rotary_embedding_dim", 0)), bool(number(node, "interleaved", 0))
    if context.rank(x) == 4:
        return [apply_rotary(x, angles, interleaved, size, context)]
    heads = as_heads(x, int(number(node, "num_heads", 0)), context)
    return [as_rows(apply_rotary(heads, angles, interleaved, size, context), context)]


def apply_rotary(x: Value, angles: Sequence[Value], interleaved: bool, size: int, context: Context) -> Value:
    """Rotate pairs of the first elements of each head.

    Args:
        x: the heads, [B, N, S, h].
        angles: cosines and sines, [B, S, size / 2] each.
        interleaved: True if the elements of a pair are adjacent; False if all second elements follow all first ones.
        size: the number of elements to rotate; 0 for all.
        context: the context to add nodes to.
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
    """Return the first and the second elements of the pairs, [B, N, S, size / 2] each."""
    if not interleaved:
        return context.add_node("Split", [x], {"axis": -1, "num_outputs": 2}, outputs=2)
    pairs = context.add("Reshape", [x, context.ints(0, 0, 0, size // 2, 2)])
    halves = context.add_node("Split", [pairs], {"axis": -1, "num_outputs": 2}, outputs=2)
    return [context.add("Squeeze", [half, context.ints(-1)]) for half in halves]
