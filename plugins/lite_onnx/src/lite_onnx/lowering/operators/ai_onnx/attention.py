"""Attention, which ONNX introduced in opset 23."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number
from lite_onnx.lowering.operators.ai_onnx.heads import (
    Heads,
    append_positions,
    as_heads,
    as_rows,
    attend,
    int_scalar,
    length,
    lowest_like,
    position_range,
    repeat_heads,
)
from lite_onnx.lowering.registry import lowers


@lowers("Attention")
def attention(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower attention of queries, keys and values, given as rows [B, S, N * h] or heads [B, N, S, h].

    Lite's operator neither returns the products nor has windows: then it is lowered to products and a softmax.
    """
    if len(node.outputs) < 4 and max(_windows(node)) < 0:
        kept = ("is_causal", "kv_num_heads", "q_num_heads", "scale", "softcap")
        attributes = {name: node.attributes.get(name) for name in kept}
        return context.add_node("Attention", context.values(node)[:7], attributes, outputs=len(node.outputs))
    inputs = [context.value(node, i) for i in range(3)]
    is_flat = context.rank(inputs[0]) == 3
    if is_flat:
        counts = (number(node, f"{name}_num_heads", 0) for name in ("q", "kv", "kv"))
        inputs = [as_heads(x, int(count), context) for x, count in zip(inputs, counts)]
    past = context.optional(node, 4)
    new = Heads(*inputs)
    heads = new._replace(
        key=append_positions(past, new.key, context),
        value=append_positions(context.optional(node, 5), new.value, context),
    )
    times = context.size(heads.query, 1) // context.size(heads.key, 1)
    all_heads = Heads(heads.query, *(repeat_heads(x, times, context) for x in (heads.key, heads.value)))
    visible, biases = _visible_keys(node, all_heads, past, context), []
    has_visible_key = None
    if node.has(3) and context.value(node, 3).dtype is not DType.BOOL:
        biases.append(_pad_mask(context.value(node, 3), heads.key, context))
    if visible is not None:
        zero = context.scalar_like(0.0, heads.query)
        biases.append(context.add("Where", [visible, zero, lowest_like(zero, context)]))
        any_ = context.add("ReduceMax", [context.add("Cast", [visible], {"to": DType.INT32}), context.ints(-1)])
        has_visible_key = context.add("Cast", [any_], {"to": DType.BOOL})
    steps = attend(
        all_heads,
        number(node, "scale", 0.0),
        biases,
        context,
        cap=number(node, "softcap", 0.0),
        has_visible_key=has_visible_key,
    )
    shown = (steps.products, steps.capped, steps.biased, steps.weights)[int(number(node, "qk_matmul_output_mode", 0))]
    result = as_rows(steps.result, context) if is_flat else steps.result
    return [result, heads.key, heads.value, shown][: len(node.outputs)]


def _visible_keys(node: SourceNode, heads: Heads, past: Value | None, context: Context) -> Value | None:
    """Return a bool mask of visible keys that broadcasts to [B, N, S, T], or None if all keys are visible."""
    keys = context.add("Unsqueeze", [position_range(length(heads.key, context), context), context.ints(0)])
    ends = context.optional(node, 6)  # the number of keys of each row that are not padding
    masks = []
    if node.has(3) and context.value(node, 3).dtype is DType.BOOL:
        masks.append(_pad_mask(context.value(node, 3), heads.key, context))
    if ends is not None:
        ends = context.add("Reshape", [ends, context.ints(-1, 1, 1, 1)])
        masks.append(context.add("Less", [keys, ends]))
    windows = _windows(node)
    if number(node, "is_causal", 0) or max(windows) >= 0:
        queries = length(heads.query, context)
        first = None if past is None else length(past, context)
        if past is None and ends is not None:  # the queries are at the last valid positions
            first = context.add("Sub", [ends, queries])
        rows = context.add("Unsqueeze", [position_range(queries, context), context.ints(1)])
        ahead = context.add("Sub", [keys, rows if first is None else context.add("Add", [rows, first])])
        limits = [0] if number(node, "is_causal", 0) else []
        limits += [windows[1]] if windows[1] >= 0 else []
        if limits:
            masks.append(context.add("LessOrEqual", [ahead, int_scalar(min(limits), context)]))
        if windows[0] >= 0:
            masks.append(context.add("GreaterOrEqual", [ahead, int_scalar(-windows[0], context)]))
    return reduce(lambda one, other: context.add("And", [one, other]), masks) if masks else None


def _windows(node: SourceNode) -> list[int]:
    """Return how many keys before and after its own position a query sees; -1 for all."""
    return [int(number(node, f"{side}_window_size", -1)) for side in ("left", "right")]


def _pad_mask(mask: Value, keys: Value, context: Context) -> Value:
    """Extend a mask to [.., T]. Keys behind its end are masked."""
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
