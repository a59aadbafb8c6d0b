"""Lists of tensors whose number depends on data: what ONNX calls sequences, as two tensors.

``elements`` are the elements of all tensors of a list, one after another, as a vector; ``shapes`` has a row for each
tensor, its sizes. All tensors of a list have the same number of dimensions; a tensor inserted into an empty list
decides it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Dim, DType, Shape, TensorType, fresh_dim
from lite_core.ops.dtypes import INDICES, MOVED
from lite_core.ops.inference import Inference, fail, unknown_shape
from lite_core.ops.registry import op, required

Array = np.ndarray[Any, Any]
#: The two tensors of a list.
List = tuple[Array, Array]

_LIST = "elements: T, shapes: int64"
_TYPES = {"T": MOVED, "I": INDICES}


def _list_types(dtype: DType, length: Dim, rank: Dim) -> list[TensorType]:
    return [TensorType(dtype, (fresh_dim("elements"),)), TensorType(DType.INT64, (length, rank))]


def _length_and_rank(inference: Inference, shapes: int = 1) -> tuple[Dim, Dim]:
    """Return the dimensions of the input ``shapes``: the number of tensors, and that of their dimensions."""
    shape = inference.shape(shapes)
    if shape is not None and len(shape) != 2:
        raise fail(f"the shapes of a list are a matrix, not a tensor with {len(shape)} dimensions")
    return (fresh_dim("length"), fresh_dim("rank")) if shape is None else (shape[0], shape[1])


def _rank_of(shape: Shape | None) -> Dim:
    return fresh_dim("rank") if shape is None else len(shape)


def _sizes(shapes: Array) -> Array:
    """Return the number of elements of each tensor."""
    return np.asarray(np.prod(shapes, axis=1, dtype=np.int64))


def _place(position: Array | None, count: int, last: int) -> int:
    """Return a position from 0 to ``last``; negative ones count from ``count``, and a missing one is the last."""
    place = last if position is None else int(position.reshape(()))
    if not -count <= place <= last or last < 0:
        raise fail(f"there is no position {place} in a list of {count} tensors")
    return place + count if place < 0 else place


def _tensors(elements: Array, shapes: Array) -> list[Array]:
    pieces = np.split(elements, np.cumsum(_sizes(shapes))[:-1]) if len(shapes) else []
    return [piece.reshape(tuple(shape)) for piece, shape in zip(pieces, shapes.tolist())]


def _packed(tensors: list[Array]) -> List:
    ranks = {tensor.ndim for tensor in tensors}
    if len(ranks) > 1:
        raise fail(f"the tensors of one list have different numbers of dimensions: {sorted(ranks)}")
    shapes = np.array([tensor.shape for tensor in tensors], np.int64).reshape(len(tensors), *ranks)
    return np.concatenate([tensor.reshape(-1) for tensor in tensors]), shapes


# **** building lists ****


@op(
    "ListOf",
    "tensors: T* -> elements: T, shapes: int64",
    domain="lite",
    types={"T": MOVED},
    infer=lambda inference: _list_types(inference.dtype(0), len(inference.types), _rank_of(inference.shape(0))),
)
def list_of(*tensors: Array) -> List:
    """A list of the inputs, at least one."""
    return _packed(list(tensors))


def _infer_insert(inference: Inference) -> list[TensorType]:
    length, _ = _length_and_rank(inference)
    return _list_types(inference.dtype(0), length + 1, _rank_of(inference.shape(2)))


@op(
    "ListInsert",
    f"{_LIST}, tensor: T, position: I? -> elements: T, shapes: int64",
    domain="lite",
    types=_TYPES,
    infer=_infer_insert,
)
def list_insert(elements: Array, shapes: Array, tensor: Array, position: Array | None) -> List:
    """The list with a tensor inserted before a position, at the end by default."""
    count = len(shapes)
    if count and shapes.shape[1] != tensor.ndim:
        raise fail(f"a tensor with {tensor.ndim} dimensions does not fit a list of those with {shapes.shape[1]}")
    place = _place(position, count, count)
    start = int(_sizes(shapes[:place]).sum())
    joined = np.concatenate([elements[:start], tensor.reshape(-1), elements[start:]])
    row = np.array(tensor.shape, np.int64).reshape(1, -1)
    return joined, np.concatenate([shapes[:place], row, shapes[place:]]) if count else row


def _infer_erase(inference: Inference) -> list[TensorType]:
    length, rank = _length_and_rank(inference)
    if length == 0:
        raise fail("it removes a tensor from an empty list")
    return _list_types(inference.dtype(0), length - 1, rank)


@op(
    "ListErase",
    f"{_LIST}, position: I? -> elements: T, shapes: int64",
    domain="lite",
    types=_TYPES,
    infer=_infer_erase,
)
def list_erase(elements: Array, shapes: Array, position: Array | None) -> List:
    """The list without the tensor at a position, by default the last one."""
    place = _place(position, len(shapes), len(shapes) - 1)
    sizes = _sizes(shapes)
    start = int(sizes[:place].sum())
    rest = np.concatenate([elements[:start], elements[start + int(sizes[place]) :]])
    return rest, np.delete(shapes, place, axis=0)


def _infer_split(inference: Inference) -> list[TensorType]:
    shape, axis = inference.shape(0), inference.attributes["axis"]
    rank = _rank_of(shape)
    if isinstance(rank, int) and not -rank <= axis < rank:
        raise fail(f"axis {axis} is out of range for a tensor of rank {rank}")
    keeps = inference.has(1) or inference.attributes["keepdims"]
    return _list_types(inference.dtype(0), fresh_dim("length"), rank if keeps else rank - 1)


@op(
    "ListSplit",
    "input: T, split: I? -> elements: T, shapes: int64",
    domain="lite",
    types=_TYPES,
    attributes={"axis": 0, "keepdims": 1},
    infer=_infer_split,
)
def list_split(x: Array, split: Array | None, *, axis: int, keepdims: int) -> List:
    """A list of the parts along ``axis``: of the sizes ``split``, of one size (the last may be smaller), or of size 1.

    Without ``split``, parts lose the axis if ``keepdims`` is 0.
    """
    axis %= x.ndim
    size = x.shape[axis]
    if split is not None and split.ndim:
        if (split < 0).any() or split.sum() != size:
            raise fail(f"split {split.tolist()} does not add up to {size}")
        bounds = np.cumsum(split)[:-1]
        parts = np.split(x, bounds, axis) if split.size else []
    else:
        step = 1 if split is None else int(split)
        if step < 1:
            raise fail(f"the parts must have at least 1 element along the axis, not {step}")
        parts = np.split(x, range(step, size, step), axis) if size else []
    if split is None and not keepdims:
        parts = [part.squeeze(axis) for part in parts]
    if not parts:
        return np.empty(0, x.dtype), np.empty((0, x.ndim - (split is None and not keepdims)), np.int64)
    return _packed(parts)


# **** taking lists apart ****


def _infer_at(inference: Inference) -> list[Shape | None]:
    _, rank = _length_and_rank(inference)
    return [unknown_shape(rank) if isinstance(rank, int) else None]


@op("ListAt", f"{_LIST}, position: I -> tensor: T", domain="lite", types=_TYPES, infer=_infer_at)
def list_at(elements: Array, shapes: Array, position: Array) -> Array:
    """The tensor at a position; negative ones count from the end."""
    place = _place(position, len(shapes), len(shapes) - 1)
    sizes = _sizes(shapes)
    start = int(sizes[:place].sum())
    return elements[start : start + int(sizes[place])].reshape(tuple(shapes[place].tolist()))


def _infer_concat(inference: Inference) -> list[Shape | None]:
    length, rank = _length_and_rank(inference)
    if length == 0:
        raise fail("it concatenates the tensors of an empty list")
    if not isinstance(rank, int):
        return [None]
    axis, rank = inference.attributes["axis"], rank + bool(inference.attributes["new_axis"])
    if not -rank <= axis < rank:
        raise fail(f"axis {axis} is out of range for a result of rank {rank}")
    return [unknown_shape(rank)]


@op(
    "ListConcat",
    f"{_LIST} -> concatenated: T",
    domain="lite",
    types={"T": MOVED},
    attributes={"axis": required("int"), "new_axis": 0},
    infer=_infer_concat,
)
def list_concat(elements: Array, shapes: Array, *, axis: int, new_axis: int) -> Array:
    """All tensors of the list concatenated along an axis, or stacked along a new one."""
    tensors = _tensors(elements, shapes)
    if not tensors:
        raise fail("it concatenates the tensors of an empty list")
    if any(t.shape != tensors[0].shape for t in tensors) and new_axis:
        raise fail(f"tensors of different shapes cannot be stacked: {sorted({t.shape for t in tensors})}")
    return np.stack(tensors, axis) if new_axis else np.concatenate(tensors, axis)
