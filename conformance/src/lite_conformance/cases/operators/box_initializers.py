"""Initializers of boxes, scores and regions for detection operators.

These operators compare overlaps with thresholds, scores with each other, and sizes with limits. The numbers here
keep a margin from all of them, so that a kernel that rounds differently from the reference makes the same choices.
They also have few significant bits, so that every floating type represents them exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

import numpy as np

from lite_conformance.cases.tensors import Array, Initializer, Tensor
from lite_core.ir import DType
from lite_core.ops.boxes import overlaps

__all__ = [
    "MARGIN",
    "boxes",
    "draw_box",
    "first_accepted",
    "is_clear_of_thresholds",
    "joint_tensors",
    "on_grid",
    "pooled_regions",
    "regions_of",
    "scores",
]

_Found = TypeVar("_Found")
_MAX_ATTEMPTS = 10_000

#: The smallest distance of an overlap from a threshold that it is compared with.
MARGIN = 0.03


def boxes(
    *thresholds: float, offset: float = 0.0, extent: int = 60, kind: str = "corners", per_class: bool = False
) -> Initializer:
    """Return an initializer of boxes [..., M, 4] in quarters of a pixel, many of them overlapping.

    Args:
        thresholds: thresholds of overlaps; the overlap of any two of the M boxes keeps :data:`MARGIN` from them.
        offset: 1 where the last pixel belongs to the box.
        extent: the largest coordinate.
        kind: ``"corners"``: the lower ones first; ``"any"``: any two opposite corners; ``"center"``: the
            centre, then width and height.
        per_class: True for boxes [M, C, 4], where only boxes of one class are compared.
    """

    def initialize(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        many = (shape[1], shape[0]) if per_class else (int(np.prod(shape[:-2])), shape[-2])
        made = np.array(
            [_boxes_clear_of_thresholds(random, many[1], thresholds, offset, extent) for _ in range(many[0])]
        )
        made = made.reshape(*many, 4)
        if per_class:
            made = made.swapaxes(0, 1)
        made = made.reshape(shape)
        if kind == "center":
            low, high = made[..., :2], made[..., 2:]
            made = np.concatenate([(low + high) / 2, high - low], axis=-1)
        elif kind == "any":
            swapped = random.integers(0, 2, (*shape[:-1], 2)).astype(bool)
            low, high = made[..., :2].copy(), made[..., 2:].copy()
            made = np.concatenate([np.where(swapped, high, low), np.where(swapped, low, high)], axis=-1)
        return made.astype(dtype.numpy)

    return initialize


def _boxes_clear_of_thresholds(
    random: np.random.Generator, count: int, thresholds: Sequence[float], offset: float, extent: int
) -> Array:
    made = np.zeros((count, 4))
    for index in range(count):
        made[index] = draw_box(random, extent, made[:index])
        while not is_clear_of_thresholds(made[index], made[:index], thresholds, offset):
            made[index] = draw_box(random, extent, made[:index])
    return made


def draw_box(random: np.random.Generator, extent: int, others: Array) -> Array:
    """Return a box in quarters of a pixel: with probability 1/2 one of the others, moved and stretched a little."""
    if len(others) and random.integers(0, 2):
        moved = others[random.integers(0, len(others))] + random.integers(-8, 9, 4) / 4
        box: Array = np.clip(moved, 0, extent)
        if (box[2:] - box[:2] >= 2).all():
            return box
    size = random.integers(2 * 4, extent * 2, 2) / 4
    low = np.floor(random.uniform(0, 1, 2) * (extent - size) * 4) / 4
    return np.concatenate([low, low + size])


def is_clear_of_thresholds(box: Array, others: Array, thresholds: Sequence[float], offset: float) -> bool:
    """Return True if each overlap of a box with the others is 0 or keeps :data:`MARGIN` from every threshold."""
    found = overlaps(box, others, offset)
    return all(((found == 0) | (np.abs(found - threshold) > MARGIN)).all() for threshold in thresholds)


def scores(remainder: int = 0, modulus: int = 1) -> Initializer:
    """Return an initializer of distinct multiples of 1/256 in (0, 1): distinct in an image, up to rank 2 in all.

    Args:
        remainder: use only numerators with this remainder, so that several tensors have distinct numbers.
        modulus: the divisor of the remainder.
    """

    def initialize(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        images = shape[0] if len(shape) > 2 else 1
        each = int(np.prod(shape)) // max(images, 1)
        steps = 256
        while steps // modulus - 1 < each:
            steps *= 2
        numbers = np.arange(1, steps)
        chosen = [random.permutation(numbers[numbers % modulus == remainder])[:each] for _ in range(images)]
        return (np.array(chosen).reshape(shape) / steps).astype(dtype.numpy)

    return initialize


def on_grid(low: float, high: float, step: float) -> Initializer:
    """Return an initializer of multiples of a step, from ``low`` to below ``high``."""

    def initialize(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        return (random.integers(round(low / step), round(high / step), shape) * step).astype(dtype.numpy)

    return initialize


def joint_tensors(make: Callable[[], Sequence[Array]], *shapes: tuple[int, ...]) -> list[Tensor]:
    """Return inputs whose contents depend on each other: ``make`` returns an array for each shape, and runs once."""
    made = cache(make)

    def one(index: int) -> Initializer:
        def initialize(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
            return made()[index].reshape(shape).astype(dtype.numpy)

        return initialize

    return [Tensor(shape, one(index)) for index, shape in enumerate(shapes)]


def pooled_regions(size: tuple[int, int], bins: tuple[int, int], scale: float, sensitive: bool) -> Initializer:
    """Return an initializer of regions in quarters, not half-way between elements; some partly outside the map.

    NOTE: where the edge of a bin falls on an element, rounding decides whether the element belongs to the bin. Only
    regions are used whose bins are the same in float32, in float64, and with a fused multiply-add.

    Args:
        size: height and width of the map.
        bins: number of bins along the height and the width.
        scale: factor from the coordinates of the regions to those of the map.
        sensitive: True for PsRoiPool, which rounds before it scales.
    """

    def fits(low: float, high: float, axis: int) -> bool:
        if sensitive:
            start, length = np.round(low) * scale, (np.round(high) + 1 - np.round(low)) * scale
        else:
            start = np.round(low * scale)
            length = np.round(high * scale) - start + 1
        numbers, single = np.arange(bins[axis] + 1), np.float32
        step = single(length) / single(bins[axis])
        ways = [
            (numbers.astype(single) * step + single(start)).astype(np.float64),
            (numbers * float(step) + start).astype(single).astype(np.float64),
            numbers * (length / bins[axis]) + start,
        ]
        return all((f(ways[0]) == f(way)).all() for way in ways for f in (np.floor, np.ceil))

    def span(random: np.random.Generator, axis: int) -> tuple[float, float] | None:
        unit = 1.0 if sensitive else 1 / scale
        most = int(size[axis] / scale / unit)
        length, low = random.integers(0, most + 1), random.integers(-most // 3, most)
        low, high = (low + random.integers(-1, 2, 2) / 4 + np.array([0, length])) * unit
        return (float(low), float(high)) if high >= low and fits(low, high, axis) else None

    return regions_of(span)


def regions_of(span: Callable[[np.random.Generator, int], tuple[float, float] | None]) -> Initializer:
    """Return an initializer of regions [R, 4] from spans along the axes 1 (x) and 0 (y).

    Args:
        span: makes the start and end along an axis, or None for an ambiguous span, which is drawn again.
    """

    def initialize(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        def one(axis: int) -> tuple[float, float]:
            return first_accepted(lambda: span(random, axis), "unambiguous span of a region")

        pairs = [(one(1), one(0)) for _ in range(shape[0])]
        made = np.array([(x[0], y[0], x[1], y[1]) for x, y in pairs])
        return made.reshape(shape).astype(dtype.numpy)

    return initialize


def first_accepted(attempt: Callable[[], _Found | None], what: str) -> _Found:
    """Return the first result of ``attempt`` that is not None.

    Raises:
        ValueError: ten thousand attempts returned None: the requirements of the case are too strict.
    """
    for _ in range(_MAX_ATTEMPTS):
        found = attempt()
        if found is not None:
            return found
    raise ValueError(f"no {what} was found in {_MAX_ATTEMPTS} attempts")
