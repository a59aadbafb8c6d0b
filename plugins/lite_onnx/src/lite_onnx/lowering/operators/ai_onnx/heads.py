"""Building blocks shared by all attention operators.

Heads are [batch, heads, positions, size]; B, N, S, T, P and h stand for batch, heads, query positions, all
positions, past positions and the size of a head.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = [
    "AttentionSteps",
    "Heads",
    "append_positions",
    "as_heads",
    "as_rows",
    "attend",
    "int_scalar",
    "length",
    "lowest_like",
    "position_range",
    "repeat_heads",
    "split_axis",
]


_LOWEST = {DType.FLOAT16: -65504.0, DType.BFLOAT16: -3.3895313892515355e38}


class Heads(NamedTuple):
    """Queries [B, N, S, h], keys and values [B, N, T, h]."""

    query: Value
    key: Value
    value: Value


class AttentionSteps(NamedTuple):
    """The result of attention [B, N, S, h], and its intermediate steps [B, N, S, T]."""

    result: Value
    products: Value
    capped: Value
    biased: Value
    weights: Value


def attend(
    heads: Heads,
    scale: float,
    biases: list[Value],
    context: Context,
    *,
    cap: float = 0.0,
    sink: Value | None = None,
    has_visible_key: Value | None = None,
) -> AttentionSteps:
    """Add nodes for ``softmax(scale * Q K^T + biases) V``.

    Args:
        heads: queries, keys and values, with equal numbers of heads.
        scale: the scale of the products; 0 for ``1 / sqrt(h)``.
        biases: tensors that are added to the products.
        context: the context to add nodes to.
        cap: a soft limit of the products: c becomes ``cap * tanh(c / cap)``; 0 for none.
        sink: [N] or a scalar: the logarithm of a term that is added to the softmax's denominator; None for none.
        has_visible_key: [.., S, 1]: True for queries that see any key; the result of other queries is zero.
    """
    factor = scale or 1.0 / context.size(heads.query, 3) ** 0.5
    query = context.add("Mul", [heads.query, context.scalar_like(factor, heads.query)])
    products = context.add("MatMul", [query, context.add("Transpose", [heads.key], {"perm": (0, 1, 3, 2)})])
    capped = products
    if cap:
        bound = context.scalar_like(cap, products)
        capped = context.add("Mul", [context.add("Tanh", [context.add("Div", [products, bound])]), bound])
    biased = capped
    for bias in biases:
        biased = context.add("Add", [biased, bias])
    weights = _softmax(biased, context) if sink is None else _softmax_with_sink(biased, sink, context)
    if has_visible_key is not None:
        weights = context.add("Where", [has_visible_key, weights, context.scalar_like(0.0, weights)])
    return AttentionSteps(context.add("MatMul", [weights, heads.value]), products, capped, biased, weights)


def _softmax(scores: Value, context: Context) -> Value:
    return context.add("Softmax", [scores], {"axis": -1})


def _softmax_with_sink(scores: Value, sink: Value, context: Context) -> Value:
    """Add a softmax over each row with the sink appended, and drop the sink's column from the result."""
    shape = context.add("Shape", [scores])
    rows = context.add("Slice", [shape, context.ints(0), context.ints(3)])
    column = context.add("Concat", [rows, context.ints(1)], {"axis": 0})
    heads = context.add("Reshape", [sink, context.ints(1, -1, 1, 1)])
    wide = context.add("Concat", [scores, context.add("Expand", [heads, column])], {"axis": -1})
    bounds = (context.ints(n) for n in (0, -1, -1))
    return context.add("Slice", [_softmax(wide, context), *bounds])


def as_heads(x: Value, heads: int, context: Context) -> Value:
    """Convert rows [B, S, N * h] to heads [B, N, S, h]."""
    if heads < 1:
        raise Unlowerable(f"it has {heads} heads")
    split = context.add("Reshape", [x, context.ints(0, 0, heads, -1)])
    return context.add("Transpose", [split], {"perm": (0, 2, 1, 3)})


def as_rows(x: Value, context: Context) -> Value:
    """Convert heads [B, N, S, h] to rows [B, S, N * h]."""
    width = context.size(x, 1) * context.size(x, 3)
    return context.add("Reshape", [context.add("Transpose", [x], {"perm": (0, 2, 1, 3)}), context.ints(0, 0, width)])


def repeat_heads(x: Value, times: int, context: Context) -> Value:
    """Repeat each head of [B, N, T, h] several times in a row."""
    if times == 1:
        return x
    heads, size = context.size(x, 1), context.size(x, 3)
    # NOTE: sizes are taken from Shape, because Reshape cannot infer a size if the cache is empty (zero positions).
    outer = [context.add("Shape", [x], {"start": axis, "end": axis + 1}) for axis in (0, 2)]
    spread = context.add("Unsqueeze", [x, context.ints(2)])
    tiled = context.add("Tile", [spread, context.ints(1, 1, times, 1, 1)])
    shape = context.add("Concat", [outer[0], context.ints(heads * times), outer[1], context.ints(size)], {"axis": 0})
    return context.add("Reshape", [tiled, shape])


def append_positions(past: Value | None, new: Value, context: Context) -> Value:
    """Append new positions to past ones."""
    return new if past is None else context.add("Concat", [past, new], {"axis": 2})


def split_axis(x: Value, axis: int, count: int, context: Context) -> list[Value]:
    """Split along an axis into slices of size 1, and remove the axis."""
    if count == 1:
        return [context.add("Squeeze", [x, context.ints(axis)])]
    parts = context.add_node("Split", [x], {"axis": axis, "num_outputs": count}, outputs=count)
    return [context.add("Squeeze", [part, context.ints(axis)]) for part in parts]


def length(x: Value, context: Context, axis: int = 2) -> Value:
    """Return the size of an axis as a scalar; by default the number of positions of heads."""
    return context.add("Squeeze", [context.add("Shape", [x], {"start": axis, "end": axis + 1}), context.ints(0)])


def position_range(count: Value, context: Context, first: Value | None = None) -> Value:
    """Return ``count`` consecutive positions, beginning at ``first`` (or 0)."""
    if first is None:
        return context.add("Range", [int_scalar(0, context), count, int_scalar(1, context)])
    return context.add("Range", [first, context.add("Add", [first, count]), int_scalar(1, context)])


def int_scalar(number: int, context: Context) -> Value:
    """Add a constant int64 scalar."""
    return context.constant(np.array(number, np.int64))


def lowest_like(x: Value, context: Context) -> Value:
    """Add the lowest finite number of a value's element type."""
    return context.scalar_like(_LOWEST.get(x.dtype, -3.4028234663852886e38), x)
