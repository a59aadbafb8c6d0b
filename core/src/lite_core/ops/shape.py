"""Operators that read or change shapes and leave the elements unchanged, and Cast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_core.ir import Dim, DType, Shape, SymbolicDim, TensorType
from lite_core.ir.dims import product, quotient
from lite_core.ops.dtypes import FLOATS, MOVED, NARROW
from lite_core.ops.inference import (
    Inference,
    broadcast_shapes,
    fail,
    normalize_axis,
    propagate_reference,
    same_as_first,
    unknown_shape,
)
from lite_core.ops.narrow_types import to_narrow
from lite_core.ops.number_texts import as_texts, from_texts
from lite_core.ops.registry import op, optional, required

Array = np.ndarray[Any, Any]


def _identity(x: Array) -> Array:
    return x


@op(
    "Identity",
    "input: T -> output: T",
    types={"T": MOVED},
    infer=same_as_first,
    propagate=propagate_reference(_identity),
)
def identity(x: Array) -> Array:
    """The input itself."""
    return x


# **** Shape and Size, with which shape arithmetic begins ****


def _sliced_rank(rank: int, start: int, end: int | None) -> tuple[int, int]:
    def clamp(axis: int) -> int:
        return min(max(axis + rank if axis < 0 else axis, 0), rank)

    first = clamp(start)
    return first, max(first, rank if end is None else clamp(end))


def _infer_shape(inference: Inference) -> list[Shape]:
    shape = inference.shape(0)
    if shape is None:
        return [unknown_shape(1, "rank")]
    start, end = _sliced_rank(len(shape), inference.attributes["start"], inference.attributes["end"])
    return [(end - start,)]


def _propagate_shape(inference: Inference) -> Array | None:
    shape = inference.shape(0)
    if shape is None:
        return None
    start, end = _sliced_rank(len(shape), inference.attributes["start"], inference.attributes["end"])
    return _dims_array(shape[start:end])


def _dims_array(dims: Sequence[Dim]) -> Array:
    is_plain = all(issubclass(type(d), (int, np.integer)) for d in dims)
    return np.array(list(dims), dtype=np.int64 if is_plain else object)


@op(
    "Shape",
    "data: T -> shape: int64",
    types={"T": MOVED},
    attributes={"start": 0, "end": optional("int")},
    infer=_infer_shape,
    propagate=_propagate_shape,
)
def shape(data: Array, *, start: int, end: int | None) -> Array:
    """The dimensions of ``data`` from axis ``start`` up to ``end``, both clamped to its rank."""
    first, last = _sliced_rank(data.ndim, start, end)
    return np.array(data.shape[first:last], dtype=np.int64)


def _propagate_size(inference: Inference) -> Array | None:
    size = inference.type(0).size
    return None if size is None else np.array(size, dtype=object if isinstance(size, SymbolicDim) else np.int64)


@op(
    "Size",
    "data: T -> size: int64",
    types={"T": MOVED},
    infer=lambda inference: [()],
    propagate=_propagate_size,
)
def size(data: Array) -> Array:
    """The number of elements, a scalar."""
    return np.array(data.size, dtype=np.int64)


# **** Reshape ****


def _resolve_reshape(old: Shape | None, wanted: Sequence[Dim], allowzero: int) -> Shape:
    """Return the new shape: 0 copies the old dimension (unless ``allowzero``), one -1 is inferred."""
    result: list[Dim] = []
    copied: set[int] = set()
    inferred_axis = None
    for axis, dim in enumerate(wanted):
        if isinstance(dim, int) and dim == 0 and not allowzero:
            if old is None:
                dim = unknown_shape(1)[0]
            elif axis >= len(old):
                raise fail(f"shape {list(wanted)} copies dimension {axis}, the input has only {len(old)}")
            else:
                dim = old[axis]
                copied.add(axis)
        elif isinstance(dim, int) and dim == -1:
            if inferred_axis is not None:
                raise fail(f"shape {list(wanted)} has more than one -1")
            inferred_axis = axis
        elif isinstance(dim, int) and dim < -1:
            raise fail(f"shape {list(wanted)} has a negative dimension other than -1")
        result.append(dim)
    if inferred_axis is None:
        if old is not None and all(isinstance(d, int) for d in (*old, *result)) and product(old) != product(result):
            raise fail(f"{product(old)} elements do not fit into shape {result}")
        return tuple(result)
    if old is None:
        result[inferred_axis] = unknown_shape(1)[0]
        return tuple(result)
    # Copied dimensions are the same on both sides, so -1 can be inferred even if one of them is 0.
    rest = product(d for axis, d in enumerate(result) if axis != inferred_axis and axis not in copied)
    total = product(d for axis, d in enumerate(old) if axis not in copied)
    if isinstance(rest, int) and rest == 0:
        raise fail(f"shape {list(wanted)}: -1 cannot be inferred beside a dimension of 0")
    if isinstance(total, int) and isinstance(rest, int) and total % rest:
        raise fail(f"{product(old)} elements do not fit into shape {list(wanted)}")
    result[inferred_axis] = quotient(total, rest)
    return tuple(result)


def _infer_reshape(inference: Inference) -> list[Shape | None]:
    wanted = inference.dims(1)
    if wanted is not None:
        return [_resolve_reshape(inference.shape(0), wanted, inference.attributes["allowzero"])]
    vector = inference.shape(1)
    if vector is not None and len(vector) == 1 and isinstance(vector[0], int):
        return [unknown_shape(vector[0])]
    return [None]


def _propagate_reshape(inference: Inference) -> Array | None:
    data, wanted = inference.value(0), inference.ints(1)
    return None if data is None or wanted is None else reshape(data, np.array(wanted), **inference.attributes)


@op(
    "Reshape",
    "data: T, shape: int64 -> reshaped: T",
    types={"T": MOVED},
    attributes={"allowzero": 0},
    infer=_infer_reshape,
    numbers=("shape",),
    propagate=_propagate_reshape,
)
def reshape(data: Array, shape: Array, *, allowzero: int) -> Array:
    """The same elements in another shape: 0 copies a dimension (unless ``allowzero``), one -1 is inferred.

    If a copied dimension has size 0, -1 is inferred from the other dimensions (ONNX leaves this case open), so
    a shape ``[0, -1]`` means the same for an empty batch as for any other batch.
    """
    return data.reshape(_resolve_reshape(data.shape, shape.tolist(), allowzero))


def _infer_flatten(inference: Inference) -> list[Shape]:
    old, axis = inference.shape(0), inference.attributes["axis"]
    if old is None:
        return [unknown_shape(2)]
    # axis may equal the rank: everything goes into the first dimension
    axis = axis if axis == len(old) else normalize_axis(axis, len(old))
    return [(product(old[:axis]), product(old[axis:]))]


@op("Flatten", "input: T -> output: T", types={"T": MOVED}, attributes={"axis": 1}, infer=_infer_flatten)
def flatten(x: Array, *, axis: int) -> Array:
    """``data`` as a matrix: dimensions before ``axis`` become the rows, the others the columns."""
    axis = axis if axis == x.ndim else axis % max(x.ndim, 1)
    return x.reshape(int(np.prod(x.shape[:axis])), -1 if x.size else int(np.prod(x.shape[axis:])))


# **** Squeeze, Unsqueeze ****


def _infer_squeeze(inference: Inference) -> list[Shape | None]:
    old = inference.shape(0)
    if old is None:
        return [None]
    if not inference.has(1):
        if any(isinstance(d, SymbolicDim) for d in old):
            return [None]  # which dimensions are 1 is not known before the model runs
        return [tuple(d for d in old if d != 1)]
    axes = inference.ints(1)
    if axes is None:
        return [None]
    dropped = {normalize_axis(a, len(old)) for a in axes}
    for axis in dropped:
        if isinstance(old[axis], int) and old[axis] != 1:
            raise fail(f"axis {axis} has size {old[axis]} and cannot be squeezed")
    return [tuple(d for axis, d in enumerate(old) if axis not in dropped)]


@op(
    "Squeeze",
    "data: T, axes: int64? -> squeezed: T",
    types={"T": MOVED},
    infer=_infer_squeeze,
    numbers=("axes",),
    propagate=lambda inference: propagate_reference(squeeze)(inference),
)
def squeeze(data: Array, axes: Array | None = None) -> Array:
    """``data`` without the dimensions ``axes``, each of size 1; by default without all dimensions of size 1."""
    return np.squeeze(data, axis=None if axes is None else tuple(axes.tolist()))


def _infer_unsqueeze(inference: Inference) -> list[Shape | None]:
    old, axes = inference.shape(0), inference.ints(1)
    if old is None or axes is None:
        count = inference.shape(1)
        if old is not None and count is not None and isinstance(count[0], int):
            return [unknown_shape(len(old) + count[0])]
        return [None]
    rank = len(old) + len(axes)
    inserted = {normalize_axis(a, rank) for a in axes}
    if len(inserted) != len(axes):
        raise fail(f"axes {list(axes)} name a dimension twice")
    rest = iter(old)
    return [tuple(1 if axis in inserted else next(rest) for axis in range(rank))]


@op(
    "Unsqueeze",
    "data: T, axes: int64 -> expanded: T",
    types={"T": MOVED},
    infer=_infer_unsqueeze,
    numbers=("axes",),
    propagate=lambda inference: propagate_reference(unsqueeze)(inference),
)
def unsqueeze(data: Array, axes: Array) -> Array:
    """``data`` with dimensions of size 1 inserted at ``axes`` of the result."""
    return np.expand_dims(data, tuple(axes.reshape(-1).tolist()))


# **** Transpose, Expand ****


def _infer_transpose(inference: Inference) -> list[Shape | None]:
    old, order = inference.shape(0), inference.attributes["perm"]
    if old is None:
        return [None if order is None else unknown_shape(len(order))]
    if order is None:
        return [old[::-1]]
    if sorted(normalize_axis(a, len(old), "perm entry") for a in order) != list(range(len(old))):
        raise fail(f"perm {list(order)} is not a permutation of {len(old)} axes")
    return [tuple(old[a] for a in order)]


@op(
    "Transpose",
    "data: T -> transposed: T",
    types={"T": MOVED},
    attributes={"perm": optional("ints")},
    infer=_infer_transpose,
    propagate=lambda inference: propagate_reference(transpose)(inference),
)
def transpose(data: Array, *, perm: tuple[int, ...] | None) -> Array:
    """``data`` with its axes in the order ``perm``, by default reversed."""
    return np.transpose(data, perm)


def _infer_expand(inference: Inference) -> list[Shape | None]:
    wanted = inference.dims(1)
    if wanted is not None:
        return [broadcast_shapes(inference.shape(0), wanted)]
    old, vector = inference.shape(0), inference.shape(1)
    if old is not None and vector is not None and isinstance(vector[0], int):
        return [unknown_shape(max(len(old), vector[0]))]
    return [None]


@op("Expand", "input: T, shape: int64 -> output: T", types={"T": MOVED}, infer=_infer_expand, numbers=("shape",))
def expand(x: Array, shape: Array) -> Array:
    """``x`` broadcast against a tensor of the given shape (both ways: a 1 in ``shape`` keeps the size of ``x``)."""
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(shape.tolist())))


# **** Cast, which shape arithmetic often uses ****


def _infer_cast(inference: Inference) -> list[TensorType]:
    return [inference.type(0).with_dtype(inference.attributes["to"])]


def _propagate_cast(inference: Inference) -> Array | None:
    value, to = inference.value(0), inference.attributes["to"]
    if value is None or DType.STRING in (to, inference.dtype(0)):
        return None
    if value.dtype != object:
        return cast_array(value, to, bool(inference.attributes["saturate"]))
    return value if to.is_integer and not to.is_narrow else None


def cast_array(x: Array, to: DType, saturate: bool = True) -> Array:
    """Convert elements to ``to``: to bool is ``x != 0``, float to integer truncates towards zero.

    For narrow types see :func:`to_narrow`, for strings :mod:`lite_core.ops.number_texts`.
    """
    if to is DType.STRING:
        return as_texts(x)
    if x.dtype == object:
        return from_texts(x, to)
    if to.is_narrow:
        return to_narrow(x, to, saturate)
    if DType.of(x.dtype).is_narrow:
        x = x.astype(np.float32)
    if to is DType.BOOL:
        nonzero: Array = x != 0
        return nonzero
    if to.is_integer and x.dtype.kind in "fV":
        # NOTE: converting a float outside the integer's range is undefined in C and differs between machines.
        # Converting by way of int64 wraps around instead, as x86 does and as ONNX's test data shows.
        whole = np.trunc(x.astype(np.float64))
        wrapped = whole.astype(np.int64).astype(to.numpy)
        return np.where(whole >= 2.0**63, whole.astype(np.uint64), wrapped) if to is DType.UINT64 else wrapped
    return x.astype(to.numpy)


@op(
    "Cast",
    "input: T1 -> output: T2",
    types={"T1": MOVED + NARROW, "T2": MOVED + NARROW},
    attributes={"to": required("dtype"), "saturate": 1},
    infer=_infer_cast,
    propagate=_propagate_cast,
)
def cast(x: Array, *, to: DType, saturate: int) -> Array:
    """Elements converted to the element type ``to``. ``saturate`` applies to float8 only."""
    return cast_array(x, to, bool(saturate))


@op(
    "CastLike",
    "input: T1, target_type: T2 -> output: T2",
    types={"T1": MOVED + NARROW, "T2": MOVED + NARROW},
    attributes={"saturate": 1},
    infer=lambda inference: [inference.type(0).with_dtype(inference.dtype(1))],
)
def cast_like(x: Array, target: Array, *, saturate: int) -> Array:
    """Elements converted to the element type of the second input."""
    return cast_array(x, TensorType.of_array(target).dtype, bool(saturate))


@op(
    "Dropout",
    "data: T, ratio: R?, training_mode: bool? -> output: T, mask: bool",
    types={"T": FLOATS, "R": FLOATS},
    attributes={"seed": optional("int")},
    infer=same_as_first,
)
def dropout(data: Array, ratio: Array | None, training_mode: Array | None, *, seed: int | None) -> tuple[Array, Array]:
    """The unchanged data and a mask of ones; only inference is supported."""
    if training_mode is not None and bool(training_mode) and (ratio is None or float(ratio) != 0):
        raise fail("Dropout in training mode is not supported; export the model for inference")
    return data, np.ones(data.shape, dtype=bool)
