"""Slice and CenterCropPad: parts of a tensor selected by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_core.ir import Dim, Shape, fresh_dim
from lite_core.ir.dims import maximum
from lite_core.ops.dtypes import ALL, INDICES, MOVED
from lite_core.ops.inference import Inference, fail, normalize_axis, unknown_shape
from lite_core.ops.registry import op, optional
from lite_core.ops.shape_checks import format_shape

Array = np.ndarray[Any, Any]

# A start or end beyond any size: exporters write INT32_MAX or INT64_MAX for "to the end".
_FAR = 2**31 - 1


def _bounds(size: int, start: int, end: int, step: int) -> tuple[int, int]:
    """Return the first index and the number of indices of a slice of one axis."""
    start, end = (v + size if v < 0 else v for v in (start, end))
    first = min(max(start, 0), size if step > 0 else size - 1)
    last = min(max(end, 0), size) if step > 0 else min(max(end, -1), size - 1)
    return first, max(-((first - last) // step), 0)


def _clamped(bound: Dim, size: Dim) -> Dim | None:
    """Clamp a start or end of a forward slice to 0..``size``; None if no expression is exact.

    The minimum of a and b is written ``b - max(b - a, 0)``, so that parts of one axis add up to its size.
    """
    if isinstance(bound, int):
        if bound >= _FAR:
            return size
        if bound == 0 or bound <= -_FAR:
            return 0
        return maximum(size + bound, 0) if bound < 0 else size - maximum(size - bound, 0)
    if maximum(bound, 0) == bound:  # never negative; a negative bound would count from the end
        return size - maximum(size - bound, 0)
    # size - 1 is negative for size 0 only, and counting from the end gives 0 there too
    return maximum(bound, 0) if size - bound == 1 else None


def _forward_length(size: Dim, start: Dim, end: Dim) -> Dim:
    """Return the number of indices from ``start`` to ``end``, or a fresh symbol if no expression is exact."""
    first, last = _clamped(start, size), _clamped(end, size)
    if first is None or last is None:
        return fresh_dim("slice")
    if isinstance(start, int) and isinstance(end, int):
        if start >= 0 > end:
            return maximum(size - start + end, 0) if end > -_FAR else 0
        if (start < 0) == (end < 0):
            return last - first if start < end else 0
    ordered = first == 0 or last == size
    return last - first if ordered else maximum(last - first, 0)


def _backward_length(size: Dim, start: Dim, end: Dim) -> Dim:
    """Return the number of indices like :func:`_forward_length`, for a negative step."""
    if not isinstance(start, int) or not isinstance(end, int) or start < -1:
        return fresh_dim("slice")

    def clamped(bound: int) -> Dim:
        return size - 1 if bound >= _FAR else size - 1 - maximum(size - 1 - bound, 0)

    first = size - 1 if start == -1 else clamped(start)
    if end >= 0:
        last = clamped(end)
    else:
        last = -1 if end <= -_FAR else maximum(size + end + 1, 0) - 1
    return maximum(first - last, 0)


def _sliced_size(size: Dim, start: Dim, end: Dim, step: int) -> Dim:
    if isinstance(size, int) and isinstance(start, int) and isinstance(end, int):
        return _bounds(size, start, end, step)[1]
    length = (_forward_length if step > 0 else _backward_length)(size, start, end)
    return (length + abs(step) - 1) // abs(step)


def _check_axes(axes: Sequence[int], rank: int) -> list[int]:
    normalized = [normalize_axis(a, rank) for a in axes]
    if len(set(normalized)) != len(normalized):
        raise fail(f"axes {list(axes)} name an axis twice")
    return normalized


def _infer_slice(inference: Inference) -> list[Shape | None]:
    shape = inference.shape(0)
    starts, ends = inference.dims(1), inference.dims(2)
    axes, steps = inference.ints(3), inference.ints(4)
    if steps is not None and 0 in steps:
        raise fail(f"steps {list(steps)} has a 0")
    if shape is None:
        return [None]
    if axes is None:
        vector = inference.shape(1)
        count = vector[0] if vector is not None and len(vector) == 1 else None
        if inference.has(3) or not isinstance(count, int):
            return [unknown_shape(len(shape), "slice")]
        if count > len(shape):
            raise fail(f"starts has {count} entries for the {len(shape)} axes of {format_shape(shape)}")
        axes = tuple(range(count))
    result = list(shape)
    sliced = _check_axes(axes, len(shape))
    if starts is None or ends is None or (inference.has(4) and steps is None):
        for axis in sliced:
            result[axis] = fresh_dim("slice")
        return [tuple(result)]
    steps = (1,) * len(axes) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise fail(
            "starts, ends, axes and steps must be equally long, have "
            f"{len(starts)}, {len(ends)}, {len(axes)} and {len(steps)} entries"
        )
    for axis, start, end, step in zip(sliced, starts, ends, steps):
        result[axis] = _sliced_size(shape[axis], start, end, step)
    return [tuple(result)]


def _propagate_slice(inference: Inference) -> Array | None:
    data = inference.value(0)
    arguments = [inference.ints(i) if inference.has(i) else () for i in range(1, 5)]
    if data is None or any(a is None for a in arguments):
        return None
    arrays = [np.array(a, dtype=np.int64) if inference.has(i) else None for i, a in enumerate(arguments, 1)]
    return np.asarray(slice_(data, *arrays))


@op(
    "Slice",
    "data: T, starts: I, ends: I, axes: I?, steps: I? -> output: T",
    types={"T": MOVED, "I": INDICES},
    infer=_infer_slice,
    numbers=("starts", "ends", "axes", "steps"),
    propagate=_propagate_slice,
)
def slice_(data: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None) -> Array:
    """Every ``steps[i]``-th element from ``starts[i]`` up to but excluding ``ends[i]`` along axis ``axes[i]``.

    Negative starts and ends count from the end; those outside the axis are clamped to it.
    """
    index = [slice(None)] * data.ndim
    order = range(len(starts)) if axes is None else axes.tolist()
    strides = [1] * len(starts) if steps is None else steps.tolist()
    for axis, start, end, step in zip(order, starts.tolist(), ends.tolist(), strides):
        first, count = _bounds(data.shape[axis], start, end, step)
        stop = first + count * step
        # NOTE: in Python a stop of -1 means the last element; a backward slice that includes index 0 needs None.
        index[axis] = slice(first, None if stop < 0 else stop, step) if count else slice(0, 0)
    return data[tuple(index)]


# **** CenterCropPad ****


def _infer_center_crop_pad(inference: Inference) -> list[Shape | None]:
    shape, wanted, axes = inference.shape(0), inference.dims(1), inference.attributes["axes"]
    if shape is None:
        return [unknown_shape(len(wanted)) if wanted is not None and axes is None else None]
    resized = list(range(len(shape))) if axes is None else _check_axes(axes, len(shape))
    if wanted is None:
        wanted = unknown_shape(len(resized))
    if len(wanted) != len(resized):
        raise fail(f"shape {format_shape(wanted)} must have {len(resized)} entries, one for each axis")
    if any(isinstance(d, int) and d < 0 for d in wanted):
        raise fail(f"shape {format_shape(wanted)} has a negative size")
    result = list(shape)
    for axis, dim in zip(resized, wanted):
        result[axis] = dim
    return [tuple(result)]


@op(
    "CenterCropPad",
    "input_data: T, shape: I -> output_data: T",
    types={"T": ALL, "I": INDICES},
    attributes={"axes": optional("ints")},
    infer=_infer_center_crop_pad,
    numbers=("shape",),
)
def center_crop_pad(x: Array, shape: Array, *, axes: tuple[int, ...] | None) -> Array:
    """``x`` cropped to its centre or surrounded by zeros, axis by axis; an odd remainder is at the end."""
    new_shape = list(x.shape)
    source, target = [slice(None)] * x.ndim, [slice(None)] * x.ndim
    for axis, size in zip(range(x.ndim) if axes is None else axes, shape.tolist()):
        old = x.shape[axis]
        common = min(old, size)
        new_shape[axis] = size
        source[axis] = slice((old - common) // 2, (old - common) // 2 + common)
        target[axis] = slice((size - common) // 2, (size - common) // 2 + common)
    result = np.zeros(new_shape, dtype=x.dtype)
    result[tuple(target)] = x[tuple(source)]
    return result
