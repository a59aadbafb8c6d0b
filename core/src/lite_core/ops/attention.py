"""Attention of groups of query heads that share a head of keys and values, with a cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Dim, DType, Shape
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import op, optional
from lite_core.ops.shape_checks import check_vector, differ, format_shape

Array = np.ndarray[Any, Any]


def _heads_shape(inference: Inference, index: int, count: int) -> tuple[Dim, Dim, Dim, Dim] | None:
    """Return the shape [batch, heads, positions, size] of queries, keys or values; None if the rank is unknown."""
    shape = inference.shape(index)
    if shape is None:
        return None
    if len(shape) == 4:
        return shape[0], shape[1], shape[2], shape[3]
    if len(shape) != 3 or count < 1:
        raise fail(
            f"input {index} must be [batch, heads, positions, size], or [batch, positions, heads * size] with "
            f"q_num_heads and kv_num_heads; it is {format_shape(shape)} with {count} heads"
        )
    return shape[0], count, shape[1], shape[2] // count


def _infer_attention(inference: Inference) -> list[Shape | None]:
    counts = [inference.attributes[name] for name in ("q_num_heads", "kv_num_heads", "kv_num_heads")]
    q, k, v = (_heads_shape(inference, i, count) for i, count in enumerate(counts))
    if inference.has(4) != inference.has(5):
        raise fail("past_key and past_value must be given together")
    if q is None or k is None or v is None:
        return [None] * inference.n_outputs
    if isinstance(q[1], int) and isinstance(k[1], int) and (k[1] < 1 or q[1] % k[1]):
        raise fail(f"the number of query heads, {q[1]}, must be a multiple of that of key heads, {k[1]}")
    if differ(q[3], k[3]) or differ(k[1], v[1]) or differ(k[2], v[2]):
        raise fail(f"queries {format_shape(q)}, keys {format_shape(k)} and values {format_shape(v)} do not fit")
    presents: list[Shape | None] = []
    for index, new in ((4, k), (5, v)):
        past = inference.shape(index) if inference.has(index) else (*new[:2], 0, new[3])
        if past is not None and (len(past) != 4 or any(differ(past[a], new[a]) for a in (0, 1, 3))):
            raise fail(
                f"the past {format_shape(past)} must be [batch, heads, positions, size] like {format_shape(new)}"
            )
        presents.append(None if past is None else (*new[:2], past[2] + new[2], new[3]))
    check_vector(inference, 6, q[0], "nonpad_kv_seqlen", "row of the batch")
    flat = len(inference.shape(0) or ()) == 3
    result: Shape = (q[0], q[2], q[1] * v[3]) if flat else (*q[:3], v[3])
    return [result, *presents][: inference.n_outputs]


@op(
    "Attention",
    "Q: T, K: T, V: T, attn_mask: U?, past_key: T?, past_value: T?, nonpad_kv_seqlen: int64? "
    "-> Y: T, present_key: T?, present_value: T?",
    types={"T": FLOATS, "U": (DType.BOOL, *FLOATS)},
    attributes={"is_causal": 0, "kv_num_heads": 0, "q_num_heads": 0, "scale": optional("float"), "softcap": 0.0},
    infer=_infer_attention,
)
def attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None,
    past_key: Array | None,
    past_value: Array | None,
    lengths: Array | None,
    *,
    is_causal: int,
    kv_num_heads: int,
    q_num_heads: int,
    scale: float | None,
    softcap: float,
) -> tuple[Array, Array, Array]:
    """``softmax(cap(scale * Q K') + mask) V`` for each query head, with the keys and values of its group.

    ``Q`` is [batch, heads, queries, size] or [batch, queries, heads * size], ``K`` and ``V`` likewise; consecutive
    query heads share a key head. The past positions come before the new ones, and ``present_key`` and
    ``present_value`` are both together. ``scale`` is ``1 / sqrt(size)`` if left out; ``cap(c)`` is
    ``softcap * tanh(c / softcap)`` unless ``softcap`` is 0.

    A mask is added or, if it is bool, hides the keys where it is False; it broadcasts to [batch, heads, queries,
    keys], and keys behind its end are hidden. ``nonpad_kv_seqlen`` [batch] hides the keys from that index on. With
    ``is_causal`` a query sees the keys up to its own position: the queries follow the past or, without one, end at
    ``nonpad_kv_seqlen``. The result of a query that sees no key is 0. It is an operator of ONNX's opsets 23 and 24,
    without the output of intermediate products.
    """
    is_flat = q.ndim == 3
    if is_flat:
        q, k, v = (_split_heads(x, n) for x, n in ((q, q_num_heads), (k, kv_num_heads), (v, kv_num_heads)))
    past = 0 if past_key is None else past_key.shape[2]
    keys = k if past_key is None else np.concatenate([past_key, k], axis=2)
    values = v if past_value is None else np.concatenate([past_value, v], axis=2)
    batch, heads, queries, size = q.shape
    groups, count = keys.shape[1], keys.shape[2]
    factor = q.dtype.type(size**-0.5 if scale is None else scale)
    grouped = q.reshape(batch, groups, heads // groups * queries, size)
    scores = ((grouped * factor) @ keys.swapaxes(2, 3)).reshape(batch, heads, queries, count)
    if softcap:
        scores = np.tanh(scores / q.dtype.type(softcap)) * q.dtype.type(softcap)
    visible = np.ones((batch, 1, queries, count), np.bool_)
    index = np.arange(count)
    ends = None if lengths is None else lengths.reshape(-1, 1, 1, 1)
    if mask is not None:
        hides = mask.dtype == np.bool_
        if mask.shape[-1] not in (1, count):
            pads = [(0, 0)] * (mask.ndim - 1) + [(0, count - mask.shape[-1])]
            visible = visible & (index < mask.shape[-1])
            mask = np.pad(mask, pads)
        if hides:
            visible = visible & mask
        else:
            scores = scores + mask
    if ends is not None:
        visible = visible & (index < ends)
    if is_causal:
        first = ends - queries if ends is not None and past_key is None else past
        visible = visible & (index <= first + np.arange(queries)[:, None])
    scores = np.where(visible, scores, -np.inf)
    peak = np.maximum.reduce(scores, axis=3, keepdims=True, initial=-np.inf)
    exponentials = np.exp(scores - np.where(np.isneginf(peak), 0, peak))
    total = np.add.reduce(exponentials, axis=3, keepdims=True)
    weights = exponentials / np.where(total == 0, 1, total)
    result = (weights.reshape(*grouped.shape[:3], count) @ values).reshape(batch, heads, queries, values.shape[3])
    if is_flat:
        result = result.transpose(0, 2, 1, 3).reshape(batch, queries, heads * values.shape[3])
    return result, keys, values


def _split_heads(x: Array, count: int) -> Array:
    heads: Array = x.reshape(*x.shape[:2], count, x.shape[2] // count).transpose(0, 2, 1, 3)
    return heads
