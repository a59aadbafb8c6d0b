"""Operators that ONNX has since opsets 23 and 24, by those of opset 22."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.microsoft.heads import (
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
from lite_onnx.lowering.microsoft.naming import number
from lite_onnx.lowering.microsoft.normalizations import root_mean_square
from lite_onnx.lowering.microsoft.rotary import rotated
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.registry import Unlowerable, lowers


@lowers("Swish")
def swish(node: SourceNode, context: Context) -> Sequence[Item]:
    """``x * sigmoid(alpha * x)``."""
    return [context.add("Swish", [context.value(node, 0)], {"beta": number(node, "alpha", 1.0)}, domain="lite")]


@lowers("RMSNormalization")
def rms_normalization(node: SourceNode, context: Context) -> Sequence[Item]:
    """Division by the root of the mean square, of all axes from one on."""
    x, scale = context.value(node, 0), context.value(node, 1)
    return [root_mean_square(x, scale, number(node, "axis", -1), number(node, "epsilon", 1e-5), context)[0]]


@lowers("RotaryEmbedding")
def rotary_embedding(node: SourceNode, context: Context) -> Sequence[Item]:
    """Of [B, S, N * h] or [B, N, S, h]; cosines and sines are of positions, or there for each element already."""
    x, angles = context.value(node, 0), [context.value(node, 1), context.value(node, 2)]
    if node.has(3):
        angles = [context.add("Gather", [table, context.value(node, 3)]) for table in angles]
    size, interleaved = int(number(node, "rotary_embedding_dim", 0)), bool(number(node, "interleaved", 0))
    if context.rank(x) == 4:
        return [rotated(x, angles, interleaved, size, context)]
    heads = as_heads(x, int(number(node, "num_heads", 0)), context)
    return [as_rows(rotated(heads, angles, interleaved, size, context), context)]


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
