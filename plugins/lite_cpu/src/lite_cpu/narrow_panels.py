"""Panels of constant weights of 4 and 8 bits, packed with NumPy in the order in which narrow products read them.

A panel has as many columns as a register tile. For each step along the depth it holds the four bytes of every column
next to each other, as the 32 bits of one lane: with 8 bits these are four elements; with 4 bits eight, of which the
first four are the lower halves of the bytes. A model file stores only the weights, and makes the panels when it is
loaded. This module imports nothing of the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_core.container import stored_panels
from lite_core.ir import DType, Nibbles
from lite_cpu.aligned import aligned_empty

__all__ = ["NarrowPanels"]

Array = np.ndarray[Any, Any]

_FOUR_BITS = (DType.INT4, DType.UINT4)


class NarrowPanels(NamedTuple):
    """The panels of a constant: of the weights, or of numbers that blocks of the depth share.

    Attributes:
        transposed: True if the constant is [columns, depth] instead of [depth, columns].
        depth: rows of the constant: elements, or blocks of elements.
        columns: columns of the matrix.
        bits: bits of a weight; 0 for numbers of blocks, which are not packed in groups.
        multiple: the depth is padded to a multiple of this; for numbers of blocks, each is repeated as often.
        width: columns of a panel.
        middle: the code that stands for 0 (weights), or the number that is subtracted (numbers of blocks).
        dtype: the element type of the panels.
    """

    transposed: bool
    depth: int
    columns: int
    bits: int
    multiple: int
    width: int
    middle: int
    dtype: DType

    @classmethod
    def read(cls, saved: Sequence[Any]) -> NarrowPanels:
        """Return the panels that a list of JSON describes."""
        transposed, depth, columns, bits, multiple, width, middle, dtype = saved
        return cls(bool(transposed), depth, columns, bits, multiple, width, middle, DType(dtype))

    def pack(self, constant: Array) -> Array:
        """Return the panels [panels, n].

        Raises:
            ModelFormatError: the constant is in a file, and damaged.
            ValueError: the constant has not as many elements as the matrix.
        """
        shape = (self.columns, self.depth) if self.transposed else (self.depth, self.columns)
        if self.bits:
            return self._weights(constant.reshape(shape))
        return self._numbers(constant.reshape(shape))

    def _weights(self, constant: Array) -> Array:
        group = 32 // self.bits
        steps = -(-self.depth // self.multiple) * self.multiple // group
        panels = -(-self.columns // self.width)
        packed = aligned_empty((panels, steps * self.width * 4), np.uint8)
        shift = self.middle if DType.of(constant).is_signed else self.middle - (1 << (self.bits - 1))
        read = _columns_of(constant, self.transposed)
        for number in range(panels):
            part = read(number * self.width, min((number + 1) * self.width, self.columns))
            codes: Array = np.full((steps * group, self.width), self.middle, np.uint8)
            codes[: self.depth, : part.shape[1]] = part + np.uint8(shift % 256)
            if self.bits == 4:
                codes &= 15
                halves = codes.reshape(steps, 2, 4, self.width)
                codes = halves[:, 0] | (halves[:, 1] << 4)
            packed[number] = codes.reshape(steps, 4, self.width).transpose(0, 2, 1).reshape(-1)
        return packed

    def _numbers(self, constant: Array) -> Array:
        matrix = constant.T if self.transposed else constant
        panels = -(-self.columns // self.width)
        packed = aligned_empty((panels, self.depth * self.multiple * self.width), self.dtype.numpy)
        wide = packed.reshape(panels, self.depth, self.multiple, self.width)
        for number in range(panels):
            part = matrix[:, number * self.width : (number + 1) * self.width]
            values = part.astype(np.int16) - self.middle if self.dtype is DType.INT8 else part
            wide[number, :, :, : part.shape[1]] = values[:, None]
            wide[number, :, :, part.shape[1] :] = 0
        return packed


def _columns_of(constant: Array, transposed: bool) -> Callable[[int, int], Array]:
    """Return a function that returns columns ``[first, stop)`` of a matrix as bytes [depth, n]; ``first`` is even.

    If a file holds the constant as pairs of nibbles, these are read, and its array of elements is not filled. Of a
    nibble only the lower four bits count.
    """
    pairs = stored_panels(constant, Nibbles((constant.size,))) if DType.of(constant) in _FOUR_BITS else None
    across = constant.shape[1]
    if pairs is None or across % 2:
        plain = constant.view(np.uint8) if pairs is None else _elements(pairs)[: constant.size].reshape(constant.shape)
        return lambda first, stop: plain[first:stop].T if transposed else plain[:, first:stop]
    rows = pairs.reshape(constant.shape[0], across // 2)
    if transposed:
        return lambda first, stop: _elements(rows[first:stop]).T
    return lambda first, stop: _elements(rows[:, first // 2 : -(-stop // 2)])[:, : stop - first]


def _elements(pairs: Array) -> Array:
    """Return nibbles [..., 2 n] of bytes [..., n]."""
    return np.stack([pairs & 15, pairs >> 4], axis=-1).reshape(*pairs.shape[:-1], -1)
