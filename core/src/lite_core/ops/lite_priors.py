"""Operators of the domain ``lite`` that generate prior boxes and anchors for a feature map (from Paddle)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from lite_core.ir import Dim, Shape
from lite_core.ops.detection import check_ranks, dim_of
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import AttributeSpec, op, required

Array = np.ndarray[Any, Any]

_VARIANCES = (0.1, 0.1, 0.2, 0.2)


def _infer_grid(inference: Inference, per_cell: int) -> Shape:
    """Infer the shape [H, W, boxes of a cell, 4] for a feature map [N, C, H, W]."""
    check_ranks(inference, (4, 4), ("input", "image"))
    if len(inference.attributes["variances"]) != 4:
        raise fail(f"variances must have 4 entries, has {len(inference.attributes['variances'])}")
    if per_cell == 0:
        raise fail("the attributes describe no box at all: sizes or ratios are empty")
    feature = inference.shape(0)
    return (dim_of(feature, 2, "height"), dim_of(feature, 3, "width"), per_cell, 4)


def _centers(
    feature: Array, image: Array, step_w: float, step_h: float, offset: float
) -> tuple[Array, Array, float, float]:
    """Return the centres [H, W] of the cells in pixels of the image, and the distances between them."""
    height, width = feature.shape[2:]
    if step_w == 0 or step_h == 0:
        step_w, step_h = image.shape[3] / max(width, 1), image.shape[2] / max(height, 1)
    y, x = np.meshgrid((np.arange(height) + offset) * step_h, (np.arange(width) + offset) * step_w, indexing="ij")
    return x, y, step_w, step_h


def _with_variances(boxes: Array, variances: Sequence[float]) -> tuple[Array, Array]:
    return boxes, np.broadcast_to(np.array(variances, np.float64), boxes.shape)


# **** PriorBox ****


def _expand_ratios(ratios: Sequence[float], flip: int) -> list[float]:
    """Return the ratio 1 and then each distinct ratio, followed by its inverse if ``flip`` is set."""
    expanded = [1.0]
    for ratio in ratios:
        if all(abs(ratio - known) >= 1e-6 for known in expanded):
            expanded += [ratio, 1 / ratio] if flip else [ratio]
    return expanded


def _prior_sizes(
    min_sizes: Sequence[float], max_sizes: Sequence[float], ratios: Sequence[float], squares_first: int
) -> list[tuple[float, float]]:
    """Return (width, height) of each box of a cell."""
    sizes: list[tuple[float, float]] = []
    for index, smallest in enumerate(min_sizes):
        square = [np.sqrt(smallest * max_sizes[index])] * 2 if max_sizes else []
        between = [(square[0], square[1])] if square else []
        others = [
            (smallest * np.sqrt(r), smallest / np.sqrt(r)) for r in ratios if not squares_first or abs(r - 1) >= 1e-6
        ]
        sizes += [(smallest, smallest), *between, *others] if squares_first else [*others, *between]
    return sizes


def _infer_prior_box(inference: Inference) -> list[Shape]:
    attributes = inference.attributes
    if attributes["max_sizes"] and len(attributes["max_sizes"]) != len(attributes["min_sizes"]):
        raise fail(
            f"max_sizes must be empty or as long as min_sizes, {len(attributes['min_sizes'])}; "
            f"has {len(attributes['max_sizes'])} entries"
        )
    ratios = _expand_ratios(attributes["aspect_ratios"], attributes["flip"])
    count = len(attributes["min_sizes"]) * len(ratios) + len(attributes["max_sizes"])
    return [_infer_grid(inference, count)] * 2


@op(
    "PriorBox",
    "input: T, image: T -> boxes: T, variances: T",
    domain="lite",
    types={"T": FLOATS},
    attributes={
        "min_sizes": required("floats"),
        "max_sizes": AttributeSpec("floats", default=()),
        "aspect_ratios": AttributeSpec("floats", default=()),
        "variances": _VARIANCES,
        "flip": 1,
        "clip": 1,
        "step_w": 0.0,
        "step_h": 0.0,
        "offset": 0.5,
        "min_max_aspect_ratios_order": 0,
    },
    infer=_infer_prior_box,
)
def prior_box(
    feature: Array,
    image: Array,
    *,
    min_sizes: tuple[float, ...],
    max_sizes: tuple[float, ...],
    aspect_ratios: tuple[float, ...],
    variances: tuple[float, ...],
    flip: int,
    clip: int,
    step_w: float,
    step_h: float,
    offset: float,
    min_max_aspect_ratios_order: int,
) -> tuple[Array, Array]:
    """SSD's default boxes (Liu et al., 2016): [H, W, P, 4] as (x1, y1, x2, y2) in fractions of the image.

    A cell has, for each ``min_sizes`` entry m, boxes of ``m sqrt(a)`` x ``m / sqrt(a)`` for each aspect
    ratio and, with ``max_sizes``, a square of ``sqrt(m M)``; ``min_max_aspect_ratios_order`` puts the
    squares first. A step of 0 is the image's size divided by the feature map's.
    """
    x, y, _, _ = _centers(feature, image, step_w, step_h, offset)
    ratios = _expand_ratios(aspect_ratios, flip)
    sizes = np.array(_prior_sizes(min_sizes, max_sizes, ratios, min_max_aspect_ratios_order)) / 2
    center = np.stack([x, y], axis=-1)[:, :, None, :]
    extent = np.array([image.shape[3], image.shape[2]])
    boxes = np.concatenate([(center - sizes) / extent, (center + sizes) / extent], axis=-1)
    return _with_variances(np.clip(boxes, 0, 1) if clip else boxes, variances)


# **** DensityPriorBox ****


def _infer_density_prior_box(inference: Inference) -> list[Shape]:
    attributes = inference.attributes
    if len(attributes["densities"]) != len(attributes["fixed_sizes"]):
        raise fail(
            f"densities must be as long as fixed_sizes, {len(attributes['fixed_sizes'])}; "
            f"has {len(attributes['densities'])} entries"
        )
    per_size = len(attributes["fixed_ratios"])
    shape = _infer_grid(inference, sum(per_size * d * d for d in attributes["densities"]))
    if attributes["flatten_to_2d"]:
        rows: Dim = shape[0] * shape[1] * shape[2]
        shape = (rows, 4)
    return [shape] * 2


@op(
    "DensityPriorBox",
    "input: T, image: T -> boxes: T, variances: T",
    domain="lite",
    types={"T": FLOATS},
    attributes={
        "fixed_sizes": required("floats"),
        "fixed_ratios": required("floats"),
        "densities": required("ints"),
        "variances": _VARIANCES,
        "clip": 1,
        "flatten_to_2d": 0,
        "step_w": 0.0,
        "step_h": 0.0,
        "offset": 0.5,
    },
    infer=_infer_density_prior_box,
)
def density_prior_box(
    feature: Array,
    image: Array,
    *,
    fixed_sizes: tuple[float, ...],
    fixed_ratios: tuple[float, ...],
    densities: tuple[int, ...],
    variances: tuple[float, ...],
    clip: int,
    flatten_to_2d: int,
    step_w: float,
    step_h: float,
    offset: float,
) -> tuple[Array, Array]:
    """Dense default boxes (Zhang et al., FaceBoxes, 2017): [H, W, P, 4], or [H*W*P, 4] when flattened.

    Each fixed size is repeated ``density`` x ``density`` times inside its cell, for every ratio. Corners
    outside the image are moved to its edge even without ``clip``: x1 and y1 if they are below 0, x2 and y2
    if they are above 1.
    """
    x, y, step_w, step_h = _centers(feature, image, step_w, step_h, offset)
    cell = int((step_w + step_h) * 0.5)
    rows: list[tuple[float, float, float, float]] = []  # x and y from the cell's centre, width, height
    for size, density in zip(fixed_sizes, densities):
        shift = cell // density  # whole pixels
        first = (shift - cell) / 2
        rows += [
            (first + j * shift, first + i * shift, size * np.sqrt(ratio), size / np.sqrt(ratio))
            for ratio in fixed_ratios
            for i in range(density)
            for j in range(density)
        ]
    table = np.array(rows)
    center = np.stack([x, y], axis=-1)[:, :, None, :] + table[:, :2]
    extent = np.array([image.shape[3], image.shape[2]])
    low = np.maximum((center - table[:, 2:] / 2) / extent, 0)
    high = np.minimum((center + table[:, 2:] / 2) / extent, 1)
    boxes = np.concatenate([low, high], axis=-1)
    if clip:
        boxes = np.clip(boxes, 0, 1)
    if flatten_to_2d:
        boxes = boxes.reshape(prod(boxes.shape[:3]), 4)
    return _with_variances(boxes, variances)


# **** AnchorGenerator ****


def _infer_anchors(inference: Inference) -> list[Shape]:
    attributes = inference.attributes
    if len(attributes["stride"]) != 2:
        raise fail(f"stride must have 2 entries (width, height), has {len(attributes['stride'])}")
    return [_infer_grid(inference, len(attributes["anchor_sizes"]) * len(attributes["aspect_ratios"]))] * 2


def _round(x: float) -> float:
    """Round to the nearest integer, halves up, as C rounds non-negative numbers."""
    return float(np.floor(x + 0.5))


@op(
    "AnchorGenerator",
    "input: T -> anchors: T, variances: T",
    domain="lite",
    types={"T": FLOATS},
    attributes={
        "anchor_sizes": required("floats"),
        "aspect_ratios": required("floats"),
        "variances": _VARIANCES,
        "stride": (16.0, 16.0),
        "offset": 0.5,
    },
    infer=_infer_anchors,
)
def anchor_generator(
    feature: Array,
    *,
    anchor_sizes: tuple[float, ...],
    aspect_ratios: tuple[float, ...],
    variances: tuple[float, ...],
    stride: tuple[float, ...],
    offset: float,
) -> tuple[Array, Array]:
    """Faster R-CNN's anchors (Ren et al., 2015): [H, W, A, 4] as (x1, y1, x2, y2) in pixels.

    Aspect ratios (height / width) are the outer loop, sizes the inner one. An anchor is ``size / stride``
    times a base box whose area is that of ``stride``. The base's width and then its height are rounded,
    halves up.
    """
    step_w, step_h = stride
    sizes: list[tuple[float, float]] = []
    for ratio in aspect_ratios:
        base_w = _round(np.sqrt(step_w * step_h / ratio))
        base_h = _round(base_w * ratio)
        sizes += [(size / step_w * base_w, size / step_h * base_h) for size in anchor_sizes]
    height, width = feature.shape[2:]
    y, x = np.meshgrid(
        np.arange(height) * step_h + offset * (step_h - 1),
        np.arange(width) * step_w + offset * (step_w - 1),
        indexing="ij",
    )
    center = np.stack([x, y], axis=-1)[:, :, None, :]
    half = (np.array(sizes) - 1) / 2
    return _with_variances(np.concatenate([center - half, center + half], axis=-1), variances)
