"""Images sampled between their elements: deformable convolution, and regions of interest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lite_core.backend import No, Yes
from lite_core.ir import Array, Node
from lite_core.ops.spatial import WindowAttributes, window_axes
from lite_numba.backend import backend
from lite_numba.kernels.numpy_calls import FLOATS, by_reference


def _neighbours(y, x, height, width, strength, elements, shares):
    """Store the positions of four neighbours in an image, -1 for one outside, and their weights."""
    elements[:] = -1
    if -1 < y < height and -1 < x < width:
        top, left = math.floor(y), math.floor(x)
        for k in range(4):
            row, column = top + k // 2, left + k % 2
            if 0 <= row < height and 0 <= column < width:
                elements[k] = row * width + column
                shares[k] = strength * (1 - abs(y - row)) * (1 - abs(x - column))


def _weighted(image, elements, shares):
    """Return the sum of the neighbours inside the image times their weights."""
    total = image.dtype.type(0)
    for k in range(4):
        if elements[k] >= 0:
            total += image[elements[k]] * shares[k]
    return total


# **** DeformConv ****


def _windows(x: Array, w: Array, attributes: dict[str, Any]) -> tuple[tuple[int, int, int], ...]:
    """Return stride, dilation and padding before the input, of rows and of columns."""
    axes = window_axes(WindowAttributes.read(attributes, 2), w.shape[2:], x.shape[2:])
    return tuple((axis.stride, axis.dilation, axis.begin) for axis in axes)


def _of_planes(node: Node) -> Yes | No:
    return Yes() if node.inputs[0] is not None and node.inputs[0].type.rank == 4 else No("the loop is for images")


def _deform_conv(x: Array, w: Array, offset: Array, b: Array, mask: Array, *, out: Array, **attributes: Any) -> Any:
    taps, groups = math.prod(w.shape[2:]), attributes["offset_group"]
    offsets = offset.reshape(len(x), groups, taps, 2, *out.shape[2:])
    masks = None if mask is None else mask.reshape(len(x), groups, taps, *out.shape[2:])
    weights = w.reshape(len(w), w.shape[1], taps)
    return x, weights, w.shape[3], offsets, b, masks, attributes["group"], *_windows(x, w, attributes), out


@backend.kernel("DeformConv", dtypes=FLOATS, when=_of_planes, prepare=_deform_conv)
def deform_conv(x, w, kernel_width, offsets, b, masks, group, vertical, horizontal, out):
    """A tap reads ``x`` between its elements, at its position plus an offset: one row of samples for all filters."""
    (row_step, row_dilation, above), (step, dilation, left) = vertical, horizontal
    batch, channels, height, width = x.shape
    filters, per_group, taps = w.shape
    _, _, rows, columns = out.shape
    per_offset, per_filter = channels // offsets.shape[1], filters // group
    elements, shares = np.empty((4, columns), np.int64), np.empty((4, columns), x.dtype)
    row = np.empty(columns, x.dtype)
    for n in range(batch):
        images = x[n].reshape(channels, height * width)
        for f in range(filters):
            out[n, f] = 0 if b is None else b[f]
        for oh in range(rows):
            for o in range(offsets.shape[1]):
                for tap in range(taps):
                    y0 = oh * row_step + tap // kernel_width * row_dilation - above
                    x0 = tap % kernel_width * dilation - left
                    for ow in range(columns):
                        v, h = offsets[n, o, tap, 0, oh, ow] + y0, offsets[n, o, tap, 1, oh, ow] + (x0 + ow * step)
                        strength = 1.0 if masks is None else masks[n, o, tap, oh, ow]
                        _neighbours(v, h, height, width, strength, elements[:, ow], shares[:, ow])
                    for c in range(o * per_offset, (o + 1) * per_offset):
                        for ow in range(columns):
                            row[ow] = _weighted(images[c], elements[:, ow], shares[:, ow])
                        for f in range(c // per_group * per_filter, (c // per_group + 1) * per_filter):
                            weight = w[f, c % per_group, tap]
                            for ow in range(columns):
                                out[n, f, oh, ow] += weight * row[ow]


by_reference("DeformConv")


# **** RoiAlign ****


def _aligned(
    x: Array, rois: Array, images: Array, *, out: Array, sampling_ratio: int, mode: str, **attributes: Any
) -> Any:
    if images.size and not 0 <= images.min() <= images.max() < len(x):
        raise ValueError(f"batch_indices must be from 0 to {len(x) - 1}, are {images.tolist()}")
    is_shifted = attributes["coordinate_transformation_mode"] == "half_pixel"
    corners = rois.astype(np.float64) * attributes["spatial_scale"] - (0.5 if is_shifted else 0.0)
    return x, corners, images, sampling_ratio, not is_shifted, mode == "avg", out


@backend.kernel("RoiAlign", dtypes=FLOATS, prepare=_aligned)
def roi_align(x, corners, images, ratio, least_size, is_mean, out):
    """A bin is the mean of its samples, or the largest of all their four weighted neighbours, as ONNX defines it."""
    _, channels, height, width = x.shape
    _, _, bins_h, bins_w = out.shape
    for r in range(len(corners)):
        top, left = corners[r, 1], corners[r, 0]
        bin_h, bin_w = (corners[r, 3] - top) / bins_h, (corners[r, 2] - left) / bins_w
        if least_size:
            bin_h, bin_w = max(bin_h, 1 / bins_h), max(bin_w, 1 / bins_w)
        rows = ratio if ratio > 0 else max(math.ceil(bin_h), 0)
        columns = ratio if ratio > 0 else max(math.ceil(bin_w), 0)
        count = rows * columns if height and width else 0
        elements, shares = np.empty((count, 4), np.int64), np.empty((count, 4), x.dtype)
        maps = x[images[r]].reshape(channels, height * width)
        for i in range(bins_h):
            for j in range(bins_w):
                for k in range(count):
                    y = top + (i + (k // columns + 0.5) / rows) * bin_h
                    z = left + (j + (k % columns + 0.5) / columns) * bin_w
                    inside = 1.0 if -1 <= y <= height and -1 <= z <= width else 0.0
                    y, z = min(max(y, 0.0), height - 1.0), min(max(z, 0.0), width - 1.0)  # the edge's values go on
                    _neighbours(y, z, height, width, inside, elements[k], shares[k])
                for c in range(channels):
                    total, largest = 0.0, -np.inf if count else 0.0
                    for k in range(count):
                        for corner in range(4):
                            element = elements[k, corner]
                            term = maps[c, element] * shares[k, corner] if element >= 0 else 0.0
                            total += term
                            largest = term if term > largest or term != term else largest
                    out[r, c, i, j] = total / max(count, 1) if is_mean else largest
