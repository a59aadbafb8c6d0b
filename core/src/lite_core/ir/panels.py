"""The order in which matrix products read constant weights, described so that it can be undone.

A compiler packs a weight into panels once. A model file stores such a weight only in this order: a program uses the
panels as they are mapped, and whatever else needs the weight gets its plain elements back, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np

from lite_core.ir.types import Array

__all__ = ["Nibbles", "PanelLayout", "SavedWeights"]

#: Elements of the widest vector register that processors may have: 65,536 bits of RISC-V. It bounds the padding.
_MOST_LANES = 2048


class PanelLayout(NamedTuple):
    """The elements of a constant as matrices in panels.

    The constant, split into dimensions and transposed, is read as matrices [batches, depth, columns]. The columns are
    divided into panels of ``width``; the last panel may be narrower, but is padded with zeros to a multiple of
    ``lanes``. For each batch, the panels [depth, width] follow one another.

    Attributes:
        split: the dimensions that the constant's elements, in row-major order, are split into.
        order: the order of these dimensions in the matrices.
        depth: rows of a matrix.
        columns: columns of a matrix.
        width: columns of a panel, a multiple of ``lanes``.
        lanes: elements of a vector register.
    """

    split: tuple[int, ...]
    order: tuple[int, ...]
    depth: int
    columns: int
    width: int
    lanes: int

    def check(self, size: int) -> None:
        """Raise ValueError if the layout does not describe a constant of ``size`` elements."""
        numbers = (*self.split, self.depth, self.columns, self.width, self.lanes)
        matrix = self.depth * self.columns
        if (
            min(numbers, default=0) < 1
            or prod(self.split) != size
            or sorted(self.order) != [*range(len(self.split))]
            or self.width % self.lanes
            or self.lanes > _MOST_LANES
            or size % matrix
        ):
            raise ValueError(f"{self} does not fit a constant of {size} elements")

    @property
    def shape(self) -> tuple[int, int]:
        """The shape [batches, elements of the panels of a matrix] of a packed constant."""
        return prod(self.split) // (self.depth * self.columns), self.depth * -(-self.columns // self.lanes) * self.lanes

    def pack(self, plain: Array, packed: Array) -> None:
        """Write the elements of ``plain`` into ``packed``, which is contiguous and has the layout's :attr:`shape`."""
        source = self._matrices(plain)
        for panel, columns in self._panels(packed):
            part = source[:, :, columns]
            panel[:, :, : part.shape[2]] = part
            panel[:, :, part.shape[2] :] = 0

    def unpack(self, packed: Array, plain: Array) -> None:
        """Write the elements of ``packed`` into ``plain``, which is contiguous."""
        split = plain.reshape(self.split).transpose(self.order)
        matrices = np.empty((self.shape[0], self.depth, self.columns), plain.dtype)
        for panel, columns in self._panels(packed):
            part = matrices[:, :, columns]
            part[:] = panel[:, :, : part.shape[2]]
        split[:] = matrices.reshape(split.shape)

    def _matrices(self, plain: Array) -> Array:
        matrices: Array = plain.reshape(self.split).transpose(self.order)
        return matrices.reshape(self.shape[0], self.depth, self.columns)

    def _panels(self, packed: Array) -> Iterator[tuple[Array, slice]]:
        """Yield each panel [batches, depth, width] with the columns that it holds."""
        for start in range(0, self.columns, self.width):
            end = min(start + self.width, self.columns)
            width = -(-(end - start) // self.lanes) * self.lanes
            part = packed.reshape(self.shape)[:, self.depth * start : self.depth * (start + width)]
            yield part.reshape(self.shape[0], self.depth, width), slice(start, end)


class Nibbles(NamedTuple):
    """The order of 4-bit integers in a model file: row-major in pairs, the first in the lower half of its byte.

    Attributes:
        split: the shape of the constant, or the number of its elements.
    """

    split: tuple[int, ...]

    @property
    def shape(self) -> tuple[int]:
        """The number of bytes."""
        return (-(-prod(self.split) // 2),)

    def unpack(self, packed: Array, plain: Array) -> None:
        """Write the elements of ``packed``, uint8, into ``plain``, which is flat and has a byte for each element."""
        plain[0::2] = packed & 15
        plain[1::2] = packed[: plain.size // 2] >> 4


class SavedWeights(NamedTuple):
    """A piece of saved state that holds weights: numbers that a program computes with.

    They must not be sizes, indices or addresses: other pieces count as code, which is used only if it is trusted, while
    weights may come from anyone.

    Attributes:
        data: the bytes.
        constant: name of the constant of the partition's graph whose float32 elements ``data`` holds in ``layout``. The
            file then stores the constant only once, in that layout. Empty for weights that were computed otherwise.
        layout: the order of the constant's elements.
    """

    data: bytes | memoryview
    constant: str = ""
    layout: PanelLayout | None = None
