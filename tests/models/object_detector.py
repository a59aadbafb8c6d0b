"""A graph shaped like an exported YOLOv8-nano, with random weights and pictures of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
from random_layers import RandomLayers

from lite_core.ir import DType, Graph, Value

Array = np.ndarray[Any, Any]

KINDS, BINS = 20, 16

#: The root mean square of ``silu(x)`` for normal ``x`` is 0.596.
_GAIN = 1.68


def object_detector(*, suppress: bool = False) -> Graph:
    """Build a graph from pictures [batch, 3, height, width], multiples of 32, to [batch, boxes, 4 + kinds].

    A prediction is a box (centre and size, in pixels) and the probability of each kind.

    Args:
        suppress: also output the indices (picture, kind, box) of the boxes that non-maximum suppression keeps.
    """
    g = RandomLayers("object_detector")
    x = g.builder.input("picture", "float32", ["batch", 3, "height", "width"])
    x = _conv(g, _conv(g, x, 16, 3, stride=2), 32, 3, stride=2)
    fine = _stage(g, _conv(g, _stage(g, x, 32), 64, 3, stride=2), 64)
    middle = _stage(g, _conv(g, fine, 128, 3, stride=2), 128)
    coarse = _pyramid_pool(g, _stage(g, _conv(g, middle, 256, 3, stride=2), 256))
    middle = _stage(g, _join(g, _upsample(g, coarse), middle), 128, shortcut=False)
    fine = _stage(g, _join(g, _upsample(g, middle), fine), 64, shortcut=False)
    middle = _stage(g, _join(g, _conv(g, fine, 64, 3, stride=2), middle), 128, shortcut=False)
    coarse = _stage(g, _join(g, _conv(g, middle, 128, 3, stride=2), coarse), 256, shortcut=False)
    maps = [fine, middle, coarse]
    sides = g("Concat", *(_branch(g, x, 4 * BINS) for x in maps), axis=2)
    scores = g("Sigmoid", g("Concat", *(_branch(g, x, KINDS) for x in maps), axis=2))
    centres, strides = _cells(g, maps)
    boxes = _decode(g, _distances(g, sides), centres, strides)
    g.output(g("Transpose", g("Concat", boxes, scores, axis=1), perm=(0, 2, 1)), "predictions")
    if suppress:
        g.output(_suppress(g, boxes, scores), "kept")
    return g.build()


def pictures(batch: int = 1, height: int = 160, width: int = 128) -> dict[str, Array]:
    """Return inputs of :func:`object_detector`: coloured noise with large and small patterns."""
    random = np.random.default_rng([batch, height, width])
    picture = np.zeros((batch, 3, height, width))
    for size in (1, 8, 32):
        coarse = random.uniform(0, 1 / 3, (batch, 3, height // size, width // size))
        picture += coarse.repeat(size, axis=2).repeat(size, axis=3)
    return {"picture": picture.astype(np.float32)}


# **** the backbone ****


def _conv(g: RandomLayers, x: Value, channels: int, kernel: int, stride: int = 1) -> Value:
    """Add a convolution and SiLU, as the nodes that exporters write."""
    y = g.conv(x, channels, kernel, stride=stride, gain=_GAIN)
    return g("Mul", y, g("Sigmoid", y))


def _join(g: RandomLayers, *parts: Value) -> Value:
    return g("Concat", *parts, axis=1)


def _stage(g: RandomLayers, x: Value, channels: int, *, shortcut: bool = True) -> Value:
    """Pass half of the channels through, half through a bottleneck, and join all (C2f)."""
    half = channels // 2
    parts = g.split(_conv(g, x, channels, 1), (half, half), axis=1)
    inner = _conv(g, _conv(g, parts[1], half, 3), half, 3)
    parts.append(g("Add", parts[1], inner) if shortcut else inner)
    return _conv(g, _join(g, *parts), channels, 1)


def _pyramid_pool(g: RandomLayers, x: Value) -> Value:
    """Join the values with maxima over windows of growing size (SPPF)."""
    parts = [_conv(g, x, 128, 1)]
    for _ in range(3):
        parts.append(g("MaxPool", parts[-1], kernel_shape=(5, 5), pads=(2,) * 4))
    return _conv(g, _join(g, *parts), 256, 1)


def _upsample(g: RandomLayers, x: Value) -> Value:
    scales = g.builder.constant(np.array([1, 1, 2, 2], np.float32))
    modes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return g("Resize", x, None, scales, **modes)


# **** the head ****


def _branch(g: RandomLayers, x: Value, channels: int) -> Value:
    """Predict from one map: [batch, channels, cells]."""
    y = g.conv(_conv(g, _conv(g, x, 64, 3), 64, 3), channels, 1)
    return g.reshape(y, 0, channels, -1)


def _distances(g: RandomLayers, sides: Value) -> Value:
    """Compute the expected distance of each side, from a distribution over integers: [batch, 4, cells]."""
    bins = g("Transpose", g.reshape(sides, 0, 4, BINS, -1), perm=(0, 2, 1, 3))
    positions = g.builder.constant(np.arange(BINS, dtype=np.float32).reshape(1, BINS, 1, 1))
    return g.reshape(g("Conv", g("Softmax", bins, axis=1), positions, kernel_shape=(1, 1)), 0, 4, -1)


def _cells(g: RandomLayers, maps: list[Value]) -> tuple[Value, Value]:
    """Return the centres (x, y) of all cells, in cells, [2, cells], and the pixels between them, [1, cells]."""
    centres, strides = [], []
    for level, cells in enumerate(maps):
        size = g("Shape", cells, start=2)
        planes = [_positions(g, size, axis) for axis in (1, 0)]
        centres.append(g("Concat", *planes, axis=0))
        stride = g("ConstantOfShape", size, value=np.array([8.0 * 2**level], np.float32))
        strides.append(g.reshape(stride, 1, -1))
    return g("Concat", *centres, axis=1), g("Concat", *strides, axis=1)


def _positions(g: RandomLayers, size: Value, axis: int) -> Value:
    """Return the position of each cell of a map along an axis: [1, cells]."""
    count = g("Gather", size, g.number(axis, "int64"))
    numbers = g("Cast", g("Range", g.number(0, "int64"), count, g.number(1, "int64")), to=DType.FLOAT32)
    middle = g("Add", numbers, g.number(0.5))
    return g.reshape(g("Expand", g("Unsqueeze", middle, g.builder.ints(1 - axis)), size), 1, -1)


def _decode(g: RandomLayers, distances: Value, centres: Value, strides: Value) -> Value:
    """Compute boxes (centre x, centre y, width, height) in pixels: [batch, 4, cells]."""
    before, after = g.split(distances, (2, 2), axis=1)
    first, last = g("Sub", centres, before), g("Add", centres, after)
    middle = g("Div", g("Add", first, last), g.number(2.0))
    return g("Mul", g("Concat", middle, g("Sub", last, first), axis=1), strides)


def _suppress(g: RandomLayers, boxes: Value, scores: Value) -> Value:
    most_boxes = g.builder.ints(10)
    overlap, least = (g.builder.constant(np.array([limit], np.float32)) for limit in (0.5, 0.6))
    rows = g("Transpose", boxes, perm=(0, 2, 1))
    return g("NonMaxSuppression", rows, scores, most_boxes, overlap, least, center_point_box=1)
