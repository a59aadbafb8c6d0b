"""Attention and MultiHeadAttention."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators.ai_onnx.heads import Heads, as_heads, as_rows, attend, joined, split_axis
from lite_onnx.lowering.operators.com_microsoft.masks import mask_of
from lite_onnx.lowering.operators.com_microsoft.naming import MICROSOFT
from lite_onnx.lowering.reading import number, numbers
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable

_MASKED = -10000.0


@lowers("Attention", domain=MICROSOFT)
def attention(node: SourceNode, context: Context) -> Sequence[Item]:
    """Self attention from one product with the weights of queries, keys and values side by side."""
    if number(node, "do_rotary", 0) or number(node, "past_present_share_buffer", 0) or node.has(6):
        raise Unlowerable("it rotates positions, or keeps past and present in one buffer")
    x, weights = context.value(node, 0), context.value(node, 1)
    product = _plus(context.add("MatMul", [x, weights]), context.optional(node, 2), context)
    sizes = [int(size) for size in numbers(node, "qkv_hidden_sizes")] or [context.size(weights, 1) // 3] * 3
    return _self_attention(node, product, sizes, (3, 4, 5), context)


@lowers("QAttention", domain=MICROSOFT)
def quantized_attention(node: SourceNode, context: Context) -> Sequence[Item]:
    """As Attention, of 8-bit integers; the product is of real numbers again."""
    if number(node, "do_rotary", 0) or number(node, "past_present_share_buffer", 0):
        raise Unlowerable("it rotates positions, or keeps past and present in one buffer")
    x, weights, bias, x_scale, scale = (context.value(node, i) for i in range(5))
    product = context.add("MatMulInteger", [x, weights, context.optional(node, 6), context.optional(node, 7)])
    unit = context.add("Mul", [x_scale, scale])
    real = context.add("Mul", [context.add("Cast", [product], {"to": bias.dtype}), unit])
    sizes = [context.size(weights, 1) // 3] * 3
    return _self_attention(node, context.add("Add", [real, bias]), sizes, (5, 8, 9), context)


def _self_attention(
    node: SourceNode, product: Value, sizes: list[int], places: tuple[int, int, int], context: Context
) -> list[Item]:
    """The outputs from queries, keys and values side by side; ``places``: of mask, past and bias among the inputs."""
    count = int(number(node, "num_heads", 0))
    parts = context.add_node("Split", [product, context.ints(*sizes)], {"axis": -1}, outputs=3)
    heads = Heads(*(as_heads(part, count, context) for part in parts))
    mask, past, bias = (context.optional(node, place) for place in places)
    before = None
    if past is not None:  # [2, B, N, P, h]
        before, values = split_axis(past, 0, 2, context)
        heads = heads._replace(key=joined(before, heads.key, context), value=joined(values, heads.value, context))
    result = _attended(heads, mask, bias, before, node, context)[0]
    if len(node.outputs) == 1:
        return [result]
    spread = [context.add("Unsqueeze", [v, context.ints(0)]) for v in (heads.key, heads.value)]
    return [result, context.add("Concat", spread, {"axis": 0})]


@lowers("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(node: SourceNode, context: Context) -> Sequence[Item]:
    """Attention of queries, keys and values that are given, with past ones before them."""
    if node.has(8) or node.has(9):
        raise Unlowerable("it keeps past and present in one buffer")
    heads, past = _given_heads(node, int(number(node, "num_heads", 0)), context), context.optional(node, 6)
    if past is not None:
        values = joined(context.value(node, 7), heads.value, context)
        heads = heads._replace(key=joined(past, heads.key, context), value=values)
    result, scores = _attended(heads, context.optional(node, 4), context.optional(node, 5), past, node, context)
    return [result, heads.key, heads.value, scores][: len(node.outputs)]


def _given_heads(node: SourceNode, count: int, context: Context) -> Heads:
    """The heads of MultiHeadAttention: separate, or packed in the query or the key."""
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


def _attended(
    heads: Heads, mask: Value | None, bias: Value | None, past: Value | None, node: SourceNode, context: Context
) -> tuple[Value, Value]:
    """The result as rows [B, S, N * h], and the products after mask and bias."""
    filler, is_causal = number(node, "mask_filter_value", _MASKED), bool(number(node, "unidirectional", 0))
    added = [mask_of(mask, heads, past, filler, is_causal, context), bias]
    biases = [value for value in added if value is not None]
    attended = attend(heads, number(node, "scale", 0.0), biases, context)
    return as_rows(attended.result, context), attended.biased


def _unpacked(x: Value, count: int, context: Context) -> list[Value]:
    """[B, S, N, count, h] as so many [B, N, S, h]."""
    planes = split_axis(x, 3, count, context)
    return [context.add("Transpose", [plane], {"perm": (0, 2, 1, 3)}) for plane in planes]


def _plus(x: Value, bias: Value | None, context: Context) -> Value:
    return x if bias is None else context.add("Add", [x, bias])
