"""Boxes and their overlaps, as :mod:`lite_core.ops.boxes` defines them, one box against a vector of others."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Pointer, Val

__all__ = ["Box", "BoxColumns", "Corners"]

F32 = DType.FLOAT32


class Corners(Enum):
    """The meaning of the four numbers of a box: corners, the lower one first; any two corners; centre and size."""

    ORDERED = "ordered"
    ANY = "any"
    CENTER = "center"


@dataclass(frozen=True, slots=True)
class Box:
    """A box, or a vector of boxes: its corners (low, low, high, high) and its area."""

    corners: tuple[Val, Val, Val, Val]
    area: Val

    @staticmethod
    def read(k: Emitter, numbers: Pointer, kind: Corners, offset: Val) -> Box:
        """Load a box; ``offset`` is 1 if a box includes its last pixel, else 0."""
        a, b, c, d = (numbers[i].load() for i in range(4))
        if kind is Corners.CENTER:
            half_c, half_d = c / 2.0, d / 2.0
            a, b, c, d = a - half_c, b - half_d, a + half_c, b + half_d
        if kind is not Corners.ORDERED:
            a, c = _smaller(a, c), _larger(a, c)
            b, d = _smaller(b, d), _larger(b, d)
        width, height = c - a, d - b
        area = ((width < 0.0) | (height < 0.0)).select(0.0, (width + offset) * (height + offset))
        return Box((a, b, c, d), area)

    def overlap(self, others: Box, offset: Val) -> Val:
        """Return the intersection over union of this box and each of ``others``; NaN for two boxes without area.

        Boxes that are apart overlap by 0, even if other coordinates are NaN. Of a vector's NaN the extents become NaN;
        NaN in this box is recognized by a limit that no extent is below.
        """
        lanes = others.area.lanes
        k, extents, apart = self.area.k, [], None
        for low, high in ((0, 2), (1, 3)):
            own_low, own_high = self.corners[low], self.corners[high]
            below = (own_low.is_nan() | own_high.is_nan()).select(k.constant(float("-inf"), F32), 0.0).splat(lanes)
            extent = k.minimum(others.corners[high], own_high) - k.maximum(others.corners[low], own_low)
            is_apart = extent < below
            apart = is_apart if apart is None else apart | is_apart
            extents.append(extent + offset)
        assert apart is not None
        common = extents[0] * extents[1]
        return apart.select(0.0, common / (others.area + self.area - common))


def _smaller(a: Val, b: Val) -> Val:
    """Return the smaller number, or NaN if either is."""
    return (a.is_nan() | (a < b)).select(a, b)


def _larger(a: Val, b: Val) -> Val:
    """Return the larger number, or NaN if either is."""
    return (a.is_nan() | (a > b)).select(a, b)


@dataclass(frozen=True, slots=True)
class BoxColumns:
    """Boxes in memory, by columns: all first corners, ..., all areas. A column has ``length`` elements."""

    start: Pointer
    length: Val

    def store(self, index: Val, box: Box) -> None:
        """Store a box."""
        for number, value in enumerate((*box.corners, box.area)):
            self.start[self.length * number + index].store(value)

    def load(self, index: Val, lanes: int) -> Box:
        """Load a vector of boxes."""
        a, b, c, d, area = (self.start[self.length * number + index].load(lanes) for number in range(5))
        return Box((a, b, c, d), area)
