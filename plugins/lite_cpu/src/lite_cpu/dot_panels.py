"""Panels of constant weights, packed with NumPy in the order in which dot products of small elements read them.

Panels of 16-bit elements are twice as large as the weights, so a model file stores only the weights. They are packed
again at load: 8 million weights in about 8 ms on a Zen 4 core. This module imports nothing of the compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_core.ir import DType

__all__ = ["DotPanels", "Matrices", "bfloat16_bits", "pack_dots", "pack_pairs"]

Array = np.ndarray[Any, Any]


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
        dtype: the element type of the panels, which all differences of elements and zero points fit; or bfloat16, to
            which floats are rounded.
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
        """Return the panels of ``weights``, see :func:`pack_dots` and :func:`pack_pairs`.

        Raises:
            ValueError: the weights have not as many elements as the matrices.
        """
        if self.dtype is DType.BFLOAT16:
            return pack_pairs(self.matrices.of(weights), self.lanes, self.vectors, self.group)
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
    batches, runs, depth, columns = b.shape
    steps, width = -(-depth // group), lanes * vectors
    packed = np.zeros((batches, runs * steps * -(-columns // lanes) * lanes, group), np.uint16)
    bits, position = bfloat16_bits(b), 0
    for start in range(0, columns, width):
        part = bits[..., start : start + width]
        padded = -(-part.shape[-1] // lanes) * lanes
        size = runs * steps * padded
        panel = packed[:, position : position + size].reshape(batches, runs, steps, padded, group)
        position += size
        for i in range(group):
            panel[:, :, : -(-(depth - i) // group), : part.shape[-1], i] = part[:, :, i::group]
    return packed.view(np.uint32).reshape(batches, packed.shape[1] * (group // 2))


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
