"""Search operators: extreme elements, the k largest, non-zero elements, distinct elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lite_core.ir import Dim, Shape, fresh_dim
from lite_core.ops.dtypes import ALL, NUMERIC
from lite_core.ops.inference import Inference, fail, normalize_axis, unknown_shape
from lite_core.ops.registry import op, optional
from lite_core.ops.shape_checks import format_shape

Array = np.ndarray[Any, Any]

# **** ArgMax, ArgMin ****

_ARG_ATTRIBUTES = {"axis": 0, "keepdims": 1, "select_last_index": 0}


def _infer_arg(inference: Inference) -> list[Shape | None]:
    shape = inference.shape(0)
    if shape is None:
        return [None]
    axis = normalize_axis(inference.attributes["axis"], len(shape))
    others = shape[:axis] + shape[axis + 1 :]
    if isinstance(shape[axis], int) and shape[axis] == 0 and not any(d == 0 for d in others):
        raise fail(f"axis {axis} of shape {format_shape(shape)} has no elements to choose from")
    return [(*shape[:axis], 1, *shape[axis + 1 :]) if inference.attributes["keepdims"] else others]


def _arg(choose: Callable[..., Any], data: Array, axis: int, keepdims: int, select_last_index: int) -> Array:
    if data.size == 0:
        result = np.zeros(np.delete(data.shape, axis), dtype=np.int64)
    elif select_last_index:
        result = data.shape[axis] - 1 - choose(np.flip(data, axis), axis=axis)
    else:
        result = np.asarray(choose(data, axis=axis))
    return np.expand_dims(result, axis) if keepdims else np.asarray(result)


@op("ArgMax", "data: T -> reduced: int64", types={"T": NUMERIC}, attributes=_ARG_ATTRIBUTES, infer=_infer_arg)
def arg_max(data: Array, *, axis: int, keepdims: int, select_last_index: int) -> Array:
    """The index of the largest element along ``axis``.

    Of equal elements the first counts, or the last with ``select_last_index``. NaN counts as the largest.
    """
    return _arg(np.argmax, data, axis, keepdims, select_last_index)


@op("ArgMin", "data: T -> reduced: int64", types={"T": NUMERIC}, attributes=_ARG_ATTRIBUTES, infer=_infer_arg)
def arg_min(data: Array, *, axis: int, keepdims: int, select_last_index: int) -> Array:
    """The index of the smallest element along ``axis``.

    Of equal elements the first counts, or the last with ``select_last_index``. NaN counts as the smallest.
    """
    return _arg(np.argmin, data, axis, keepdims, select_last_index)


# **** TopK ****


def _infer_top_k(inference: Inference) -> list[Shape | None]:
    shape, k = inference.shape(0), inference.dims(1)
    if k is not None and len(k) != 1:
        raise fail(f"K must hold one number, holds {len(k)}")
    if k is not None and isinstance(k[0], int) and k[0] < 0:
        raise fail(f"K must not be negative, is {k[0]}")
    if shape is None:
        return [None, None]
    axis = normalize_axis(inference.attributes["axis"], len(shape))
    count: Dim = fresh_dim("k") if k is None else k[0]
    available = shape[axis]
    if isinstance(count, int) and isinstance(available, int) and count > available:
        raise fail(f"K is {count}, but axis {axis} of shape {format_shape(shape)} has only {available} elements")
    return [(*shape[:axis], count, *shape[axis + 1 :])] * 2


@op(
    "TopK",
    "X: T, K: int64 -> Values: T, Indices: int64",
    types={"T": NUMERIC},
    attributes={"axis": -1, "largest": 1, "sorted": 1},
    infer=_infer_top_k,
    numbers=("K",),
)
def top_k(x: Array, k: Array, *, axis: int, largest: int, sorted: int) -> tuple[Array, Array]:
    """The ``k`` largest (or smallest) elements along ``axis`` and their indices, most extreme element first.

    Of equal elements the one with the lower index comes first. NaN counts as larger than any number.
    Without ``sorted`` any order is allowed; the reference returns the same order as with it.
    """
    if largest:
        # NOTE: negating the elements instead would fail for unsigned types and the lowest signed integer. A
        # stable ascending sort of the flipped array, read backwards, has equal elements by ascending index.
        ascending = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
        order = x.shape[axis] - 1 - np.flip(ascending, axis)
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    indices = np.take(order, np.arange(int(k.reshape(-1)[0])), axis=axis)
    return np.take_along_axis(x, indices, axis), indices


# **** NonZero, Unique: sizes that depend on data ****


def _infer_non_zero(inference: Inference) -> list[Shape | None]:
    shape, value = inference.shape(0), inference.value(0)
    if shape is None:
        return [unknown_shape(2, "nonzero")]
    if value is not None and value.dtype != object:
        return [(len(shape), int(np.count_nonzero(value)))]
    return [(len(shape), fresh_dim("nonzero"))]


def _propagate_non_zero(inference: Inference) -> Array | None:
    value = inference.value(0)
    return None if value is None or value.dtype == object else non_zero(value)


@op(
    "NonZero",
    "X: T -> Y: int64",
    types={"T": ALL},
    infer=_infer_non_zero,
    propagate=_propagate_non_zero,
    numbers=("X",),
)
def non_zero(x: Array) -> Array:
    """Indices of the non-zero elements, [rank of x, count], in row-major order. NaN counts as non-zero."""
    # A scalar has no axis to index: [0, 1] or [0, 0].
    return np.array(np.nonzero(np.atleast_1d(x)), dtype=np.int64)[: x.ndim]


def _infer_unique(inference: Inference) -> list[Shape | None]:
    shape, axis = inference.shape(0), inference.attributes["axis"]
    found = fresh_dim("unique")
    if axis is None:
        total = inference.type(0).size
        inverse: Shape = (fresh_dim() if total is None else total,)
        outputs: list[Shape | None] = [(found,), (found,), inverse, (found,)]
    elif shape is None:
        outputs = [None, (found,), unknown_shape(1), (found,)]
    else:
        axis = normalize_axis(axis, len(shape))
        outputs = [(*shape[:axis], found, *shape[axis + 1 :]), (found,), (shape[axis],), (found,)]
    return outputs[: inference.n_outputs]


@op(
    "Unique",
    "X: T -> Y: T, indices: int64?, inverse_indices: int64?, counts: int64?",
    types={"T": ALL},
    attributes={"axis": optional("int"), "sorted": 1},
    infer=_infer_unique,
)
def unique(x: Array, *, axis: int | None, sorted: int) -> tuple[Array, Array, Array, Array]:
    """The distinct elements of ``x``, or its distinct slices along ``axis``.

    They are in ascending order with ``sorted``, else in the order of first occurrence. The other outputs
    are the index of each one's first occurrence in ``x``, the index in ``Y`` of each element of ``x``, and
    the number of occurrences. NaNs count as equal.
    """
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(-1)  # NOTE: its shape differs between NumPy 1.x, 2.0 and 2.1
    if not sorted:
        order = np.argsort(first)
        position = np.argsort(order)
        values, first, counts = np.take(values, order, axis or 0), first[order], counts[order]
        inverse = position[inverse]
    return values, first, inverse, counts
