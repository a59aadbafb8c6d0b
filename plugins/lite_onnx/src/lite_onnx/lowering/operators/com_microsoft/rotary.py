"""RotaryEmbedding of ONNX Runtime, whose inputs are in a different order from ONNX's."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number
from lite_onnx.lowering.operators.ai_onnx.heads import length, position_range
from lite_onnx.lowering.operators.com_microsoft.fused_activations import MICROSOFT
from lite_onnx.lowering.registry import lowers


@lowers("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower the rotation of [B, S, N * h] or [B, N, S, h], for positions [B, S] or one first position for all rows."""
    x, positions = context.value(node, 0), context.value(node, 1)
    tables = [context.value(node, 2), context.value(node, 3)]
    heads, size = int(number(node, "num_heads", 0)), int(number(node, "rotary_embedding_dim", 0))
    is_flat = context.rank(x) == 3
    if is_flat and not heads:
        heads = context.size(x, 2) // (2 * context.size(tables[0], 1))
    if context.rank(positions) == 1:
        positions = _positions_from(positions, x, 1 if is_flat else 2, context)
    attributes = {"interleaved": int(number(node, "interleaved", 0)), "num_heads": heads, "rotary_embedding_dim": size}
    return [context.add("RotaryEmbedding", [x, *tables, positions], attributes)]


def _positions_from(first: Value, x: Value, axis: int, context: Context) -> Value:
    """Return consecutive positions [batch, positions] of all rows of ``x``, whose axis ``axis`` has the positions."""
    scalar = context.add("Cast", [context.add("Squeeze", [first, context.ints(0)])], {"to": DType.INT64})
    row = position_range(length(x, context, axis), context, scalar)
    sizes = [context.add("Shape", [x], {"start": a, "end": a + 1}) for a in (0, axis)]
    return context.add("Expand", [row, context.add("Concat", sizes, {"axis": 0})])
