"""Reductions over axes: sums, products, norms, extremes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from math import prod
from operator import add, mul
from typing import Any

import numpy as np

from lite_core.ir import Dim, DType, Shape, fresh_dim
from lite_core.ops.dim_arithmetic import maximum_dims, minimum_dims, object_array
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.elementwise_binary import divide_towards_zero
from lite_core.ops.inference import Inference, fail, normalize_axis, unknown_shape
from lite_core.ops.registry import op

Array = np.ndarray[Any, Any]
Axes = tuple[int, ...]
#: Reduces an array over axes and keeps them with size 1.
Reducer = Callable[[Array, Axes], Array]
DimReducer = Callable[[Sequence[Dim]], Dim]

_SUMMABLE = (DType.INT32, DType.INT64, DType.UINT32, DType.UINT64, *FLOATS)
_ORDERED = (DType.BOOL, DType.INT8, DType.UINT8, *_SUMMABLE)


# **** axes, and the shapes of results ****


def _known_axes(inference: Inference) -> tuple[int, ...] | None:
    """Return the axes as given, empty if none are given; None if they are known only at run time."""
    if not inference.has(1) or inference.shape(1) == (0,):
        return ()
    return inference.ints(1)


def _resolve_axes(axes: Sequence[int], rank: int, noop_with_empty_axes: int) -> Axes:
    """Return the axes to reduce as non-negative numbers. Raises GraphError for one out of range or repeated."""
    if not axes:
        return () if noop_with_empty_axes else tuple(range(rank))
    resolved = tuple(normalize_axis(a, rank) for a in axes)
    if len(set(resolved)) != len(resolved):
        raise fail(f"axes {list(axes)} name a dimension of a tensor of rank {rank} twice")
    return resolved


def _infer_reduction(inference: Inference) -> list[Shape | None]:
    shape, axes = inference.shape(0), _known_axes(inference)
    keepdims, noop = inference.attributes["keepdims"], inference.attributes["noop_with_empty_axes"]
    if axes == () and not noop and not keepdims:
        return [()]
    if shape is None:
        return [None]
    if axes is not None:
        reduced_axes = _resolve_axes(axes, len(shape), noop)
        if keepdims:
            return [tuple(1 if axis in reduced_axes else d for axis, d in enumerate(shape))]
        return [tuple(d for axis, d in enumerate(shape) if axis not in reduced_axes)]
    if keepdims:
        return [tuple(d if d == 1 else fresh_dim("reduced") for d in shape)]
    vector = inference.shape(1)
    if vector is not None and len(vector) == 1 and isinstance(vector[0], int):
        if vector[0] > len(shape):
            raise fail(f"{vector[0]} axes are more than a tensor of rank {len(shape)} has")
        return [unknown_shape(len(shape) - vector[0], "reduced")]
    return [None]


# **** declaration of a reduction ****


def _reduction(
    name: str,
    types: Iterable[DType] = _SUMMABLE,
    on_dims: DimReducer | None = None,
    on_no_dims: Dim | None = None,
) -> Callable[[Reducer], Reducer]:
    """Declare a reduction.

    Args:
        name: the operator.
        types: element types that it accepts.
        on_dims: reduces dimensions, for shape arithmetic.
        on_no_dims: the result over no dimensions; None if it cannot be a dimension.
    """

    def declare(reducer: Reducer) -> Reducer:
        def reference(data: Array, axes: Array | None = None, *, keepdims: int, noop_with_empty_axes: int) -> Array:
            given = () if axes is None else tuple(axes.reshape(-1).tolist())
            if not given and noop_with_empty_axes:
                return data
            reduced_axes = _resolve_axes(given, data.ndim, noop_with_empty_axes)
            reduced = np.asarray(reducer(data, reduced_axes))
            return reduced if keepdims else reduced.reshape(_without(reduced.shape, reduced_axes))

        def propagate(inference: Inference) -> Array | None:
            data, axes = inference.value(0), _known_axes(inference)
            if data is None or axes is None or inference.dtype(0).is_half:
                return None
            given = np.array(axes, dtype=np.int64)
            if data.dtype != object:
                with np.errstate(all="ignore"):
                    return reference(data, given, **inference.attributes).astype(data.dtype)
            if on_dims is None:
                return None
            reduced_axes = _resolve_axes(axes, data.ndim, inference.attributes["noop_with_empty_axes"])
            reduced = _reduce_dims(data, reduced_axes, on_dims, on_no_dims)
            if reduced is None or inference.attributes["keepdims"]:
                return reduced
            return reduced.reshape(_without(reduced.shape, reduced_axes))

        reference.__doc__ = reducer.__doc__
        op(
            name,
            "data: T, axes: int64? -> reduced: T",
            types={"T": types},
            attributes={"keepdims": 1, "noop_with_empty_axes": 0},
            infer=_infer_reduction,
            numbers=("axes",),
            propagate=propagate,
        )(reference)
        return reducer

    return declare


def _without(shape: tuple[int, ...], reduced_axes: Axes) -> tuple[int, ...]:
    return tuple(d for axis, d in enumerate(shape) if axis not in reduced_axes)


def _reduce_dims(data: Array, reduced_axes: Axes, on_dims: DimReducer, on_no_dims: Dim | None) -> Array | None:
    """Reduce an object array of dimensions over axes, which are kept with size 1."""
    last = range(data.ndim - len(reduced_axes), data.ndim)
    groups = np.moveaxis(data, reduced_axes, last).reshape(-1, prod(data.shape[axis] for axis in reduced_axes))
    shape = tuple(1 if axis in reduced_axes else d for axis, d in enumerate(data.shape))
    if groups.shape[1] == 0:
        return None if on_no_dims is None else np.full(shape, on_no_dims, dtype=object)
    return object_array((on_dims(group) for group in groups.tolist()), shape)


def _wide(x: Array) -> Array:
    """Convert elements to the 64-bit type of sums, so that rounding errors do not accumulate."""
    return x.astype({"f": np.float64, "i": np.int64, "u": np.uint64}[x.dtype.kind])


def _like(x: Array, result: Array) -> Array:
    """Convert a float64 result to the element type of ``x``; integers are rounded towards zero."""
    return np.asarray(result).astype(x.dtype)


# **** sums and products. Integers wrap around ****


@_reduction("ReduceSum", on_dims=lambda dims: reduce(add, dims), on_no_dims=0)
def reduce_sum(x: Array, axes: Axes) -> Array:
    """The sum; 0 over no elements."""
    return np.asarray(np.sum(_wide(x), axis=axes, keepdims=True))


@_reduction("ReduceMean")
def reduce_mean(x: Array, axes: Axes) -> Array:
    """The mean; NaN over no elements. Integers are rounded towards zero."""
    total, count = reduce_sum(x, axes), np.asarray(prod(x.shape[a] for a in axes))
    if total.dtype.kind == "f":
        return np.asarray(np.true_divide(total, count))
    return divide_towards_zero(total, count.astype(total.dtype))


@_reduction("ReduceProd", on_dims=lambda dims: reduce(mul, dims), on_no_dims=1)
def reduce_product(x: Array, axes: Axes) -> Array:
    """The product; 1 over no elements."""
    return np.asarray(np.prod(_wide(x), axis=axes, keepdims=True))


@_reduction("ReduceSumSquare")
def reduce_sum_square(x: Array, axes: Axes) -> Array:
    """The sum of squares."""
    return np.asarray(np.sum(np.square(_wide(x)), axis=axes, keepdims=True))


@_reduction("ReduceL1")
def reduce_l1(x: Array, axes: Axes) -> Array:
    """The sum of absolute values."""
    return np.asarray(np.sum(np.abs(_wide(x)), axis=axes, keepdims=True))


@_reduction("ReduceL2")
def reduce_l2(x: Array, axes: Axes) -> Array:
    """The square root of the sum of squares."""
    return _like(x, np.sqrt(np.sum(np.square(x.astype(np.float64)), axis=axes, keepdims=True)))


@_reduction("ReduceLogSum")
def reduce_log_sum(x: Array, axes: Axes) -> Array:
    """The natural logarithm of the sum; -Inf over no elements."""
    return _like(x, np.log(np.sum(x.astype(np.float64), axis=axes, keepdims=True)))


@_reduction("ReduceLogSumExp")
def reduce_log_sum_exp(x: Array, axes: Axes) -> Array:
    """``log(sum(exp(x)))``, without overflow for large ``x``; -Inf over no elements."""
    wide = x.astype(np.float64)
    largest = np.max(wide, axis=axes, keepdims=True, initial=-np.inf)
    # Inf - Inf would be NaN where the result is infinite.
    offset = np.where(np.isfinite(largest), largest, 0)
    return _like(x, np.log(np.sum(np.exp(wide - offset), axis=axes, keepdims=True)) + offset)


# **** extremes ****


def _limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the lowest and the highest number of an element type."""
    if dtype.kind == "b":
        return False, True
    if dtype.kind == "f":
        return -np.inf, np.inf
    return np.iinfo(dtype).min, np.iinfo(dtype).max


@_reduction("ReduceMax", _ORDERED, on_dims=lambda dims: maximum_dims(*dims))
def reduce_max(x: Array, axes: Axes) -> Array:
    """The largest element (for bool: logical or), NaN if any is NaN; the type's lowest number over no elements."""
    return np.asarray(np.max(x, axis=axes, keepdims=True, initial=_limits(x.dtype)[0]))


@_reduction("ReduceMin", _ORDERED, on_dims=lambda dims: minimum_dims(*dims))
def reduce_min(x: Array, axes: Axes) -> Array:
    """The smallest element (for bool: logical and), NaN if any is NaN; the type's highest number over no elements."""
    return np.asarray(np.min(x, axis=axes, keepdims=True, initial=_limits(x.dtype)[1]))
