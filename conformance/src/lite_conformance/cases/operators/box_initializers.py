"""Boxes, scores and regions for detection operators.

These operators compare: overlaps with thresholds, scores with each other, sizes with limits. The numbers made
here keep clear of every such edge, so that a kernel that rounds otherwise than the reference decides the same;
and they are few bits long, so that every floating type holds them exactly.
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
    "first_fair",
    "is_fair",
    "linked",
    "on_grid",
    "pooled_regions",
    "regions_of",
    "scores",
]

_Found = TypeVar("_Found")
_MOST_TRIES = 10_000

#: How far every overlap stays away from the threshold it is compared with.
MARGIN = 0.03


def boxes(
    *thresholds: float, offset: float = 0.0, extent: int = 60, kind: str = "corners", per_class: bool = False
) -> Initializer:
    """Boxes [..., M, 4] in quarters of a pixel, many of them overlapping.

    Args:
        thresholds: what overlaps are compared with: no two boxes of the M overlap by nearly that much.
        offset: 1 where the last pixel belongs to the box.
        extent: the largest coordinate.
        kind: ``"corners"``: the lower ones first; ``"any"``: any two opposite corners; ``"center"``: the
            centre, then width and height.
        per_class: boxes [M, C, 4], where those of one class are compared.
    """

    def fill(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        many = (shape[1], shape[0]) if per_class else (int(np.prod(shape[:-2])), shape[-2])
        made = np.array([_apart(random, many[1], thresholds, offset, extent) for _ in range(many[0])])
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

    return fill


def _apart(random: np.random.Generator, count: int, thresholds: Sequence[float], offset: float, extent: int) -> Array:
    made = np.zeros((count, 4))
    for index in range(count):
        made[index] = draw_box(random, extent, made[:index])
        while not is_fair(made[index], made[:index], thresholds, offset):
            made[index] = draw_box(random, extent, made[:index])
    return made


def draw_box(random: np.random.Generator, extent: int, others: Array) -> Array:
    """A box in quarters of a pixel; every other one is one of the others, moved and stretched a little."""
    if len(others) and random.integers(0, 2):
        moved = others[random.integers(0, len(others))] + random.integers(-8, 9, 4) / 4
        box: Array = np.clip(moved, 0, extent)
        if (box[2:] - box[:2] >= 2).all():
            return box
    size = random.integers(2 * 4, extent * 2, 2) / 4
    low = np.floor(random.uniform(0, 1, 2) * (extent - size) * 4) / 4
    return np.concatenate([low, low + size])


def is_fair(box: Array, others: Array, thresholds: Sequence[float], offset: float) -> bool:
    """Whether the overlaps of a box keep away from the thresholds; those that do not overlap at all always do."""
    found = overlaps(box, others, offset)
    return all(((found == 0) | (np.abs(found - threshold) > MARGIN)).all() for threshold in thresholds)


def scores(rest: int = 0, of: int = 1) -> Initializer:
    """Different numbers between 0 and 1, in 256ths: no two of an image (or of all, up to rank 2) are equal.

    Args:
        rest: take only numbers whose numerator has this remainder, so that tensors differ from each other.
        of: what it is divided by.
    """

    def fill(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        images = shape[0] if len(shape) > 2 else 1
        each = int(np.prod(shape)) // max(images, 1)
        steps = 256
        while steps // of - 1 < each:
            steps *= 2
        numbers = np.arange(1, steps)
        chosen = [random.permutation(numbers[numbers % of == rest])[:each] for _ in range(images)]
        return (np.array(chosen).reshape(shape) / steps).astype(dtype.numpy)

    return fill


def on_grid(low: float, high: float, step: float) -> Initializer:
    """Multiples of a step from ``low`` to below ``high``."""

    def fill(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        return (random.integers(round(low / step), round(high / step), shape) * step).astype(dtype.numpy)

    return fill


def linked(make: Callable[[], Sequence[Array]], *shapes: tuple[int, ...]) -> list[Tensor]:
    """Inputs that only make sense together: ``make`` gives an array for each shape, and runs when one is needed."""
    made = cache(make)

    def one(index: int) -> Initializer:
        def fill(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
            return made()[index].reshape(shape).astype(dtype.numpy)

        return fill

    return [Tensor(shape, one(index)) for index, shape in enumerate(shapes)]


def pooled_regions(size: tuple[int, int], bins: tuple[int, int], scale: float, sensitive: bool) -> Initializer:
    """Regions in quarters, none half-way between two elements; some partly outside the map.

    NOTE: where a bin's edge falls on an element, rounding decides whether that belongs to it. Only regions are
    taken whose bins are the same in float32, in float64, and with a fused multiplication and addition.

    Args:
        size: height and width of the map.
        bins: along the height and the width.
        scale: from the regions' coordinates to the map's.
        sensitive: as PsRoiPool, which rounds before it scales.
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
    """Regions [R, 4] made of a span for each axis, 1 (x) and 0 (y); a span of None is not fair, and another is made."""

    def fill(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        def one(axis: int) -> tuple[float, float]:
            return first_fair(lambda: span(random, axis), "fair span of a region")

        pairs = [(one(1), one(0)) for _ in range(shape[0])]
        made = np.array([(x[0], y[0], x[1], y[1]) for x, y in pairs])
        return made.reshape(shape).astype(dtype.numpy)

    return fill


def first_fair(attempt: Callable[[], _Found | None], what: str) -> _Found:
    """The first try that gives something.

    Raises:
        ValueError: ten thousand gave nothing: the case leaves no room for what it wants.
    """
    for _ in range(_MOST_TRIES):
        found = attempt()
        if found is not None:
            return found
    raise ValueError(f"no {what} was found in {_MOST_TRIES} tries")
