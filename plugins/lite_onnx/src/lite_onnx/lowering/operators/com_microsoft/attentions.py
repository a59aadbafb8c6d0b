"""Attention, QAttention and MultiHeadAttention."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number, numbers
from lite_onnx.lowering.operators.ai_onnx.heads import Heads, append_positions, as_heads, as_rows, attend, split_axis
from lite_onnx.lowering.operators.com_microsoft.fused_activations import MICROSOFT
from lite_onnx.lowering.operators.com_microsoft.masks import mask_bias
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable

_MASKED = -10000.0


@lowers("Attention", domain=MICROSOFT)
def attention(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower self-attention. One product has the concatenated weights of queries, keys and values."""
    if number(node, "do_rotary", 0) or number(node, "past_present_share_buffer", 0) or node.has(6):
        raise Unlowerable("it applies rotary embeddings, or keeps past and present in one buffer")
    x, weights = context.value(node, 0), context.value(node, 1)
    product = _plus(context.add("MatMul", [x, weights]), context.optional(node, 2), context)
    sizes = [int(size) for size in numbers(node, "qkv_hidden_sizes")] or [context.size(weights, 1) // 3] * 3
    return _self_attention(node, product, sizes, (3, 4, 5), context)


@lowers("QAttention", domain=MICROSOFT)
def quantized_attention(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower self-attention with a product of 8-bit integers, which is then dequantized."""
    if number(node, "do_rotary", 0) or number(node, "past_present_share_buffer", 0):
        raise Unlowerable("it applies rotary embeddings, or keeps past and present in one buffer")
    x, weights, bias, x_scale, scale = (context.value(node, i) for i in range(5))
    product = context.add("MatMulInteger", [x, weights, context.optional(node, 6), context.optional(node, 7)])
    unit = context.add("Mul", [x_scale, scale])
    real = context.add("Mul", [context.add("Cast", [product], {"to": bias.dtype}), unit])
    sizes = [context.size(weights, 1) // 3] * 3
    return _self_attention(node, context.add("Add", [real, bias]), sizes, (5, 8, 9), context)


def _self_attention(
    node: SourceNode, product: Value, sizes: list[int], input_indices: tuple[int, int, int], context: Context
) -> list[Item]:
    """Return the outputs of self-attention.

    Args:
        node: the node.
        product: the concatenated queries, keys and values.
        sizes: their sizes.
        input_indices: the indices of mask, past and bias among the node's inputs.
        context: the context to add nodes to.
    """
    count = int(number(node, "num_heads", 0))
    parts = context.add_node("Split", [product, context.ints(*sizes)], {"axis": -1}, outputs=3)
    heads = Heads(*(as_heads(part, count, context) for part in parts))
    mask, past, bias = (context.optional(node, index) for index in input_indices)
    past_keys = None
    if past is not None:  # [2, B, N, P, h]
        past_keys, past_values = split_axis(past, 0, 2, context)
        heads = heads._replace(
            key=append_positions(past_keys, heads.key, context),
            value=append_positions(past_values, heads.value, context),
        )
    result = _attention(heads, mask, bias, past_keys, node, context)[0]
    if len(node.outputs) == 1:
        return [result]
    spread = [context.add("Unsqueeze", [v, context.ints(0)]) for v in (heads.key, heads.value)]
    return [result, context.add("Concat", spread, {"axis": 0})]


@lowers("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower attention of separate queries, keys and values, with optional past keys and values."""
    if node.has(8) or node.has(9):
        raise Unlowerable("it keeps past and present in one buffer")
    heads, past = _input_heads(node, int(number(node, "num_heads", 0)), context), context.optional(node, 6)
    if past is not None:
        values = append_positions(context.value(node, 7), heads.value, context)
        heads = heads._replace(key=append_positions(past, heads.key, context), value=values)
    result, scores = _attention(heads, context.optional(node, 4), context.optional(node, 5), past, node, context)
    return [result, heads.key, heads.value, scores][: len(node.outputs)]


def _input_heads(node: SourceNode, count: int, context: Context) -> Heads:
    """Return the heads of MultiHeadAttention, which are separate inputs, or packed in the query or the key."""
    query, key, value = context.value(node, 0), context.optional(node, 1), context.optional(node, 2)
    bias = context.optional(node, 3)
    if context.rank(query) == 5:  # [B, S, N, 3, h]
        if bias is not None:
            raise Unlowerable("its query is packed, and it has a bias")
        return Heads(*_unpacked(query, 3, context))
    if key is None:
        raise Unlowerable("its query is not packed, and it has no key")
    biases: list[Value | None] = [None, None, None]
    if bias is not None:
        total, hidden = context.size(bias, 0), context.size(query, 2)
        lengths = context.ints(hidden, hidden, total - 2 * hidden)
        biases = [*context.add_node("Split", [bias, lengths], {"axis": 0}, outputs=3)]
    first = as_heads(_plus(query, biases[0], context), count, context)
    if context.rank(key) == 5:  # [B, T, N, 2, h]
        return Heads(first, *_unpacked(key, 2, context))
    if value is None:
        raise Unlowerable("its key is not packed, and it has no value")
    if context.rank(key) == 4:
        return Heads(first, key, value)
    others = (as_heads(_plus(x, b, context), count, context) for x, b in ((key, biases[1]), (value, biases[2])))
    return Heads(first, *others)


def _attention(
    heads: Heads, mask: Value | None, bias: Value | None, past: Value | None, node: SourceNode, context: Context
) -> tuple[Value, Value]:
    """Return the result as rows [B, S, N * h], and the products with mask and bias added."""
    masked, is_causal = number(node, "mask_filter_value", _MASKED), bool(number(node, "unidirectional", 0))
    added = [mask_bias(mask, heads, past, masked, is_causal, context), bias]
    biases = [value for value in added if value is not None]
    steps = attend(heads, number(node, "scale", 0.0), biases, context)
    return as_rows(steps.result, context), steps.biased


def _unpacked(x: Value, count: int, context: Context) -> list[Value]:
    """Split [B, S, N, count, h] into ``count`` heads [B, N, S, h]."""
    planes = split_axis(x, 3, count, context)
    return [context.add("Transpose", [plane], {"perm": (0, 2, 1, 3)}) for plane in planes]


def _plus(x: Value, bias: Value | None, context: Context) -> Value:
    return x if bias is None else context.add("Add", [x, bias])
