"""Tensors of a partition that runs on the CPU: where their memory is, and how images lie in it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from lite_compiler import tensors as strided
from lite_compiler.tensors import StridedTensor, memory_order

__all__ = ["ABSOLUTE", "ARENA", "FIRST_ARGUMENT", "Storage", "Tensor", "collapse"]

#: Numbers of the base addresses: the arena, address 0 (for memory whose address is known), inputs, outputs.
ARENA, ABSOLUTE, FIRST_ARGUMENT = 0, 1, 2


class Storage:
    """A piece of memory that lives as long as a run (in the arena), or longer (what it is bound to).

    Attributes:
        bytes: its size.
        base: which base address it is relative to.
        offset: bytes from that address; for the arena decided last, by the memory planner.
        keep: an object that owns the memory, kept alive with the program.
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
        """Channels (dimension 1) are neighbours, and the pixels of an image follow each other at one distance."""
        return self.rank >= 2 and self.pixel_stride is not None

    @property
    def pixel_stride(self) -> int | None:
        """Elements from one pixel to the next over all of batch and space, if that is one number.

        None when channels are not neighbours, or pixels are not evenly spaced.
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
    """Fewest loops that walk tensors of one shape together, in the order in which the first one lies in memory.

    Returns:
        The size of each loop, innermost last, and for each tensor its stride in each loop. At least one loop.
    """
    return strided.collapse(tensors, memory_order(tensors[0]))
