"""Attention, which ONNX has since opset 23."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators.ai_onnx.heads import (
    Heads,
    as_heads,
    as_rows,
    attend,
    int_scalar,
    joined,
    length,
    lowest_like,
    places,
    repeated,
)
from lite_onnx.lowering.reading import number
from lite_onnx.lowering.registry import lowers


@lowers("Attention")
def attention(node: SourceNode, context: Context) -> Sequence[Item]:
    """Attention of queries, keys and values, as rows [B, S, N * h] or heads [B, N, S, h]."""
    given = [context.value(node, i) for i in range(3)]
    is_flat = context.rank(given[0]) == 3
    if is_flat:
        counts = (number(node, f"{name}_num_heads", 0) for name in ("q", "kv", "kv"))
        given = [as_heads(x, int(count), context) for x, count in zip(given, counts)]
    past = context.optional(node, 4)
    new = Heads(*given)
    heads = new._replace(
        key=joined(past, new.key, context), value=joined(context.optional(node, 5), new.value, context)
    )
    times = context.size(heads.query, 1) // context.size(heads.key, 1)
    everything = Heads(heads.query, *(repeated(x, times, context) for x in (heads.key, heads.value)))
    seen, biases = _seen(node, everything, past, context), []
    sees = None
    if node.has(3) and context.value(node, 3).dtype is not DType.BOOL:
        biases.append(_as_long(context.value(node, 3), heads.key, context))
    if seen is not None:
        kept = context.scalar_like(0.0, heads.query)
        biases.append(context.add("Where", [seen, kept, lowest_like(kept, context)]))
        any_ = context.add("ReduceMax", [context.add("Cast", [seen], {"to": DType.INT32}), context.ints(-1)])
        sees = context.add("Cast", [any_], {"to": DType.BOOL})
    found = attend(everything, number(node, "scale", 0.0), biases, context, cap=number(node, "softcap", 0.0), sees=sees)
    shown = (found.products, found.capped, found.biased, found.weights)[int(number(node, "qk_matmul_output_mode", 0))]
    result = as_rows(found.result, context) if is_flat else found.result
    return [result, heads.key, heads.value, shown][: len(node.outputs)]


def _seen(node: SourceNode, heads: Heads, past: Value | None, context: Context) -> Value | None:
    """Whether a key counts, of a shape that broadcasts to [B, N, S, T]; None where all do."""
    keys = context.add("Unsqueeze", [places(length(heads.key, context), context), context.ints(0)])
    ends = context.optional(node, 6)  # how many keys of each row are no padding
    found = []
    if node.has(3) and context.value(node, 3).dtype is DType.BOOL:
        found.append(_as_long(context.value(node, 3), heads.key, context))
    if ends is not None:
        ends = context.add("Reshape", [ends, context.ints(-1, 1, 1, 1)])
        found.append(context.add("Less", [keys, ends]))
    windows = [int(number(node, f"{side}_window_size", -1)) for side in ("left", "right")]
    if number(node, "is_causal", 0) or max(windows) >= 0:
        queries = length(heads.query, context)
        first = None if past is None else length(past, context)
        if past is None and ends is not None:  # the queries are the last ones of these
            first = context.add("Sub", [ends, queries])
        rows = context.add("Unsqueeze", [places(queries, context), context.ints(1)])
        ahead = context.add("Sub", [keys, rows if first is None else context.add("Add", [rows, first])])
        limits = [0] if number(node, "is_causal", 0) else []
        limits += [windows[1]] if windows[1] >= 0 else []
        if limits:
            found.append(context.add("LessOrEqual", [ahead, int_scalar(min(limits), context)]))
        if windows[0] >= 0:
            found.append(context.add("GreaterOrEqual", [ahead, int_scalar(-windows[0], context)]))
    return reduce(lambda one, other: context.add("And", [one, other]), found) if found else None


def _as_long(mask: Value, keys: Value, context: Context) -> Value:
    """[.., T] from a mask that may end before the last keys, which then do not count."""
    rank = context.rank(mask)
    if mask.shape[-1] == keys.shape[2] or mask.shape[-1] == 1:
        return mask
    missing = context.add(
        "Sub",
        [
            context.add("Shape", [keys], {"start": 2, "end": 3}),
            context.add("Shape", [mask], {"start": rank - 1, "end": rank}),
        ],
    )
    pads = context.add("Concat", [context.ints(*[0] * (2 * rank - 1)), missing], {"axis": 0})
    if mask.dtype is DType.BOOL:
        return context.add("Pad", [mask, pads])
    return context.add("Pad", [mask, pads, lowest_like(mask, context)])
