"""Tensors of a partition: strided views of storage, and the algebra that makes most shape operators free.

A :class:`Tensor` is what a NumPy array is to its buffer: an offset, a shape and a stride for each
dimension, in elements. Layout is nothing more than the order of the strides: an image tensor keeps its
dimensions batch, channels, height, width and is *channels last* when its channels have stride 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from lite_core.ir import DType

__all__ = ["ABSOLUTE", "ARENA", "FIRST_ARGUMENT", "Storage", "Tensor", "dense_strides"]

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


@dataclass(slots=True)
class Tensor:
    """A strided view of storage. ``offset`` and ``strides`` count elements.

    NOTE: tensors are shared, so never assign to their fields. They are not frozen because a plan makes hundreds, and
    a frozen dataclass takes four times as long to make.
    """

    storage: Storage
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of the elements (not of the storage, which may have gaps or be shared)."""
        return self.size * self.dtype.itemsize

    @property
    def byte_offset(self) -> int:
        return self.offset * self.dtype.itemsize

    @property
    def is_dense(self) -> bool:
        """Elements lie without gaps in the order of the dimensions."""
        step = 1
        for count, stride in zip(reversed(self.shape), reversed(self.strides)):
            if stride != step and count != 1:
                return False
            step *= count
        return True

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

    # **** views ****

    def view(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int | None = None) -> Tensor:
        """Elements of the same storage; from the same first one on if ``offset`` is left out."""
        # Far quicker than dataclasses.replace, and a plan makes hundreds of views.
        return Tensor(self.storage, self.dtype, shape, strides, self.offset if offset is None else offset)

    def permute(self, order: Sequence[int]) -> Tensor:
        """Dimensions in another order, as ``numpy.transpose``."""
        return self.view(tuple([self.shape[a] for a in order]), tuple([self.strides[a] for a in order]))

    def slice(self, axis: int, start: int, count: int, step: int = 1) -> Tensor:
        """``count`` elements of one dimension from ``start`` on, ``step`` (possibly negative) apart."""
        shape, strides = list(self.shape), list(self.strides)
        offset = self.offset + (start * strides[axis] if count else 0)
        shape[axis] = count
        strides[axis] *= step
        return self.view(tuple(shape), tuple(strides), offset)

    def expand(self, shape: Sequence[int]) -> Tensor:
        """Broadcast to ``shape`` by NumPy's rule; repeated elements have stride 0."""
        shape = tuple(shape)
        if shape == self.shape:
            return self
        lead = len(shape) - self.rank
        own = [0 if n == 1 and m != 1 else s for n, s, m in zip(self.shape, self.strides, shape[lead:])]
        return self.view(shape, (*[0] * lead, *own))

    def reshape(self, shape: Sequence[int]) -> Tensor | None:
        """The same elements under another shape, or None where no strides can say it without a copy."""
        target = tuple(shape)
        if self.size == 0 or self.is_dense:
            return self.view(target, dense_strides(target))
        # Dimensions of both sides are matched in blocks of equal size; inside a block, ours must be evenly spaced.
        old = [(n, s) for n, s in zip(self.shape, self.strides) if n != 1]
        strides = [0] * len(target)
        i = j = 0
        while i < len(old):
            ours, theirs, first, start = old[i][0], 1, i, j
            i += 1
            while j < len(target) and (theirs < ours or target[j] == 1):
                theirs *= target[j]
                j += 1
                while theirs > ours and i < len(old):
                    ours *= old[i][0]
                    i += 1
            if ours != theirs:
                return None
            for (_, outer), (count, inner) in zip(old[first:i], old[first + 1 : i]):
                if outer != count * inner:
                    return None
            step = old[i - 1][1]
            for axis in range(j - 1, start - 1, -1):
                strides[axis] = step
                step *= target[axis]
        return self.view(target, tuple(strides))


def dense_strides(shape: Sequence[int], order: Sequence[int] | None = None) -> tuple[int, ...]:
    """Strides of a dense tensor; ``order`` lists its dimensions from outermost to innermost in memory."""
    strides = [0] * len(shape)
    step = 1
    for axis in reversed(range(len(shape)) if order is None else order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)
