"""RotaryEmbedding of ONNX Runtime, whose inputs are in a different order from ONNX's."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import DType
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number
from lite_onnx.lowering.operators.ai_onnx.heads import as_heads, as_rows, length, position_range
from lite_onnx.lowering.operators.ai_onnx.rotary import apply_rotary
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
    planes = as_heads(x, heads, context) if is_flat else x
    if context.rank(positions) == 1:
        first = context.add("Cast", [context.add("Squeeze", [positions, context.ints(0)])], {"to": DType.INT64})
        row = position_range(length(planes, context), context, first)
        positions = context.add("Unsqueeze", [row, context.ints(0)])
    angles = [context.add("Gather", [table, positions]) for table in tables]
    result = apply_rotary(planes, angles, bool(number(node, "interleaved", 0)), size, context)
    return [as_rows(result, context) if is_flat else result]
