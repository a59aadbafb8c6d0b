"""GroupQueryAttention, which exported Llama-style models use.

Each row of a batch has its own length: its past positions are at the beginning of the cache, and its new positions
follow them. The cache may be longer than its content.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
from lite_onnx.lowering.operators.ai_onnx.rms_normalization import rms_normalize
from lite_onnx.lowering.operators.com_microsoft.fused_activations import MICROSOFT
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable


class _Cache(NamedTuple):
    """Keys and values [B, kv heads, M, h], and the indices [B, S] of the new positions in them."""

    key: Value
    value: Value
    positions: Value


@lowers("GroupQueryAttention", domain=MICROSOFT)
def group_query_attention(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower attention in which groups of query heads share a key and a value head."""
    _check(node)
    heads, shared = int(number(node, "num_heads", 0)), int(number(node, "kv_num_heads", 0))
    if heads < 1 or shared < 1 or heads % shared:
        raise Unlowerable(f"it has {heads} query heads for {shared} key heads")
    new = _new_heads(node, heads, shared, context)
    firsts = _first_positions(node, new, context)
    offsets = context.add("Unsqueeze", [position_range(length(new.query, context), context), context.ints(0)])
    positions = context.add("Add", [firsts, offsets])
    if number(node, "do_rotary", 0):
        new = _apply_rotary(node, new, positions, context)
    cache = _update_cache(node, new, positions, firsts, context)
    sink = context.optional(node, 11)
    if sink is None and number(node, "smooth_softmax", 0):
        sink = context.scalar_like(0.0, new.query)
    if sink is None:
        result = _attention(node, new.query, cache, firsts, context)
    else:
        result = _attention_with_sink(node, new.query, cache, sink, context)
    return [as_rows(result, context), cache.key, cache.value][: len(node.outputs)]


def _attention(node: SourceNode, query: Value, cache: _Cache, firsts: Value, context: Context) -> Value:
    """Return the attention of the queries, of which the first is at ``firsts`` [B, 1], to the keys before them."""
    is_causal, window = int(number(node, "causal", 1)), int(number(node, "local_window_size", -1))
    if is_causal:
        lengths = context.add("Add", [firsts, length(query, context)])
    else:
        lengths = context.add("Add", [_last_keys(node, context), int_scalar(1, context)])
    lengths = context.add("Reshape", [lengths, context.ints(-1)])
    mask = None
    if node.has(10):
        mask = _pad_to_cache(context.value(node, 10), cache, context)
    if is_causal and window > 0:
        visible = _window(window, cache, context)
        mask = visible if mask is None else context.add("Add", [mask, _as_bias(visible, cache, context)])
    attributes = {
        "is_causal": is_causal,
        "scale": number(node, "scale", 0.0) or None,
        "softcap": number(node, "softcap", 0.0),
    }
    return context.add("Attention", [query, cache.key, cache.value, mask, None, None, lengths], attributes)


def _attention_with_sink(node: SourceNode, query: Value, cache: _Cache, sink: Value, context: Context) -> Value:
    """Return the attention whose softmax has one more term; see :func:`attend`."""
    times = context.size(query, 1) // context.size(cache.key, 1)
    all_heads = Heads(query, *(repeat_heads(x, times, context) for x in (cache.key, cache.value)))
    biases = [_causal_mask(node, cache, context) if number(node, "causal", 1) else _length_mask(node, cache, context)]
    if node.has(10):
        biases.append(_pad_to_cache(context.value(node, 10), cache, context))
    softcap = number(node, "softcap", 0.0)
    return attend(all_heads, number(node, "scale", 0.0), biases, context, cap=softcap, sink=sink).result


def _check(node: SourceNode) -> None:
    quantized = [number(node, f"{name}_quant_type", "NONE") for name in ("k", "v")]
    if quantized != ["NONE", "NONE"] or node.has(12) or node.has(13):
        raise Unlowerable("its cache is quantized", "export the model with a cache of floating-point numbers")
    if number(node, "sliding_window_cache", 0):
        raise Unlowerable("its cache drops old positions", "export the model with a cache of all positions")
    if len(node.outputs) > 3:
        raise Unlowerable("it returns the products of queries and keys")


def _new_heads(node: SourceNode, heads: int, shared: int, context: Context) -> Heads:
    """Return queries, keys and values of the new positions, which are separate inputs or packed in the query."""
    query, key, value = context.value(node, 0), context.optional(node, 1), context.optional(node, 2)
    if key is None or value is None:
        size = context.size(query, 2) // (heads + 2 * shared)
        lengths = context.ints(heads * size, shared * size, shared * size)
        query, key, value = context.add_node("Split", [query, lengths], {"axis": -1}, outputs=3)
    found = Heads(*(as_heads(x, n, context) for x, n in ((query, heads), (key, shared), (value, shared))))
    if not node.has(14):
        return found
    epsilon = number(node, "qk_norm_epsilon", 1e-6)
    first = rms_normalize(found.query, context.value(node, 14), epsilon, context)
    second = rms_normalize(found.key, context.value(node, 15), epsilon, context)
    return found._replace(query=first, key=second)


def _first_positions(node: SourceNode, new: Heads, context: Context) -> Value:
    """Return the first new position [B, 1] of each row; 0 in a prompt, whose rows may end in padding."""
    lengths = context.add("Cast", [context.value(node, 5)], {"to": DType.INT64})
    lengths = context.add("Reshape", [lengths, context.ints(-1, 1)])
    total = context.add("Cast", [context.value(node, 6)], {"to": DType.INT64})
    queries = length(new.query, context)
    past = context.add("Sub", [context.add("Add", [lengths, int_scalar(1, context)]), queries])
    is_prompt = context.add("Equal", [context.add("Reshape", [total, context.ints(1)]), queries])
    return context.add("Where", [is_prompt, context.ints(0), past])


def _apply_rotary(node: SourceNode, new: Heads, positions: Value, context: Context) -> Heads:
    position_ids = context.optional(node, 9)
    tables = [context.value(node, i) for i in (7, 8)]
    attributes = {
        "interleaved": int(number(node, "rotary_interleaved", 0)),
        "rotary_embedding_dim": 2 * context.size(tables[0], 1),
    }
    inputs = [*tables, position_ids or positions]
    query, key = (context.add("RotaryEmbedding", [x, *inputs], attributes) for x in (new.query, new.key))
    return new._replace(query=query, key=key)


def _update_cache(node: SourceNode, new: Heads, positions: Value, firsts: Value, context: Context) -> _Cache:
    """Write the new positions to the cache, which grows if the past's buffer is too short for all positions.

    If the model declares equal lengths for past and present, they are one buffer that does not grow. Then the sizes of
    all tensors are known before the model runs, and a backend can write the new positions into the past itself.
    """
    if not node.has(3):
        return _Cache(new.key, new.value, positions)
    past = context.value(node, 3)
    if context.scope.is_fixed_cache(past.name, node.outputs[1] if len(node.outputs) > 1 else ""):
        starts = context.add("Reshape", [firsts, context.ints(-1)])
        key, value = (
            context.add("TensorScatter", [context.value(node, i), x, starts], {"axis": 2})
            for i, x in ((3, new.key), (4, new.value))
        )
        return _Cache(key, value, positions)
    total = context.add(
        "Cast", [context.add("Reshape", [context.value(node, 6), context.ints(1)])], {"to": DType.INT64}
    )
    missing = context.add("Sub", [total, context.add("Shape", [past], {"start": 2, "end": 3})])
    more = context.add("Max", [missing, context.ints(0)])
    batch = context.add("Shape", [new.key], {"start": 0, "end": 1})
    sizes = [batch, context.ints(context.size(new.key, 1)), more, context.ints(context.size(new.key, 3))]
    padding = context.add("Expand", [context.scalar_like(0.0, past), context.add("Concat", sizes, {"axis": 0})])
    rows, heads = (
        context.add("Reshape", [position_range(length(new.key, context, axis), context), context.ints(*shape)])
        for axis, shape in ((0, (-1, 1, 1, 1)), (1, (1, -1, 1, 1)))
    )
    columns = context.add("Unsqueeze", [positions, context.ints(1, 3)])
    shape = context.add(
        "Concat", [context.add("Shape", [new.key], {"start": 0, "end": 3}), context.ints(1)], {"axis": 0}
    )
    spread = [context.add("Expand", [index, shape]) for index in (rows, heads, columns)]
    indices = context.add("Concat", spread, {"axis": -1})
    # NOTE: this needs a scatter instead of Concat, because new positions have different indices in each row.
    key, value = (
        context.add("ScatterND", [append_positions(old, padding, context), indices, updates])
        for old, updates in ((past, new.key), (context.value(node, 4), new.value))
    )
    return _Cache(key, value, positions)


def _causal_mask(node: SourceNode, cache: _Cache, context: Context) -> Value:
    """Return a bias [B, 1, S, M]: 0 for keys up to a query's position and inside the window, else very negative."""
    keys = position_range(length(cache.key, context), context)
    queries = context.add("Unsqueeze", [cache.positions, context.ints(1, 3)])
    visible = context.add("LessOrEqual", [keys, queries])
    window = int(number(node, "local_window_size", -1))
    if window > 0:
        visible = context.add("And", [visible, _window(window, cache, context)])
    return _as_bias(visible, cache, context)


def _window(size: int, cache: _Cache, context: Context) -> Value:
    """Return a mask [B, 1, S, M]: True for keys less than ``size`` positions before a query."""
    keys = position_range(length(cache.key, context), context)
    queries = context.add("Unsqueeze", [cache.positions, context.ints(1, 3)])
    return context.add("Greater", [keys, context.add("Sub", [queries, int_scalar(size, context)])])


def _length_mask(node: SourceNode, cache: _Cache, context: Context) -> Value:
    """Return a bias [B, 1, 1, M]: 0 for keys inside a row's length, else very negative."""
    keys = position_range(length(cache.key, context), context)
    lasts = context.add("Reshape", [_last_keys(node, context), context.ints(-1, 1, 1, 1)])
    return _as_bias(context.add("LessOrEqual", [keys, lasts]), cache, context)


def _last_keys(node: SourceNode, context: Context) -> Value:
    """Return the index of the last key of each row."""
    return context.add("Cast", [context.value(node, 5)], {"to": DType.INT64})


def _as_bias(visible: Value, cache: _Cache, context: Context) -> Value:
    return context.add("Where", [visible, context.scalar_like(0.0, cache.key), lowest_like(cache.key, context)])


def _pad_to_cache(bias: Value, cache: _Cache, context: Context) -> Value:
    """Pad a bias [.., total] with zeros to the cache's length."""
    missing = context.add(
        "Sub", [context.add("Shape", [x], {"start": a, "end": a + 1}) for x, a in ((cache.key, 2), (bias, 3))]
    )
    pads = context.add("Concat", [context.ints(*[0] * 7), missing], {"axis": 0})
    return context.add("Pad", [bias, pads])
