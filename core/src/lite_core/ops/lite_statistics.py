"""Operators of the domain ``lite`` for statistics and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import DType, Shape, TensorType
from lite_core.ops.dtypes import FLOATS, NUMERIC
from lite_core.ops.inference import Inference, fail, normalize_axis
from lite_core.ops.registry import op
from lite_core.ops.shape_checks import differ, format_shape

Array = np.ndarray[Any, Any]


def _infer_mode(inference: Inference) -> list[TensorType]:
    shape, axis, dtype = inference.shape(0), inference.attributes["axis"], inference.dtype(0)
    if shape is None:
        return [TensorType(dtype, None), TensorType(DType.INT64, None)]
    along = normalize_axis(axis, len(shape))
    if shape[along] == 0:
        raise fail(f"the input {format_shape(shape)} has no elements along axis {axis}")
    kept = (*shape[:along], *shape[along + 1 :])
    return [TensorType(dtype, kept), TensorType(DType.INT64, kept)]


@op(
    "Mode",
    "x: T -> values: T, indices: int64",
    domain="lite",
    types={"T": NUMERIC},
    attributes={"axis": -1},
    infer=_infer_mode,
)
def mode(x: Array, *, axis: int) -> tuple[Array, Array]:
    """The most frequent element along an axis, the smallest of those that are equally frequent, and its last index.

    NaN equals NaN, and is greater than any number. Paddle: ``mode``.
    """
    rows = np.moveaxis(x if x.dtype.kind in "iu" else x.astype(np.float64), axis, -1)
    indices = np.empty(rows.shape[:-1], np.int64)
    for place in np.ndindex(indices.shape):
        row = rows[place]
        _, inverse, counts = np.unique(row, return_inverse=True, return_counts=True)
        indices[place] = np.flatnonzero(inverse == np.argmax(counts))[-1]
    return np.take_along_axis(np.moveaxis(x, axis, -1), indices[..., None], -1)[..., 0], indices


def _infer_inverse(inference: Inference) -> list[Shape | None]:
    shape = inference.shape(0)
    if shape is not None and (len(shape) < 2 or differ(shape[-2], shape[-1])):
        raise fail(f"x must be square matrices, [..., n, n]; it is {format_shape(shape)}")
    return [shape]


@op("Inverse", "x: T -> y: T", domain="lite", types={"T": FLOATS}, infer=_infer_inverse)
def inverse(x: Array) -> Array:
    """The inverse of each matrix in the last two dimensions. Paddle: ``inverse``.

    Matrices without an inverse are an error, except that those of no elements are their own inverses.
    """
    try:
        return np.linalg.inv(x.astype(np.float64)).astype(x.dtype)
    except np.linalg.LinAlgError as error:
        raise fail(f"a matrix of {format_shape(x.shape)} has no inverse") from error
