"""Panels of constant weights, packed with NumPy in the order in which dot products of small elements read them.

Panels of 16-bit elements are twice as large as the weights, so a model file stores only the weights. They are packed
again at load: 8 million weights in about 8 ms on a Zen 4 core. This module imports nothing of the compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_core.ir import DType

__all__ = ["DotPanels", "Matrices", "bfloat16_bits", "pack_dots", "pack_halves", "pack_pairs", "unit_of_halves"]

Array = np.ndarray[Any, Any]

#: Steps whose products a sum of float16 has at most; steps that are added up together to find the largest such sum.
_STEPS, _PART = 64, 16
#: Room for the rounding of a sum of float16.
_ROUNDING = 1.0625


class Matrices(NamedTuple):
    """A constant, split into dimensions and transposed, as matrices.

    Attributes:
        split: the dimensions that the constant's elements, in row-major order, are split into.
        order: the order of these dimensions in the matrices.
        shape: [batches, runs, depth, columns].
        zero_shape: the shape in which the zero point broadcasts to the constant.
    """

    split: tuple[int, ...]
    order: tuple[int, ...]
    shape: tuple[int, ...]
    zero_shape: tuple[int, ...]

    def of(self, weights: Array) -> Array:
        """Return the elements of a constant as matrices."""
        ordered: Array = weights.reshape(self.split).transpose(self.order)
        return ordered.reshape(self.shape)

    def zeros(self, weights: Array, zero: Array | None) -> Array:
        """Return the zero points of :meth:`of`, in a shape that broadcasts to it."""
        if zero is None or zero.size == 1:
            return np.zeros((), weights.dtype) if zero is None else zero.reshape(())
        return self.of(np.broadcast_to(zero.reshape(self.zero_shape), weights.shape))


class DotPanels(NamedTuple):
    """The panels of a constant.

    Attributes:
        matrices: the matrices that the constant is read as.
        dtype: the element type of the panels, which all differences of elements and zero points fit; or bfloat16 or
            float16, to which floats are rounded.
        group: elements of a dot product.
        lanes: dot products in a vector register.
        vectors: vectors of a panel.
    """

    matrices: Matrices
    dtype: DType
    group: int
    lanes: int
    vectors: int

    @classmethod
    def read(cls, saved: Sequence[Any]) -> DotPanels:
        """Return the panels that nested lists of JSON describe."""
        matrices, dtype, group, lanes, vectors = saved
        return cls(Matrices(*map(tuple, matrices)), DType(dtype), group, lanes, vectors)

    def pack(self, weights: Array, zero: Array | None = None) -> Array:
        """Return the panels of ``weights``, see :func:`pack_dots`, :func:`pack_pairs` and :func:`pack_halves`.

        Raises:
            ValueError: the weights have not as many elements as the matrices.
        """
        if self.dtype is DType.BFLOAT16:
            return pack_pairs(self.matrices.of(weights), self.lanes, self.vectors, self.group)
        if self.dtype is DType.FLOAT16:
            matrices = self.matrices.of(weights)
            return pack_halves(matrices, unit_of_halves(matrices), self.lanes, self.vectors)
        b, zeros = self.matrices.of(weights), self.matrices.zeros(weights, zero)
        return pack_dots(b, zeros, self.dtype, self.group, self.lanes, self.vectors)


def pack_dots(b: Array, zero: Array, dtype: DType, group: int, lanes: int, vectors: int) -> Array:
    """Pack right matrices, with their zero points subtracted, in the order in which integer products read them.

    Args:
        b: [batches, runs, depth, columns], integers.
        zero: the zero points, of the same element type, in a shape that broadcasts to ``b``.
        dtype: the element type of the panels, which all differences fit.
        group: elements of a dot product.
        lanes: dot products in a vector register.
        vectors: vectors of a panel.

    Returns:
        The panels [batches, n]: for each batch panels of [runs, steps, lanes * vectors, group], and for the remaining
        columns a narrower panel of whole vectors. Runs are padded with zeros to whole groups, and the last vector is
        padded with zeros.
    """
    batches, runs, depth, columns = b.shape
    steps, width = -(-depth // group), lanes * vectors
    packed = np.zeros((batches, runs * steps * group * -(-columns // lanes) * lanes), dtype.numpy)
    zeros = np.broadcast_to(zero, b.shape)
    position = 0
    for start in range(0, columns, width):
        part, points = (array[..., start : start + width] for array in (b, zeros))
        padded = -(-part.shape[-1] // lanes) * lanes
        size = runs * steps * padded * group
        panel = packed[:, position : position + size].reshape(batches, runs, steps, padded, group)
        position += size
        for i in range(group):
            rows = slice(i, None, group)
            target = panel[:, :, : -(-(depth - i) // group), : part.shape[-1], i]
            np.subtract(part[:, :, rows], points[:, :, rows], out=target, dtype=target.dtype, casting="unsafe")
    return packed


def pack_pairs(b: Array, lanes: int, vectors: int, group: int = 2) -> Array:
    """Round right matrices to bfloat16 and pack them in the order in which products of pairs read them.

    Args:
        b: [batches, runs, depth, columns], floats.
        lanes: pairs in a vector register.
        vectors: vectors of a panel.
        group: elements along the depth that are adjacent in a panel, an even number.

    Returns:
        The panels like those of :func:`pack_dots`, as pairs in uint32: [batches, n].
    """
    packed = _packed_bits(bfloat16_bits(b), lanes, vectors, group)
    return packed.view(np.uint32).reshape(packed.shape[0], packed.shape[1] * (group // 2))


def pack_halves(b: Array, unit: float, lanes: int, vectors: int) -> Array:
    """Divide right matrices by a unit, round them to float16, and pack them in the order of products of float16.

    Args:
        b: [batches, runs, depth, columns], floats.
        unit: a power of two, see :func:`unit_of_halves`.
        lanes: elements in a vector register.
        vectors: vectors of a panel.

    Returns:
        The panels like those of :func:`pack_dots`, float16 [batches, n].
    """
    scaled = np.multiply(b, np.float32(1 / unit), dtype=np.float32).astype(np.float16)
    return _packed_bits(scaled.view(np.uint16), lanes, vectors, 1)[..., 0].view(np.float16)


def unit_of_halves(b: Array) -> float:
    """Return the power of two that divides right matrices so that no sum of products in float16 overflows.

    Any 64 magnitudes that follow each other along the depth of a column are together less than 1 after the division,
    and those of some column are not much smaller. Weights that are all zeros, or not all finite, have the unit 1.

    Args:
        b: [batches, runs, depth, columns], floats; the runs of a matrix follow each other.
    """
    batches, runs, depth, columns = b.shape
    total = runs * depth
    magnitudes = np.abs(b, dtype=np.float32).reshape(batches, total, columns)
    sums = np.add.reduceat(magnitudes, np.arange(0, total, _PART), axis=1) if b.size else magnitudes
    touched = _STEPS // _PART + 1  # any 64 steps lie in so many parts
    ends = np.cumsum(sums, axis=1, dtype=np.float64)
    ends[:, touched:] -= ends[:, :-touched].copy()
    largest = float(ends.max(initial=0))
    return float(2.0 ** np.frexp(largest * _ROUNDING)[1]) if 0 < largest < np.inf else 1.0


def _packed_bits(bits: Array, lanes: int, vectors: int, group: int) -> Array:
    """Pack elements of 16 bits [batches, runs, depth, columns] into panels [batches, n, group]."""
    batches, runs, depth, columns = bits.shape
    steps, width, position = -(-depth // group), lanes * vectors, 0
    packed = np.zeros((batches, runs * steps * -(-columns // lanes) * lanes, group), np.uint16)
    for start in range(0, columns, width):
        part = bits[..., start : start + width]
        padded = -(-part.shape[-1] // lanes) * lanes
        size = runs * steps * padded
        panel = packed[:, position : position + size].reshape(batches, runs, steps, padded, group)
        position += size
        for i in range(group):
            panel[:, :, : -(-(depth - i) // group), : part.shape[-1], i] = part[:, :, i::group]
    return packed


def bfloat16_bits(x: Array) -> Array:
    """Return the bits of floats rounded to bfloat16, to nearest even, as uint16; a NaN stays one.

    NumPy has no bfloat16, and a device that only runs models may lack the package that adds it.
    """
    if x.dtype.itemsize == 2 and x.dtype != np.float16:
        return x.view(np.uint16)
    # In the order of the elements in memory, which is several times faster than in that of a transposed view.
    floats = x.astype(np.float32, order="K", copy=False)
    bits = floats.view(np.uint32)
    high = bits >> 16
    rounded = high & 1
    rounded += 0x7FFF
    rounded += bits
    rounded >>= 16
    if np.isnan(floats.min(initial=0)):
        rounded = np.where(np.isnan(floats), high | 0x40, rounded)
    return rounded.astype(np.uint16, order="K")
