"""Masks of com.microsoft's attention: what is added to products [B, N, S, T] so that keys do not count."""

from __future__ import annotations

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.operators.ai_onnx.heads import Heads, length, lowest_like, places
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["causal", "mask_of"]


def mask_of(
    mask: Value | None, heads: Heads, past: Value | None, filler: float, is_causal: bool, context: Context
) -> Value | None:
    """0 where a key counts; ``filler`` where the mask, and the lowest number where the order of positions drops it.

    Args:
        mask: how many keys of each row count [B]; their ends, then their beginnings [2 * B]; ends and what packed
            rows need [3 * B + 2]; or 1 for each key that counts, [B, T], [B, S, T] or [B, 1, largest T, largest T].
        heads: with the past positions.
        past: past keys; None for none.
        filler: a large negative number.
        is_causal: whether queries see no key that comes after them.
        context: to add nodes to.
    """
    if mask is None and not is_causal:
        return None
    added = context.scalar_like(0.0, heads.query)
    if mask is not None:
        added = context.add("Where", [_counting(mask, heads, context), added, context.scalar_like(filler, added)])
    if not is_causal:
        return added
    seen = causal(length(heads.query, context), length(heads.key, context), past, context)
    return context.add("Where", [seen, added, lowest_like(added, context)])


def causal(queries: Value, keys: Value, past: Value | None, context: Context) -> Value:
    """[S, T]: whether a key does not come after a query, the first of which follows the past."""
    first = None if past is None else length(past, context)
    rows = context.add("Unsqueeze", [places(queries, context, first), context.ints(1)])
    return context.add("LessOrEqual", [places(keys, context), rows])


def _counting(mask: Value, heads: Heads, context: Context) -> Value:
    """Whether a key counts, of a rank that broadcasts to [B, N, S, T]."""
    rank = context.rank(mask)
    if rank == 1:
        return _within(mask, heads, context)
    if rank not in (2, 3, 4):
        raise Unlowerable(f"its mask has {rank} dimensions")
    counts = context.add("Cast", [mask], {"to": DType.BOOL})
    if rank == 4:  # of the longest rows that there may be: those of the last queries, as far as there are keys
        keys, queries = (context.add("Shape", [x], {"start": 2, "end": 3}) for x in (heads.key, heads.query))
        first = context.add("Sub", [keys, queries])
        starts = context.add("Concat", [first, context.ints(0)], {"axis": 0})
        ends = context.add("Concat", [keys, keys], {"axis": 0})
        return context.add("Slice", [counts, starts, ends, context.ints(2, 3)])
    return context.add("Unsqueeze", [counts, context.ints(*((1, 2) if rank == 2 else (1,)))])


def _within(mask: Value, heads: Heads, context: Context) -> Value:
    """Whether a key lies before the end of its row, and not before the beginning where that is given."""
    batch, wide = (
        context.add("Shape", [heads.query], {"start": 0, "end": 1}),
        context.add("Cast", [mask], {"to": DType.INT64}),
    )
    keys = places(length(heads.key, context), context)
    ends = context.add("Slice", [wide, context.ints(0), batch, context.ints(0)])
    counts = context.add("Less", [keys, context.add("Unsqueeze", [ends, context.ints(1)])])
    if mask.shape[0] != heads.query.shape[0] and not _is_packed(mask, heads):
        # NOTE: beginnings where there are any: zeros that follow the ends stand for beginnings that are not given.
        padded = context.add("Pad", [wide, context.add("Concat", [context.ints(0), batch], {"axis": 0})])
        twice = context.add("Add", [batch, batch])
        starts = context.add("Slice", [padded, batch, twice, context.ints(0)])
        begun = context.add("GreaterOrEqual", [keys, context.add("Unsqueeze", [starts, context.ints(1)])])
        counts = context.add("And", [counts, begun])
    return context.add("Unsqueeze", [counts, context.ints(1, 2)])


def _is_packed(mask: Value, heads: Heads) -> bool:
    size, batch = mask.shape[0], heads.query.shape[0]
    return isinstance(size, int) and isinstance(batch, int) and size == 3 * batch + 2
