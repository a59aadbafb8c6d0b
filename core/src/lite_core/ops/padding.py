"""Pad, and Col2Im, which sums overlapping blocks into an image and crops its padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_core.ir import Dim, Shape, fresh_dim
from lite_core.ops.dtypes import ALL, INDICES
from lite_core.ops.inference import Inference, fail, normalize_axis, unknown_shape
from lite_core.ops.registry import choice, op, optional
from lite_core.ops.shape_checks import check_rank, differ, format_shape

Array = np.ndarray[Any, Any]


# **** Pad ****


def _infer_pad(inference: Inference) -> list[Shape | None]:
    shape, pads, axes = inference.shape(0), inference.dims(1), inference.ints(3)
    if shape is None:
        if inference.has(3) or pads is None:
            return [None]
        return [unknown_shape(len(pads) // 2)]
    if inference.has(3) and axes is None:
        return [unknown_shape(len(shape))]
    padded = list(range(len(shape))) if axes is None else [normalize_axis(a, len(shape)) for a in axes]
    if len(set(padded)) != len(padded):
        raise fail(f"axes {list(axes or ())} name an axis twice")
    result = list(shape)
    if pads is None:
        for axis in padded:
            result[axis] = fresh_dim()
        return [tuple(result)]
    if len(pads) != 2 * len(padded):
        raise fail(
            f"pads {format_shape(pads)} must have a begin and an end for each of {len(padded)} axes "
            f"({2 * len(padded)} entries), has {len(pads)}"
        )
    for axis, begin, end in zip(padded, pads, pads[len(padded) :]):
        result[axis] = _padded_size(shape[axis], begin, end, axis, inference.attributes["mode"])
    return [tuple(result)]


def _padded_size(size: Dim, begin: Dim, end: Dim, axis: int, mode: str) -> Dim:
    new = size + begin + end
    if isinstance(new, int) and new < 0:
        raise fail(f"pads {begin} and {end} crop more than the {size} elements of axis {axis}")
    if mode != "constant" and all(isinstance(d, int) for d in (size, begin, end)):
        kept = size + min(begin, 0) + min(end, 0)  # type: ignore[type-var]
        if isinstance(kept, int) and kept <= 0 and new != 0:
            raise fail(f"mode {mode} cannot pad axis {axis}: it has no elements to repeat")
    return new


def _source_indices(size: int, begin: int, end: int, mode: str) -> Array:
    """Return the source index of each element of the padded axis, for the modes that repeat elements."""
    positions = np.arange(-begin, size + end)
    if mode == "edge":
        return np.clip(positions, 0, size - 1)
    if mode == "wrap":
        return positions % size
    period = max(2 * (size - 1), 1)  # there and back, without repeating the first and the last element
    positions = positions % period
    return np.where(positions < size, positions, period - positions)


@op(
    "Pad",
    "data: T, pads: int64, constant_value: T?, axes: I? -> output: T",
    types={"T": ALL, "I": INDICES},
    attributes={"mode": choice("constant", "reflect", "edge", "wrap")},
    infer=_infer_pad,
    numbers=("pads", "axes"),
)
def pad(
    data: Array, pads: Array, constant_value: Array | None = None, axes: Array | None = None, *, mode: str
) -> Array:
    """``data`` with elements added at both ends of each axis, or cropped where ``pads`` is negative.

    ``pads`` holds the begins of all ``axes``, then the ends. Cropping comes first: the modes reflect,
    edge and wrap repeat elements that remain after it.
    """
    order = list(range(data.ndim)) if axes is None else axes.tolist()
    begins, ends = [0] * data.ndim, [0] * data.ndim
    for axis, begin, end in zip(order, pads.tolist(), pads.tolist()[len(order) :]):
        begins[axis], ends[axis] = begin, end
    if mode == "constant":
        fill = data.dtype.type(0) if constant_value is None else constant_value.reshape(-1)[0]
        return _pad_constant(data, begins, ends, fill)
    data = data[tuple(slice(max(-b, 0), n + min(e, 0)) for n, b, e in zip(data.shape, begins, ends))]
    for axis, (begin, end) in enumerate(zip(begins, ends)):
        if begin > 0 or end > 0:
            source = _source_indices(data.shape[axis], max(begin, 0), max(end, 0), mode)
            data = np.take(data, source, axis=axis)
    return data


def _pad_constant(data: Array, begins: Sequence[int], ends: Sequence[int], fill: Any) -> Array:
    result = np.full([n + b + e for n, b, e in zip(data.shape, begins, ends)], fill, dtype=data.dtype)
    first = [max(-b, 0) for b in begins]
    last = [max(n + min(e, 0), f) for n, e, f in zip(data.shape, ends, first)]
    target = tuple(slice(f + b, z + b) for f, z, b in zip(first, last, begins))
    result[target] = data[tuple(slice(f, z) for f, z in zip(first, last))]
    return result


# **** Col2Im ****


def _spatial(values: tuple[int, ...] | None, default: int, count: int, what: str) -> tuple[int, ...]:
    if values is not None and len(values) != count:
        raise fail(f"{what} must have {count} entries, has {len(values)}")
    return (default,) * count if values is None else values


def _block_counts(
    image: Sequence[int],
    block: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    strides: Sequence[int],
) -> list[int]:
    """Return the number of blocks along each axis of the padded image."""
    rank = len(image)
    return [
        (image[i] + pads[i] + pads[rank + i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(rank)
    ]


def _infer_col2im(inference: Inference) -> list[Shape | None]:
    columns, image, block = inference.shape(0), inference.dims(1), inference.dims(2)
    check_rank(columns, 3, "the input")
    ranks = [len(v) for v in (image, block) if v is not None]
    for i in (1, 2):
        vector = inference.shape(i)
        if vector is not None and len(vector) == 1 and isinstance(vector[0], int):
            ranks.append(vector[0])
    if len(set(ranks)) > 1:
        raise fail(f"image_shape and block_shape must be equally long, have {ranks[0]} and {ranks[-1]} entries")
    if not ranks:
        return [None]
    rank = ranks[0]
    dilations = _spatial(inference.attributes["dilations"], 1, rank, "dilations")
    strides = _spatial(inference.attributes["strides"], 1, rank, "strides")
    pads = _spatial(inference.attributes["pads"], 0, 2 * rank, "pads")
    spatial = unknown_shape(rank) if image is None else image
    if columns is None or block is None:
        return [(columns[0] if columns else fresh_dim(), fresh_dim(), *spatial)]
    size = 1
    for dim in block:
        if not isinstance(dim, int):
            return [(columns[0], fresh_dim(), *spatial)]
        size *= dim
    if isinstance(columns[1], int) and columns[1] % size:
        raise fail(f"axis 1 of the input is {columns[1]}, must be a multiple of the block's {size} elements")
    known = inference.ints(1)
    if known is not None:
        counts = _block_counts(known, inference.ints(2) or (), dilations, pads, strides)
        if min(counts) < 0 or differ(columns[2], int(np.prod(counts))):
            raise fail(f"the input has {columns[2]} blocks, an image of {list(known)} has {counts}")
    return [(columns[0], columns[1] // size, *spatial)]


@op(
    "Col2Im",
    "input: T, image_shape: int64, block_shape: int64 -> output: T",
    types={"T": ALL},
    attributes={"dilations": optional("ints"), "pads": optional("ints"), "strides": optional("ints")},
    infer=_infer_col2im,
    numbers=("image_shape", "block_shape"),
)
def col2im(
    columns: Array,
    image_shape: Array,
    block_shape: Array,
    *,
    dilations: tuple[int, ...] | None,
    pads: tuple[int, ...] | None,
    strides: tuple[int, ...] | None,
) -> Array:
    """Images ``[N, C, *image_shape]`` from blocks ``[N, C·block, L]``, which are summed where they overlap."""
    image, block = image_shape.tolist(), block_shape.tolist()
    rank = len(image)
    dilations = _spatial(dilations, 1, rank, "dilations")
    strides = _spatial(strides, 1, rank, "strides")
    pads = _spatial(pads, 0, 2 * rank, "pads")
    counts = _block_counts(image, block, dilations, pads, strides)
    channels = columns.shape[1] // int(np.prod(block))
    parts = columns.reshape(columns.shape[0], channels, *block, *counts)
    padded = [n + pads[i] + pads[rank + i] for i, n in enumerate(image)]
    result = np.zeros((columns.shape[0], channels, *padded), dtype=columns.dtype)
    for offset in np.ndindex(*block):
        begin = [o * d for o, d in zip(offset, dilations)]
        target: tuple[Any, ...] = (..., *(slice(b, b + s * n, s) for b, s, n in zip(begin, strides, counts)))
        block_element: tuple[Any, ...] = (slice(None), slice(None), *offset)
        result[target] += parts[block_element]
    inner: tuple[Any, ...] = (..., *(slice(pads[i], pads[i] + n) for i, n in enumerate(image)))
    return np.asarray(result[inner])
