"""Operators that read elements at indices: Gather, GatherElements, GatherND."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Shape
from lite_core.ops.dtypes import INDICES, MOVED
from lite_core.ops.inference import Inference, fail, normalize_axis, unknown_shape
from lite_core.ops.registry import op
from lite_core.ops.shape_checks import differ, format_shape

Array = np.ndarray[Any, Any]


def check_indices(indices: Array, size: int, axis: int) -> None:
    """Raise GraphError if an index is not in ``[-size, size)``."""
    if indices.size and (indices.min() < -size or indices.max() >= size):
        wrong = indices[(indices < -size) | (indices >= size)].reshape(-1)[0]
        raise fail(f"index {wrong} is out of range for axis {axis} of size {size}")


# **** Gather ****


def _infer_gather(inference: Inference) -> list[Shape | None]:
    data, indices = inference.shape(0), inference.shape(1)
    if data is None:
        return [None]
    axis = normalize_axis(inference.attributes["axis"], len(data))
    return [None if indices is None else (*data[:axis], *indices, *data[axis + 1 :])]


def _propagate_gather(inference: Inference) -> Array | None:
    data, indices = inference.value(0), inference.value(1)
    if data is None or indices is None or indices.dtype == object:
        return None
    return np.asarray(gather(data, indices, **inference.attributes))


@op(
    "Gather",
    "data: T, indices: I -> output: T",
    types={"T": MOVED, "I": INDICES},
    attributes={"axis": 0},
    infer=_infer_gather,
    propagate=_propagate_gather,
)
def gather(data: Array, indices: Array, *, axis: int) -> Array:
    """Slices of ``data`` along ``axis`` at ``indices``; the shape of ``indices`` replaces the axis."""
    check_indices(indices, data.shape[axis], axis)
    return np.asarray(np.take(data, indices, axis=axis))


# **** GatherElements ****


def _infer_gather_elements(inference: Inference) -> list[Shape | None]:
    data, indices = inference.shape(0), inference.shape(1)
    if data is not None:
        axis = normalize_axis(inference.attributes["axis"], len(data))
        if indices is not None:
            check_elementwise_indices(data, indices, axis)
    return [indices if indices is not None or data is None else unknown_shape(len(data))]


def check_elementwise_indices(data: Shape, indices: Shape, axis: int) -> None:
    """Raise GraphError if ``indices`` has another rank than ``data``, or is larger on an axis other than ``axis``."""
    if len(data) != len(indices):
        raise fail(f"indices {format_shape(indices)} must have the rank of data {format_shape(data)}")
    for number, (have, want) in enumerate(zip(data, indices)):
        if number != axis and isinstance(have, int) and isinstance(want, int) and want > have:
            raise fail(f"indices {format_shape(indices)} exceeds data {format_shape(data)} in axis {number}")


def elementwise_index(shape: tuple[int, ...], indices: Array, axis: int) -> tuple[Array, ...]:
    """Return index arrays that address ``data[i, .., indices[i, .., k], ..]`` for every element of ``indices``."""
    index: list[Array] = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
    check_indices(indices, shape[axis], axis)
    index[axis] = indices
    return tuple(index)


@op(
    "GatherElements",
    "data: T, indices: I -> output: T",
    types={"T": MOVED, "I": INDICES},
    attributes={"axis": 0},
    infer=_infer_gather_elements,
)
def gather_elements(data: Array, indices: Array, *, axis: int) -> Array:
    """``output[i, j, k] = data[indices[i, j, k], j, k]`` for axis 0, and so on."""
    axis %= data.ndim
    return np.asarray(data[elementwise_index(data.shape, indices, axis)])


# **** GatherND ****


def _infer_gather_nd(inference: Inference) -> list[Shape | None]:
    data, indices, batch = inference.shape(0), inference.shape(1), inference.attributes["batch_dims"]
    if data is None or indices is None:
        return [None]
    if not 0 <= batch < max(min(len(data), len(indices)), 1):
        raise fail(
            f"batch_dims {batch} must be less than the ranks of data {format_shape(data)} "
            f"and indices {format_shape(indices)}"
        )
    for axis in range(batch):
        if differ(data[axis], indices[axis]):
            raise fail(f"data {format_shape(data)} and indices {format_shape(indices)} differ in batch axis {axis}")
    depth = check_index_depth(data[batch:], indices)
    return [None if depth is None else (*indices[:-1], *data[batch + depth :])]


def check_index_depth(data: Shape, indices: Shape) -> int | None:
    """Return the number of axes of ``data`` that an index tuple addresses, or None if it is unknown.

    Raises:
        GraphError: an input is a scalar, or the tuples are longer than the rank of ``data``.
    """
    if not data or not indices:
        raise fail(f"data {format_shape(data)} and indices {format_shape(indices)} must not be scalars")
    depth = indices[-1]
    if isinstance(depth, int) and depth > len(data):
        raise fail(f"indices {format_shape(indices)} has tuples of {depth} for the {len(data)} axes of data")
    return depth if isinstance(depth, int) else None


def nd_index(shape: tuple[int, ...], indices: Array, batch_dims: int = 0) -> tuple[Array, ...]:
    """Return index arrays that address the slices given by the tuples in ``indices``, in a tensor of ``shape``."""
    tuples = np.moveaxis(indices, -1, 0)
    for axis, of_axis in enumerate(tuples, batch_dims):
        check_indices(of_axis, shape[axis], axis)
    batch = np.ogrid[tuple(slice(n) for n in indices.shape[:batch_dims])]
    trailing = indices.ndim - 1 - batch_dims
    return (*(b.reshape(b.shape + (1,) * trailing) for b in batch), *tuples)


@op(
    "GatherND",
    "data: T, indices: int64 -> output: T",
    types={"T": MOVED},
    attributes={"batch_dims": 0},
    infer=_infer_gather_nd,
)
def gather_nd(data: Array, indices: Array, *, batch_dims: int) -> Array:
    """Slices of ``data`` (of each batch entry) at the index tuples in the last axis of ``indices``."""
    index = nd_index(data.shape, indices, batch_dims)
    if not index:  # empty tuples address the whole tensor
        return np.broadcast_to(data, indices.shape[:-1] + data.shape)
    return np.asarray(data[index])
