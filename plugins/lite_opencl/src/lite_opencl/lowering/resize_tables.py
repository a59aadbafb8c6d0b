"""Which elements of an axis make up each element of a resized one, and with what weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from lite_core import ops
from lite_core.ir import Node
from lite_opencl.lowering.axis_gather import OUTSIDE

__all__ = ["AxisTable", "axis_table"]

Array = np.ndarray[Any, Any]

#: Elements of an array that the reference is given at a time.
_BLOCK = 1 << 22


@dataclass(frozen=True)
class AxisTable:
    """The neighbours of each element of the result along one axis.

    Attributes:
        axis: that is resized.
        indices: [taps, size], int64; :data:`OUTSIDE` where an element lies outside of the input.
        weights: [taps, size], float64.
    """

    axis: int
    indices: Array
    weights: Array

    def moves_something(self, old: int) -> bool:
        """Whether the result is not just the ``old`` elements of the input as they were."""
        return not (np.array_equal(self.indices, np.arange(old)[np.newaxis]) and (self.weights == 1).all())

    @property
    def taps(self) -> int:
        return len(self.indices)

    @property
    def size(self) -> int:
        size: int = self.indices.shape[1]
        return size


def axis_table(
    node: Node, place: int, axis: int, shape: Sequence[int], new: int, known: Sequence[Array | None]
) -> AxisTable:
    """The table of one axis, read off from what the operator's reference makes of simple data.

    Args:
        node: a Resize.
        place: of the axis among the entries of roi, scales or sizes.
        axis: of the input.
        shape: the sizes of the axes that are resized.
        new: size of the result along the axis.
        known: roi, scales and sizes; None where left out.
    """
    definition, old = ops.get(node), shape[place]
    attributes = {**definition.attributes_of(node), "axes": (0, 1), "extrapolation_value": np.nan}
    roi, scales, sizes = (None if a is None or not a.size else a for a in known)
    beside = 1
    given: list[Array | None] = [None]
    if roi is not None:
        precision = np.float64 if roi.dtype == np.float64 else np.float32
        given = [np.array([roi[place], 0, roi[place + len(shape)], 1], precision)]
    if sizes is None:
        assert scales is not None, "inference requires scales or sizes"
        given += [np.array([scales[place], 1], scales.dtype), None]
    else:
        # With an aspect ratio to be kept, another axis may decide the scale: a short one of the same ratio stands in.
        ratios = [Fraction(int(n), o) for n, o in zip(sizes, shape)]
        policy = attributes["keep_aspect_ratio_policy"]
        ratio = {"stretch": Fraction(1), "not_larger": min(ratios), "not_smaller": max(ratios)}[policy]
        beside = ratio.denominator
        given += [None, np.array([sizes[place], ratio.numerator])]
    if attributes["mode"] == "nearest":
        numbers = np.arange(old, dtype=np.float64)[:, np.newaxis].repeat(beside, 1)
        nearest = definition.reference(numbers, *given, **attributes)[:, 0]
        nearest = np.where(np.isnan(nearest), OUTSIDE, nearest).astype(np.int64)
        return AxisTable(axis, nearest[np.newaxis], np.ones((1, new)))
    made = np.empty((new, old))
    block = max(1, _BLOCK // (max(old, new) * beside))
    for start in range(0, old, block):
        unit = np.eye(old, min(block, old - start), -start)[:, np.newaxis].repeat(beside, 1)
        made[:, start : start + block] = definition.reference(unit, *given, **attributes)[:, 0]
    return _sparse(axis, made)


def _sparse(axis: int, matrix: Array) -> AxisTable:
    """The weights of a matrix [size, old] that are not 0, for each row as many as the fullest has."""
    outside = np.asarray(np.isnan(matrix).any(axis=1, keepdims=True))
    matrix = np.where(outside, 0, matrix)
    taps = max(1, int((matrix != 0).sum(axis=1).max(initial=0)))
    # A stable sort of "is zero" puts the columns that count first, in their order.
    indices = np.argsort(matrix == 0, axis=1, kind="stable")[:, :taps]
    weights = np.take_along_axis(matrix, indices, axis=1)
    indices = np.where(outside, OUTSIDE, indices)
    return AxisTable(axis, np.ascontiguousarray(indices.T), np.ascontiguousarray(weights.T))
