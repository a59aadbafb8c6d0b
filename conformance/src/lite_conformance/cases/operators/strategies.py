"""Hypothesis strategies that operator families share: shapes, shapes that broadcast, axes."""

from __future__ import annotations

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw

__all__ = ["axes_of", "axis_of", "broadcastable", "shape"]


def shape(draw: Draw, least: int = 0, most: int = 4, smallest: int = 0, largest: int = 7) -> tuple[int, ...]:
    """Draw a shape of rank ``least`` to ``most`` with sizes from ``smallest`` (0 for empty tensors) to ``largest``."""
    rank = draw(st.integers(least, most))
    return tuple(draw(st.lists(st.integers(smallest, largest), min_size=rank, max_size=rank)))


def broadcastable(draw: Draw, count: int = 2, most: int = 4) -> list[tuple[int, ...]]:
    """Draw shapes that broadcast: each is a common shape without some leading axes and with some sizes 1."""
    common = shape(draw, 0, most)
    found = []
    for _ in range(count):
        start = draw(st.integers(0, len(common)))
        found.append(tuple(1 if draw(st.integers(0, 3)) == 0 else size for size in common[start:]))
    return found


def axis_of(draw: Draw, rank: int) -> int:
    """Draw an axis of a tensor of this rank (at least 1), counted from the front or from the back."""
    return int(draw(st.integers(-rank, rank - 1)))


def axes_of(draw: Draw, rank: int) -> tuple[int, ...]:
    """Draw distinct axes of a tensor of this rank in any order, each counted from the front or from the back."""
    chosen = draw(st.permutations(range(rank)))[: draw(st.integers(0, rank))]
    return tuple(axis - rank if draw(st.booleans()) else axis for axis in chosen)
