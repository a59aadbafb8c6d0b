"""Tables of the elements, and their weights, that each element of a resized axis is computed from."""

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

#: The largest number of elements of an array that the reference processes in one call.
_BLOCK = 1 << 22


@dataclass(frozen=True)
class AxisTable:
    """The neighbours of each element of the result along one axis.

    Attributes:
        axis: the axis that is resized.
        indices: [taps, size], int64; :data:`OUTSIDE` if an element is outside of the input.
        weights: [taps, size], float64.
    """

    axis: int
    indices: Array
    weights: Array

    def is_needed(self, old: int) -> bool:
        """Return True if the result differs from the ``old`` elements of the input."""
        return not (np.array_equal(self.indices, np.arange(old)[np.newaxis]) and (self.weights == 1).all())

    @property
    def taps(self) -> int:
        return len(self.indices)

    @property
    def size(self) -> int:
        size: int = self.indices.shape[1]
        return size


def axis_table(
    node: Node, entry: int, axis: int, shape: Sequence[int], new: int, known: Sequence[Array | None]
) -> AxisTable:
    """Return the table of one axis, derived from results of the operator's reference for simple data.

    Args:
        node: a Resize.
        entry: index of the axis in roi, scales or sizes.
        axis: the axis of the input.
        shape: the sizes of the axes that are resized.
        new: size of the result along the axis.
        known: roi, scales and sizes; None for those left out.
    """
    definition, old = ops.get(node), shape[entry]
    attributes = {**definition.attributes_of(node), "axes": (0, 1), "extrapolation_value": np.nan}
    roi, scales, sizes = (None if a is None or not a.size else a for a in known)
    second_size = 1
    given: list[Array | None] = [None]
    if roi is not None:
        precision = np.float64 if roi.dtype == np.float64 else np.float32
        given = [np.array([roi[entry], 0, roi[entry + len(shape)], 1], precision)]
    if sizes is None:
        assert scales is not None, "inference requires scales or sizes"
        given += [np.array([scales[entry], 1], scales.dtype), None]
    else:
        # To keep the aspect ratio, another axis may decide the scale: a short second axis stands for it.
        ratios = [Fraction(int(n), o) for n, o in zip(sizes, shape)]
        policy = attributes["keep_aspect_ratio_policy"]
        ratio = {"stretch": Fraction(1), "not_larger": min(ratios), "not_smaller": max(ratios)}[policy]
        second_size = ratio.denominator
        given += [None, np.array([sizes[entry], ratio.numerator])]
    if attributes["mode"] == "nearest":
        numbers = np.arange(old, dtype=np.float64)[:, np.newaxis].repeat(second_size, 1)
        nearest = definition.reference(numbers, *given, **attributes)[:, 0]
        nearest = np.where(np.isnan(nearest), OUTSIDE, nearest).astype(np.int64)
        return AxisTable(axis, nearest[np.newaxis], np.ones((1, new)))
    matrix = np.empty((new, old))
    block = max(1, _BLOCK // (max(old, new) * second_size))
    for start in range(0, old, block):
        unit = np.eye(old, min(block, old - start), -start)[:, np.newaxis].repeat(second_size, 1)
        matrix[:, start : start + block] = definition.reference(unit, *given, **attributes)[:, 0]
    return _sparse(axis, matrix)


def _sparse(axis: int, matrix: Array) -> AxisTable:
    """Return the nonzero weights of a matrix [size, old]; every row gets as many taps as the fullest row."""
    outside = np.asarray(np.isnan(matrix).any(axis=1, keepdims=True))
    matrix = np.where(outside, 0, matrix)
    taps = max(1, int((matrix != 0).sum(axis=1).max(initial=0)))
    # A stable sort by "is zero" puts the columns with weights first, in their order.
    indices = np.argsort(matrix == 0, axis=1, kind="stable")[:, :taps]
    weights = np.take_along_axis(matrix, indices, axis=1)
    indices = np.where(outside, OUTSIDE, indices)
    return AxisTable(axis, np.ascontiguousarray(indices.T), np.ascontiguousarray(weights.T))
