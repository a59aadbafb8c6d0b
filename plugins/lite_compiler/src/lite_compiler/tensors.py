"""Tensors of a partition: strided views of storage, and operations on views that make most shape operators free.

A :class:`StridedTensor` describes storage as a NumPy array describes its buffer: by an offset, a shape and a stride for
each dimension, in elements. The layout is given by the strides alone: an image tensor always has the dimensions batch,
channels, height, width, and is *channels last* when its channels have stride 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Generic, TypeVar

from lite_core.ir import DType
from lite_core.ops.helpers.strides import broadcast_strides, dense_strides, merge_loops

__all__ = ["StridedTensor", "collapse", "dense_strides", "memory_order", "split_dimensions"]

S = TypeVar("S")
T = TypeVar("T", bound="StridedTensor[Any]")


@dataclass(slots=True, unsafe_hash=True)
class StridedTensor(Generic[S]):
    """A strided view of storage. ``offset`` and ``strides`` count elements; strides may be 0 or negative.

    Each backend defines its type of storage by a subclass. Two tensors are equal if they are the same view of the same
    storage.

    NOTE: tensors are shared and used as keys, so never assign to their fields. They are not frozen because lowering
    creates hundreds, and creating an instance of a frozen dataclass takes four times as long.
    """

    storage: S
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
        """The size of the elements in bytes (not of the storage, which may have gaps or be shared)."""
        return self.size * self.dtype.itemsize

    @property
    def distinct_bytes(self) -> int:
        """The size of the elements in bytes, counting elements repeated by broadcasting once."""
        if 0 not in self.strides:
            return self.bytes
        return self.dtype.itemsize * prod([n for n, s in zip(self.shape, self.strides) if s or not n])

    @property
    def byte_offset(self) -> int:
        return self.offset * self.dtype.itemsize

    @property
    def is_dense(self) -> bool:
        """True if the elements are contiguous in the order of the dimensions."""
        step = 1
        for count, stride in zip(reversed(self.shape), reversed(self.strides)):
            if stride != step and count != 1:
                return False
            step *= count
        return True

    def occupies_same_memory(self: T, other: T) -> bool:
        """Return True if both tensors have the same shape, element type and address of each element."""
        if self.storage is not other.storage or self.offset != other.offset or self.shape != other.shape:
            return False
        steps = zip(self.shape, self.strides, other.strides)
        return self.dtype is other.dtype and all(own == others or n == 1 for n, own, others in steps)

    # **** views ****

    def view(self: T, shape: Sequence[int], strides: Sequence[int], offset: int | None = None) -> T:
        """Return another view of the same storage; ``offset`` defaults to the offset of this tensor."""
        # Far quicker than dataclasses.replace, and lowering creates hundreds of views.
        first = self.offset if offset is None else offset
        return self.__class__(self.storage, self.dtype, tuple(shape), tuple(strides), first)

    def as_bits(self: T) -> T:
        """Return the elements as unsigned integers of the same size: one kernel copies every type, and NaN exactly."""
        dtype = DType(f"uint{8 * self.dtype.itemsize}")
        return self.__class__(self.storage, dtype, self.shape, self.strides, self.offset)

    def permute(self: T, order: Sequence[int]) -> T:
        """Return a view with the dimensions in another order, as ``numpy.transpose``."""
        return self.view([self.shape[a] for a in order], [self.strides[a] for a in order])

    def slice(self: T, axis: int, start: int, count: int, step: int = 1) -> T:
        """Return a view of ``count`` elements of one dimension from ``start`` on; ``step`` may be negative."""
        shape, strides = list(self.shape), list(self.strides)
        offset = self.offset + (start * strides[axis] if count else 0)
        shape[axis] = count
        strides[axis] *= step
        return self.view(shape, strides, offset)

    def expand(self: T, shape: Sequence[int]) -> T:
        """Return a view broadcast to ``shape`` by NumPy's rule; repeated dimensions have stride 0."""
        shape = tuple(shape)
        if shape == self.shape:
            return self
        return self.view(shape, broadcast_strides(self.shape, shape, self.strides))

    def reshape(self: T, shape: Sequence[int]) -> T | None:
        """Return a view of another shape, or None if no strides express it and a copy is needed."""
        target = tuple(shape)
        if self.size == 0 or self.is_dense:
            return self.view(target, dense_strides(target))
        # Old and new dimensions are matched in blocks of equal size; the old ones of a block must be evenly spaced.
        old = [(n, s) for n, s in zip(self.shape, self.strides) if n != 1]
        strides = [0] * len(target)
        i = j = 0
        while i < len(old):
            old_size, new_size, first, start = old[i][0], 1, i, j
            i += 1
            while j < len(target) and (new_size < old_size or target[j] == 1):
                new_size *= target[j]
                j += 1
                while new_size > old_size and i < len(old):
                    old_size *= old[i][0]
                    i += 1
            if old_size != new_size:
                return None
            for (_, outer), (count, inner) in zip(old[first:i], old[first + 1 : i]):
                if outer != count * inner:
                    return None
            step = old[i - 1][1]
            for axis in range(j - 1, start - 1, -1):
                strides[axis] = step
                step *= target[axis]
        return self.view(target, strides)


def memory_order(tensor: StridedTensor[Any]) -> list[int]:
    """Return the dimensions of a tensor from outermost to innermost in memory."""
    strides = tensor.strides
    return sorted(range(len(strides)), key=lambda axis: -abs(strides[axis]))


def collapse(
    tensors: Sequence[StridedTensor[Any]], order: Sequence[int] | None = None
) -> tuple[list[int], list[list[int]]]:
    """Return the fewest nested loops that iterate over tensors of one shape together, innermost last.

    Args:
        tensors: the tensors; neighbouring dimensions are merged if every tensor can walk them with one stride.
        order: the dimensions from outermost to innermost; their natural order if None.

    Returns:
        The size of each loop, and for each tensor its stride in each loop. There is at least one loop.
    """
    return merge_loops(tensors[0].shape, [tensor.strides for tensor in tensors], order)


def split_dimensions(tensor: T, parts: Sequence[Sequence[int]]) -> T:
    """Return a view in which each dimension is split into the given sizes, whose product is its size."""
    shape = [n for part in parts for n in part]
    strides = [stride * prod(part[i + 1 :]) for part, stride in zip(parts, tensor.strides) for i in range(len(part))]
    return tensor.view(shape, strides)
