"""DeformConv: convolution whose taps are shifted by offsets from an input tensor."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from lite_core.ir import Dim, Shape, fresh_dim
from lite_core.ir.dims import product as product_of
from lite_core.ops.convolution import (
    check_channels,
    convolution_kernel,
    count_elements,
    per_channel,
)
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import op, optional
from lite_core.ops.shape_checks import check_vector, differ, format_shape
from lite_core.ops.spatial import WindowAttributes, WindowAxis, window_axes, window_counts

Array = np.ndarray[Any, Any]


def _infer_deform_conv(inference: Inference) -> list[Shape | None]:
    x, w, attributes = inference.shape(0), inference.shape(1), inference.attributes
    group, offset_group = attributes["group"], attributes["offset_group"]
    kernel = convolution_kernel(x, w, attributes["kernel_shape"])
    if kernel is None:
        return [None]
    check_channels(x, w, group)
    if offset_group < 1 or (x is not None and isinstance(x[1], int) and x[1] % offset_group):
        raise fail(f"offset_group {offset_group} must divide the channels of the input {format_shape(x)}")
    channels = fresh_dim("channels") if w is None else w[0]
    check_vector(inference, 3, channels, "the bias", "output channel")
    batch: Dim = fresh_dim("batch") if x is None else x[0]
    sizes = tuple(fresh_dim("size") for _ in kernel) if x is None else x[2:]
    window = WindowAttributes.read(attributes, len(kernel))
    counts = window_counts(window, kernel, sizes)
    taps = product_of(kernel) * offset_group
    for index, what, per_window in ((2, "offset", taps * len(kernel)), (4, "mask", taps)):
        expected = (batch, per_window, *counts)
        shape = inference.shape(index) if inference.has(index) else None
        if shape is not None and (len(shape) != len(expected) or any(differ(a, b) for a, b in zip(shape, expected))):
            raise fail(f"{what} must be {format_shape(expected)}, is {format_shape(shape)}")
    return [(batch, channels, *counts)]


def _sample(images: Array, positions: Sequence[Array]) -> Array:
    """Interpolate linearly between the elements around each position; elements outside the image are zero.

    Args:
        images: [batch, offset groups, channels, *spatial].
        positions: for each spatial axis, the coordinates to read: [batch, offset groups, *windows].

    Returns:
        [batch, offset groups, channels, windows].
    """
    sizes = images.shape[3:]
    flat = images.reshape(*images.shape[:3], count_elements(sizes))
    lower = [np.floor(p) for p in positions]
    shape = (*positions[0].shape[:2], 1, count_elements(positions[0].shape[2:]))
    result = np.zeros((*flat.shape[:3], shape[3]), dtype=images.dtype)
    for corner in product((0, 1), repeat=len(sizes)):
        index = np.zeros(positions[0].shape, dtype=np.int64)
        weight = np.ones(positions[0].shape, dtype=images.dtype)
        inside = np.ones(positions[0].shape, dtype=bool)
        for size, position, low, upper in zip(sizes, positions, lower, corner):
            neighbour = low + upper
            inside &= (neighbour >= 0) & (neighbour < size)
            weight = weight * np.where(inside, 1 - np.abs(position - neighbour), np.zeros_like(position))
            index = index * size + np.clip(np.nan_to_num(neighbour), 0, size - 1).astype(np.int64)
        elements = np.take_along_axis(flat, index.reshape(shape), axis=3)
        elements = np.where(inside.reshape(shape), elements, np.zeros_like(elements))  # not 0 * infinity
        result += elements * weight.reshape(shape)
    return result


def _positions(axes: Sequence[WindowAxis], tap: Sequence[int], offsets: Array) -> list[Array]:
    """Return the coordinates that a tap reads in every window, for each axis.

    ``offsets`` is [batch, groups, axes, *windows].
    """
    positions = []
    for number, (axis, t) in enumerate(zip(axes, tap)):
        regular = np.arange(axis.count, dtype=offsets.dtype) * axis.stride + (t * axis.dilation - axis.begin)
        regular = regular.reshape(-1, *(1 for _ in range(len(axes) - number - 1)))
        positions.append(regular + offsets[:, :, number])
    return positions


@op(
    "DeformConv",
    "X: T, W: T, offset: T, B: T?, mask: T? -> Y: T",
    types={"T": FLOATS},
    attributes={
        "dilations": optional("ints"),
        "group": 1,
        "kernel_shape": optional("ints"),
        "offset_group": 1,
        "pads": optional("ints"),
        "strides": optional("ints"),
    },
    infer=_infer_deform_conv,
)
def deform_conv(
    x: Array,
    w: Array,
    offset: Array,
    b: Array | None,
    mask: Array | None,
    *,
    group: int,
    offset_group: int,
    **attributes: Any,
) -> Array:
    """Deformable convolution (https://arxiv.org/abs/1703.06211, with masks https://arxiv.org/abs/1811.11168).

    Tap ``k`` of each window reads the input at its regular position plus ``offset``, interpolated linearly,
    times ``mask``. ``offset`` is [batch, offset_group * taps * axes, *windows] and ``mask``
    [batch, offset_group * taps, *windows]; each offset group serves ``channels / offset_group`` channels.
    """
    kernel, rank = w.shape[2:], x.ndim - 2
    axes = window_axes(WindowAttributes.read(attributes, rank), kernel, x.shape[2:])
    batch, channels = x.shape[:2]
    windows = tuple(a.count for a in axes)
    tap_count, window_count = count_elements(kernel), count_elements(windows)
    images = x.reshape(batch, offset_group, channels // offset_group, *x.shape[2:])
    offsets = offset.reshape(batch, offset_group, tap_count, rank, *windows)
    masks = None if mask is None else mask.reshape(batch, offset_group, tap_count, 1, window_count)
    columns = np.empty((batch, offset_group, images.shape[2], tap_count, window_count), dtype=x.dtype)
    for number, tap in enumerate(np.ndindex(*kernel)):
        sampled = _sample(images, _positions(axes, tap, offsets[:, :, number]))
        columns[:, :, :, number] = sampled if masks is None else sampled * masks[:, :, number]
    matrices = w.reshape(group, w.shape[0] // group, w.shape[1] * tap_count)
    y: Array = np.matmul(matrices, columns.reshape(batch, group, w.shape[1] * tap_count, window_count))
    y = y.reshape(batch, w.shape[0], *windows)
    if b is not None:
        y += per_channel(b, x.ndim)
    return y
