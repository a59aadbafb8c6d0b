"""Rotary embedding: positions encoded as rotations of pairs of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Shape
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import op
from lite_core.ops.shape_checks import check_rank, differ, format_shape

Array = np.ndarray[Any, Any]


def _infer_rotary(inference: Inference) -> list[Shape | None]:
    x, attributes = inference.shape(0), inference.attributes
    heads, size = attributes["num_heads"], attributes["rotary_embedding_dim"]
    if x is None:
        return [None]
    if len(x) not in (3, 4):
        raise fail(f"the input must be [batch, positions, heads * size] or 4-dimensional, is {format_shape(x)}")
    if len(x) == 3 and heads < 1:
        raise fail(f"num_heads must say how many heads the input {format_shape(x)} has, is {heads}")
    width = x[3] if len(x) == 4 else x[2] // heads
    rotated = size or width
    if isinstance(rotated, int) and (rotated % 2 or (isinstance(width, int) and rotated > width)):
        raise fail(f"{rotated} elements of heads of size {width} cannot be rotated: it must be an even number of them")
    rank = 2 if inference.has(3) else 3
    for index, name in ((1, "cos_cache"), (2, "sin_cache")):
        cache = inference.shape(index)
        check_rank(cache, rank, name)
        if cache is not None and isinstance(rotated, int) and differ(cache[-1], rotated // 2):
            raise fail(f"{name} {format_shape(cache)} must have rows of {rotated // 2} for {rotated} rotated elements")
    if inference.has(3):
        check_rank(inference.shape(3), 2, "position_ids")
    return [x]


@op(
    "RotaryEmbedding",
    "X: T, cos_cache: T, sin_cache: T, position_ids: int64? -> Y: T",
    types={"T": FLOATS},
    attributes={"interleaved": 0, "num_heads": 0, "rotary_embedding_dim": 0},
    infer=_infer_rotary,
)
def rotary_embedding(
    x: Array,
    cosine: Array,
    sine: Array,
    positions: Array | None,
    *,
    interleaved: int,
    num_heads: int,
    rotary_embedding_dim: int,
) -> Array:
    """Rotate pairs of the first ``rotary_embedding_dim`` elements of each head (of all elements if it is 0).

    ``X`` is [batch, heads, positions, size], or [batch, positions, heads * size] with ``num_heads`` heads. The pair
    (a, b) becomes (a cos - b sin, a sin + b cos): element ``i`` with element ``i + rotary_embedding_dim / 2`` or, if
    ``interleaved``, with its neighbour. The caches are [batch, positions, rotary_embedding_dim / 2]; with
    ``position_ids`` [batch, positions], they are tables whose rows it selects. It is an operator of ONNX's opset 23
    (https://arxiv.org/abs/2104.09864).
    """
    if positions is not None:
        cosine, sine = cosine[positions], sine[positions]
    heads = x if x.ndim == 4 else x.reshape(*x.shape[:2], num_heads, -1).transpose(0, 2, 1, 3)
    result: Array = heads.copy()
    size = rotary_embedding_dim or heads.shape[3]
    first, second = (
        (slice(0, size, 2), slice(1, size, 2)) if interleaved else (slice(0, size // 2), slice(size // 2, size))
    )
    a, b, cosine, sine = heads[..., first], heads[..., second], cosine[:, None], sine[:, None]
    result[..., first] = a * cosine - b * sine
    result[..., second] = a * sine + b * cosine
    return result if x.ndim == 4 else result.transpose(0, 2, 1, 3).reshape(x.shape)
