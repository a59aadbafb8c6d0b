"""Attention and parts of it in one kernel, which Paddle's exports for GPUs have."""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.registry import lowers
from lite_paddle.source import SourceOp


@lowers("flash_attn")
def flash_attention(op: SourceOp, context: Context) -> None:
    """Compute attention of queries, keys and values [batch, steps, heads, size]; the dropout is that of training."""
    given = (context.any_input(op, *slots) for slots in (("q", "0"), ("k", "1"), ("v", "2")))
    q, k, v = (context.transpose(x, (0, 2, 1, 3)) for x in given)
    mask = context.any_optional(op, "attn_mask", "4")
    attributes: dict[str, int] = {}
    if op.attrs.get("causal"):
        if q.shape[2] == k.shape[2]:
            attributes = {"is_causal": 1}
        else:
            mask = _behind(context, q, k, mask)
    result = context.transpose(context.node("Attention", [q, k, v, mask], attributes), (0, 2, 1, 3))
    context.bind(op, "out", result)
    context.bind(op, "0", result)


def _behind(context: Context, q: Value, k: Value, mask: Value | None) -> Value:
    """Return a mask in which the last query sees all keys, and each one before it a key less."""
    zero, one = (context.scalar(n, DType.INT64) for n in (0, 1))
    rows, columns = (context.reshape(context.node("Shape", [x], {"start": 2, "end": 3}), []) for x in (q, k))
    last = context.node("Add", [context.node("Range", [zero, rows, one]), context.node("Sub", [columns, rows])])
    column = context.node("Unsqueeze", [last, context.builder.ints(1)])
    seen = context.node("LessOrEqual", [context.node("Range", [zero, columns, one]), column])
    if mask is None:
        return seen
    return context.node("Where", [seen, mask, context.scalar(-1e30 if mask.dtype is DType.FLOAT32 else -6e4, mask)])


@lowers("fused_softmax_mask", "fused_softmax_mask_upper_triangle")
def masked_softmax(op: SourceOp, context: Context) -> None:
    """Compute the softmax of scores [..., queries, keys] plus a mask, or of those that are not behind the query."""
    x = context.any_input(op, "X", "x", "0")
    if op.type == "fused_softmax_mask":
        scores = context.node("Add", [x, context.any_input(op, "Mask", "mask", "1")])
    else:
        zero, one = (context.scalar(n, DType.INT64) for n in (0, 1))
        size = context.node("Shape", [x], {"start": -1})
        positions = context.node("Range", [zero, context.reshape(size, []), one])
        seen = context.node("LessOrEqual", [positions, context.node("Unsqueeze", [positions, context.builder.ints(1)])])
        scores = context.node("Where", [seen, x, context.scalar(-np.inf, x)])
    result = context.node("Softmax", [scores], {"axis": -1})
    context.bind(op, "Out", result)
    context.bind(op, "0", result)


@lowers("fused_dropout_add")
def dropout_and_add(op: SourceOp, context: Context) -> None:
    """Add two tensors, the first with the factor that a dropout has in inference."""
    x, y = context.any_input(op, "x", "0"), context.any_input(op, "y", "1")
    if str(op.attrs.get("mode")) == "downgrade_in_infer":
        x = context.node("Mul", [x, context.scalar(1 - float(op.attrs["p"]), x)])
    result = context.node("Add", [x, y])
    context.bind(op, "out", result)
    context.bind(op, "0", result)
