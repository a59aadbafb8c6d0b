"""Tensors of a partition that runs on the CPU: their storage, and the layout of images in it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from lite_compiler import tensors as strided
from lite_compiler.tensors import StridedTensor, memory_order

__all__ = ["ABSOLUTE", "ARENA", "FIRST_ARGUMENT", "Storage", "Tensor", "collapse"]

#: Numbers of the base addresses: the arena, address 0 (for memory with a known address), then inputs and outputs.
ARENA, ABSOLUTE, FIRST_ARGUMENT = 0, 1, 2


class Storage:
    """A block of memory: a part of the arena, an argument, or a constant.

    Attributes:
        bytes: its size.
        base: number of the base address that it is relative to.
        offset: bytes from that address; in the arena the memory planner decides it last.
        keep: an object that owns the memory and is kept alive with the program.
    """

    __slots__ = ("__weakref__", "base", "bytes", "keep", "offset")

    def __init__(self, bytes: int, base: int = ARENA, offset: int = 0, keep: object = None) -> None:
        self.bytes, self.base, self.offset, self.keep = bytes, base, offset, keep

    @property
    def in_arena(self) -> bool:
        return self.base == ARENA


class Tensor(StridedTensor[Storage]):
    """A strided view of main memory."""

    __slots__ = ()

    @property
    def is_channels_last(self) -> bool:
        """True if channels (dimension 1) are contiguous and all pixels are evenly spaced."""
        return self.rank >= 2 and self.pixel_stride is not None

    @property
    def pixel_stride(self) -> int | None:
        """Distance of two neighbouring pixels, in elements, over batch and spatial dimensions.

        None if channels are not contiguous, or pixels are not evenly spaced.
        """
        if self.rank < 2 or (self.shape[1] > 1 and self.strides[1] != 1):
            return None
        dims = [(n, s) for axis, (n, s) in enumerate(zip(self.shape, self.strides)) if axis != 1 and n > 1]
        if not dims:
            return self.shape[1]
        for (_, outer), (count, inner) in pairwise(dims):
            if outer != count * inner:
                return None
        return dims[-1][1]


def collapse(tensors: Sequence[Tensor]) -> tuple[list[int], list[list[int]]]:
    """Return the fewest loops that traverse tensors of one shape together, in the memory order of the first tensor.

    Returns:
        The size of each loop, innermost last, and for each tensor its stride in each loop. There is at least one loop.
    """
    return strided.collapse(tensors, memory_order(tensors[0]))
