"""Masks of com.microsoft's attention, as biases that are added to the products [B, N, S, T]."""

from __future__ import annotations

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.operators.ai_onnx.heads import Heads, length, lowest_like, position_range
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["causal_mask", "mask_bias"]


def mask_bias(
    mask: Value | None, heads: Heads, past: Value | None, masked: float, is_causal: bool, context: Context
) -> Value | None:
    """Return a bias, or None if all keys are visible.

    The bias is 0 for visible keys, ``masked`` for keys that the mask excludes, and the lowest number for keys that come
    after a query if attention is causal.

    Args:
        mask: the number of visible keys of each row [B]; their ends, then their beginnings [2 * B]; ends and the data
            of packed rows [3 * B + 2]; or 1 for each visible key, [B, T], [B, S, T] or [B, 1, largest T, largest T].
        heads: the heads, including past positions.
        past: the past keys; None for none.
        masked: a large negative number.
        is_causal: True if queries do not see keys that come after them.
        context: the context to add nodes to.
    """
    if mask is None and not is_causal:
        return None
    bias = context.scalar_like(0.0, heads.query)
    if mask is not None:
        bias = context.add("Where", [_visible_keys(mask, heads, context), bias, context.scalar_like(masked, bias)])
    if not is_causal:
        return bias
    visible = causal_mask(length(heads.query, context), length(heads.key, context), past, context)
    return context.add("Where", [visible, bias, lowest_like(bias, context)])


def causal_mask(queries: Value, keys: Value, past: Value | None, context: Context) -> Value:
    """Return a bool mask [S, T]: True for keys that do not come after the query. Queries follow the past."""
    first = None if past is None else length(past, context)
    rows = context.add("Unsqueeze", [position_range(queries, context, first), context.ints(1)])
    return context.add("LessOrEqual", [position_range(keys, context), rows])


def _visible_keys(mask: Value, heads: Heads, context: Context) -> Value:
    """Convert a mask to bool in a shape that broadcasts to [B, N, S, T]."""
    rank = context.rank(mask)
    if rank == 1:
        return _visible_by_length(mask, heads, context)
    if rank not in (2, 3, 4):
        raise Unlowerable(f"its mask has {rank} dimensions")
    visible = context.add("Cast", [mask], {"to": DType.BOOL})
    if rank == 4:  # the mask has the maximum length: take the rows of the queries and the columns of existing keys
        keys, queries = (context.add("Shape", [x], {"start": 2, "end": 3}) for x in (heads.key, heads.query))
        first = context.add("Sub", [keys, queries])
        starts = context.add("Concat", [first, context.ints(0)], {"axis": 0})
        ends = context.add("Concat", [keys, keys], {"axis": 0})
        return context.add("Slice", [visible, starts, ends, context.ints(2, 3)])
    return context.add("Unsqueeze", [visible, context.ints(*((1, 2) if rank == 2 else (1,)))])


def _visible_by_length(mask: Value, heads: Heads, context: Context) -> Value:
    """Return a bool mask: True for keys before the end of their row, and not before its beginning if that is given."""
    batch, bounds = (
        context.add("Shape", [heads.query], {"start": 0, "end": 1}),
        context.add("Cast", [mask], {"to": DType.INT64}),
    )
    keys = position_range(length(heads.key, context), context)
    ends = context.add("Slice", [bounds, context.ints(0), batch, context.ints(0)])
    visible = context.add("Less", [keys, context.add("Unsqueeze", [ends, context.ints(1)])])
    if mask.shape[0] != heads.query.shape[0] and not _is_packed(mask, heads):
        # NOTE: beginnings may be missing; then the padding after the ends serves as beginnings of zero.
        padded = context.add("Pad", [bounds, context.add("Concat", [context.ints(0), batch], {"axis": 0})])
        twice = context.add("Add", [batch, batch])
        starts = context.add("Slice", [padded, batch, twice, context.ints(0)])
        has_begun = context.add("GreaterOrEqual", [keys, context.add("Unsqueeze", [starts, context.ints(1)])])
        visible = context.add("And", [visible, has_begun])
    return context.add("Unsqueeze", [visible, context.ints(1, 2)])


def _is_packed(mask: Value, heads: Heads) -> bool:
    size, batch = mask.shape[0], heads.query.shape[0]
    return isinstance(size, int) and isinstance(batch, int) and size == 3 * batch + 2
