"""Operators that create tensors from sizes and scalars: Range, ConstantOfShape, EyeLike, OneHot."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lite_core.ir import Dim, DType, Shape, SymbolicDim, TensorType, fresh_dim
from lite_core.ir.dims import maximum
from lite_core.ops.dtypes import ALL, NUMERIC
from lite_core.ops.inference import Inference, fail, normalize_axis, unknown_shape
from lite_core.ops.registry import op, optional
from lite_core.ops.shape_checks import check_rank, format_shape

Array = np.ndarray[Any, Any]


# **** Range ****


def _range_length(start: Any, limit: Any, delta: Any) -> Dim:
    """Return ``max(ceil((limit - start) / delta), 0)``; the operands may be dimensions if delta is an integer."""
    if isinstance(delta, SymbolicDim):
        return fresh_dim("range")
    if delta == 0:
        raise fail("delta must not be 0")
    if isinstance(delta, int):
        distance = limit - start if delta > 0 else start - limit
        return maximum((distance + abs(delta) - 1) // abs(delta), 0)
    # NOTE: computed in the precision of the tensor: 0.3f / 0.1f is 3 in float32 and slightly more in float64.
    count = (limit - start) / delta
    if not np.isfinite(count):
        raise fail(f"the range from {start} to {limit} by {delta} has no finite number of elements")
    length: int = max(math.ceil(count), 0)
    return length


def _number(value: Array) -> Any:
    """Return the element of a one-element array as ``int``, :class:`SymbolicDim` or NumPy floating scalar."""
    element = value.reshape(-1)[0]
    if value.dtype == object:
        return element
    if value.dtype.itemsize == 2 and value.dtype.kind in "fV":
        return np.float32(element)
    return element if value.dtype.kind == "f" else int(element)


def _known_range(inference: Inference) -> tuple[Any, Any, Any] | None:
    values = [inference.value(i) for i in range(3)]
    if any(v is None or v.size != 1 for v in values):
        return None
    start, limit, delta = (_number(v) for v in values if v is not None)
    return start, limit, delta


def _infer_range(inference: Inference) -> list[Shape]:
    for index, name in enumerate(("start", "limit", "delta")):
        shape = inference.shape(index)
        if shape not in (None, (), (1,)) and all(isinstance(d, int) for d in shape):
            raise fail(f"{name} must be a scalar, has shape {format_shape(shape)}")
    known = _known_range(inference)
    return [(fresh_dim("range"),) if known is None else (_range_length(*known),)]


def _propagate_range(inference: Inference) -> Array | None:
    known = _known_range(inference)
    if known is None or not inference.dtype(0).is_integer:
        return None
    start, _, delta = known
    length = _range_length(*known)
    if type(length) is not int:
        return None
    elements = [start + i * delta for i in range(length)]
    return np.array(elements, dtype=object if isinstance(start, SymbolicDim) else np.int64)


@op(
    "Range",
    "start: T, limit: T, delta: T -> output: T",
    types={"T": (DType.FLOAT32, DType.FLOAT64, DType.INT16, DType.INT32, DType.INT64)},
    infer=_infer_range,
    numbers=("start", "limit", "delta"),
    propagate=_propagate_range,
)
def range_(start: Array, limit: Array, delta: Array) -> Array:
    """``start + i * delta`` for i = 0, 1, ... as long as the value lies before ``limit``."""
    first, last, step = (_number(a) for a in (start, limit, delta))
    length = _range_length(first, last, step)
    assert isinstance(length, int), "the length follows from numbers"
    return np.asarray(first + np.arange(length, dtype=start.dtype) * start.dtype.type(step), dtype=start.dtype)


# **** ConstantOfShape ****


def _fill_value(value: Array | None) -> Array:
    if value is None:
        return np.zeros(1, dtype=np.float32)
    if value.size != 1:
        raise fail(f"the attribute value must have one element, has shape {format_shape(value.shape)}")
    return value.reshape(1)


def _infer_constant_of_shape(inference: Inference) -> list[TensorType]:
    dtype = DType.of(_fill_value(inference.attributes["value"]))
    vector, dims = inference.shape(0), inference.dims(0)
    check_rank(vector, 1, "the input")
    if dims is not None:
        if any(isinstance(d, int) and d < 0 for d in dims):
            raise fail(f"the shape {format_shape(dims)} has a negative size")
        return [TensorType(dtype, dims)]
    if vector is not None and isinstance(vector[0], int):
        return [TensorType(dtype, unknown_shape(vector[0]))]
    return [TensorType(dtype, None)]


def _propagate_constant_of_shape(inference: Inference) -> Array | None:
    dims = inference.ints(0)
    if dims is None or not all(type(dim) is int for dim in dims):
        return None
    filled: Array = constant_of_shape(np.array(dims, dtype=np.int64), **inference.attributes)
    return filled


@op(
    "ConstantOfShape",
    "input: int64 -> output: T",
    types={"T": ALL},
    attributes={"value": optional("tensor")},
    infer=_infer_constant_of_shape,
    numbers=("input",),
    propagate=_propagate_constant_of_shape,
)
def constant_of_shape(shape: Array, *, value: Array | None) -> Array:
    """A tensor of the given shape whose elements are all ``value`` (default: 0 in float32)."""
    fill = _fill_value(value)
    return np.full(tuple(shape.tolist()), fill[0], dtype=fill.dtype)


# **** EyeLike, OneHot ****


def _infer_eye_like(inference: Inference) -> list[TensorType]:
    shape = inference.shape(0)
    check_rank(shape, 2, "the input")
    dtype = inference.attributes["dtype"] or inference.dtype(0)
    return [TensorType(dtype, unknown_shape(2) if shape is None else shape)]


@op(
    "EyeLike",
    "input: T1 -> output: T2",
    types={"T1": ALL, "T2": ALL},
    attributes={"dtype": optional("dtype"), "k": 0},
    infer=_infer_eye_like,
)
def eye_like(x: Array, *, dtype: DType | None, k: int) -> Array:
    """A matrix of the input's shape with ones on diagonal ``k`` (above the main one when positive)."""
    rows, columns = x.shape
    return np.asarray(np.arange(columns) - np.arange(rows)[:, np.newaxis] == k)


def _infer_one_hot(inference: Inference) -> list[Shape | None]:
    indices, values, depth = inference.shape(0), inference.shape(2), inference.value(1)
    check_rank(values, 1, "values")
    if values is not None and isinstance(values[0], int) and values[0] != 2:
        raise fail(f"values must be [off_value, on_value], has {values[0]} entries")
    if indices is None:
        return [None]
    size: Dim = fresh_dim("depth")
    if depth is not None:
        if depth.size != 1:
            raise fail(f"depth must have one element, has shape {format_shape(depth.shape)}")
        number = _number(depth)
        size = number if isinstance(number, SymbolicDim) else int(number)
        if isinstance(size, int) and size < 0:
            raise fail(f"depth must not be negative, is {size}")
    axis = normalize_axis(inference.attributes["axis"], len(indices) + 1)
    return [(*indices[:axis], size, *indices[axis:])]


@op(
    "OneHot",
    "indices: T1, depth: T2, values: T3 -> output: T3",
    types={"T1": NUMERIC, "T2": NUMERIC, "T3": ALL},
    attributes={"axis": -1},
    infer=_infer_one_hot,
    numbers=("depth",),
)
def one_hot(indices: Array, depth: Array, values: Array, *, axis: int) -> Array:
    """``values[1]`` where the position along the new ``axis`` equals the index, ``values[0]`` elsewhere.

    Negative indices count from the end; those outside ``[-depth, depth)`` select nothing.
    """
    size = int(depth.reshape(-1)[0])
    index = indices.astype(np.int64)
    index = np.where(index < 0, index + size, index)
    axis %= indices.ndim + 1
    positions = np.arange(size).reshape((-1,) + (1,) * (indices.ndim - axis))
    return np.asarray(np.where(np.expand_dims(index, axis) == positions, values[1], values[0]))
