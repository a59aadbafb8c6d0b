"""Expansions of ONNX's operators for decoders, which are newer than the newest opset that is written."""

from __future__ import annotations

from functools import reduce

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.writer.expansions.formula import Formula, expands
from lite_onnx.writer.problems import Unwritable

_LOWEST = -3.4028234663852886e38


@expands("RMSNormalization")
def rms_normalization(f: Formula, x: Value, scale: Value, *, axis: int, epsilon: float, stash_type: int) -> list[Value]:
    """Expand to ``x / sqrt(mean(x * x) + epsilon) * scale``."""
    rank = _rank(x)
    axes = list(range(axis % rank, rank))
    attributes = {"keepdims": 1}
    mean = f("ReduceMean", f("Mul", x, x), axes, **attributes)
    return [f("Mul", f.cast(f("Div", x, f("Sqrt", f("Add", mean, float(epsilon)))), scale.dtype), scale)]


@expands("RotaryEmbedding")
def rotary_embedding(
    f: Formula,
    x: Value,
    cosine: Value,
    sine: Value,
    positions: Value | None,
    *,
    interleaved: int,
    num_heads: int,
    rotary_embedding_dim: int,
) -> list[Value]:
    """Expand to products of the halves of each head, [batch, heads, positions, size], with the angles."""
    if positions is not None:
        cosine, sine = (f("Gather", table, positions) for table in (cosine, sine))
    cosine, sine = (f("Unsqueeze", table, [1]) for table in (cosine, sine))
    heads = _as_heads(f, x, num_heads)
    half = f.size(cosine, 3)
    size, zero, last = f("Add", half, half), [0], [3]
    rotated = f("Slice", heads, zero, size, last)
    if interleaved:
        pairs = f("Reshape", rotated, f("Concat", *(f("Shape", rotated, end=3), half), [2], axis=0))
        left, right = (f.item(pairs, index) for index in (0, 1))
    else:
        left, right = f("Slice", rotated, zero, half, last), f("Slice", rotated, half, size, last)
    first = f("Sub", f("Mul", left, cosine), f("Mul", right, sine))
    second = f("Add", f("Mul", left, sine), f("Mul", right, cosine))
    if interleaved:
        both = f("Concat", f("Unsqueeze", first, [-1]), f("Unsqueeze", second, [-1]), axis=-1)
        result = f("Reshape", both, f("Shape", rotated))
    else:
        result = f("Concat", first, second, axis=-1)
    result = f("Concat", result, f("Slice", heads, size, f.size(heads, 3), last), axis=-1)
    return [_like(f, result, x)]


@expands("TensorScatter")
def tensor_scatter(
    f: Formula, cache: Value, update: Value, starts: Value | None, *, axis: int, mode: str
) -> list[Value]:
    """Expand to ScatterND along the axis, which is moved behind the batch."""
    rank = _rank(cache)
    order = (0, axis % rank, *(a for a in range(1, rank) if a != axis % rank))
    moved, new = (f("Transpose", x, perm=order) for x in (cache, update))
    rows = f("Unsqueeze", f.count_up(f.size(new, 0), DType.INT64), [1])
    columns = f("Unsqueeze", f.count_up(f.size(new, 1), DType.INT64), [0])
    if starts is not None:
        columns = f("Add", columns, f("Unsqueeze", starts, [1]))
    if mode == "circular":
        columns = f("Mod", columns, f.size(moved, 1))
    shape = f("Shape", new, end=2)
    indices = f("Concat", *(f("Unsqueeze", f("Expand", i, shape), [2]) for i in (rows, columns)), axis=2)
    back = tuple(order.index(a) for a in range(rank))
    return [f("Transpose", f("ScatterND", moved, indices, new), perm=back)]


@expands("Attention")
def attention(
    f: Formula,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None,
    past_key: Value | None,
    past_value: Value | None,
    lengths: Value | None,
    *,
    is_causal: int,
    kv_num_heads: int,
    q_num_heads: int,
    scale: float | None,
    softcap: float,
) -> list[Value]:
    """Expand to two products and a softmax, [batch, groups, query heads of a group, queries, keys]."""
    q = _as_heads(f, query, q_num_heads)
    keys, values = (_as_heads(f, x, kv_num_heads) for x in (key, value))
    if past_key is not None and past_value is not None:
        keys, values = f("Concat", past_key, keys, axis=2), f("Concat", past_value, values, axis=2)
    tokens, queries = f.size(keys, 2), f.size(q, 2)
    groups = f.size(keys, 1)
    split = f("Concat", f.size(q, 0), groups, f("Div", f.size(q, 1), groups), axis=0)
    grouped = f("Reshape", q, f("Concat", split, f("Shape", q, start=2), axis=0))
    factor = f("Pow", f.cast(f.size(q, 3), q.dtype), -0.5) if scale is None else float(scale)
    turned = f("Unsqueeze", f("Transpose", keys, perm=(0, 1, 3, 2)), [2])
    scores = f("MatMul", f("Mul", grouped, factor), turned)
    if softcap:
        scores = f("Mul", f("Tanh", f("Div", scores, float(softcap))), float(softcap))
    positions = f.count_up(tokens, DType.INT64)
    visible = []
    if mask is not None:
        visible.append(
            f("Less", positions, f("Max", f.size(mask, _rank(mask) - 1), f("Where", _is_one(f, mask), tokens, [0])))
        )
        mask = _grouped(f, mask, tokens, split)
        if mask.dtype is DType.BOOL:
            visible.append(mask)
        else:
            scores = f("Add", scores, mask)
    if lengths is not None:
        lengths = f("Reshape", lengths, [-1, 1, 1, 1, 1])
        visible.append(f("Less", positions, lengths))
    if is_causal:
        rows = f("Unsqueeze", f.count_up(queries, DType.INT64), [1])
        if past_key is not None:
            rows = f("Add", rows, f.size(past_key, 2))
        elif lengths is not None:
            rows = f("Add", rows, f("Sub", lengths, queries))
        visible.append(f("LessOrEqual", positions, rows))
    if visible:
        seen = reduce(lambda a, b: f("And", a, b), visible)
        bias = f("Where", seen, *(f.builder.constant(np.array(n, q.dtype.numpy)) for n in (0.0, _LOWEST)))
        weights = f("Softmax", f("Add", scores, bias), axis=-1)
        any_ = f("ReduceMax", f("Unsqueeze", f.cast(seen, q.dtype), [0]), [-1])
        weights = f("Mul", weights, f("Squeeze", any_, [0]))
    else:
        weights = f("Softmax", scores, axis=-1)
    product = f("MatMul", weights, f("Unsqueeze", values, [2]))
    shape = f("Concat", f("Shape", q, end=3), f.size(values, 3), axis=0)
    return [_like(f, f("Reshape", product, shape), query), f("Identity", keys), f("Identity", values)]


def _rank(value: Value) -> int:
    """Return the rank of a value. Raises Unwritable if it is not known."""
    if value.type.rank is None:
        raise Unwritable("the rank of an input is not known", "fix the shapes of the model's inputs")
    return value.type.rank


def _as_heads(f: Formula, x: Value, count: int) -> Value:
    """Convert rows [batch, positions, heads * size] to heads [batch, heads, positions, size]."""
    if _rank(x) == 4:
        return x
    return f("Transpose", f("Reshape", x, [0, 0, count, -1]), perm=(0, 2, 1, 3))


def _like(f: Formula, heads: Value, model: Value) -> Value:
    """Convert heads to rows if ``model`` has rows."""
    if _rank(model) == 4:
        return heads
    return f("Reshape", f("Transpose", heads, perm=(0, 2, 1, 3)), [0, 0, -1])


def _is_one(f: Formula, mask: Value) -> Value:
    return f("Equal", f.size(mask, _rank(mask) - 1), [1])


def _grouped(f: Formula, mask: Value, tokens: Value, split: Value) -> Value:
    """Extend a mask to all keys, and split its heads into groups: [batch, groups, heads, queries, keys]."""
    rank = _rank(mask)
    missing = f("Sub", tokens, f.size(mask, _rank(mask) - 1))
    missing = f("Where", _is_one(f, mask), [0], missing)
    zeros = f.builder.constant(np.zeros(2 * rank - 1, np.int64))
    numbers = f.cast(mask, DType.INT32) if mask.dtype is DType.BOOL else mask
    wide = f.cast(f("Pad", numbers, f("Concat", zeros, missing, axis=0)), mask.dtype)
    if rank < 4:
        return f("Unsqueeze", wide, list(range(5 - rank)))
    shared = f("Equal", f.size(wide, 1), [1])
    groups = f("Where", shared, [1], f("Slice", split, [1], [2], [0]))
    shape = f("Concat", f.size(wide, 0), groups, [-1], f("Shape", wide, start=2), axis=0)
    return f("Reshape", wide, shape)
