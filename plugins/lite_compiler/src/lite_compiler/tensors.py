"""Tensors of a partition: strided views of storage, and the algebra that makes most shape operators free.

A :class:`StridedTensor` is what a NumPy array is to its buffer: an offset, a shape and a stride for each dimension, in
elements. Layout is nothing more than the order of the strides: an image tensor keeps its dimensions batch, channels,
height, width and is *channels last* when its channels have stride 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Generic, TypeVar

from lite_core.ir import DType

__all__ = ["StridedTensor", "collapse", "dense_strides", "memory_order", "split_dimensions"]

S = TypeVar("S")
T = TypeVar("T", bound="StridedTensor[Any]")


@dataclass(slots=True, unsafe_hash=True)
class StridedTensor(Generic[S]):
    """A strided view of storage. ``offset`` and ``strides`` count elements; strides may be 0 or negative.

    What storage is, is the backend's business: its own class of tensors says it. Two tensors are equal when they are
    the same view of the same storage.

    NOTE: tensors are shared, and keys of tables, so never assign to their fields. They are not frozen because lowering
    makes hundreds, and a frozen dataclass takes four times as long to make.
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
        """Bytes of the elements (not of the storage, which may have gaps or be shared)."""
        return self.size * self.dtype.itemsize

    @property
    def distinct_bytes(self) -> int:
        """Bytes of the elements, those that are repeated by broadcasting counted once."""
        if 0 not in self.strides:
            return self.bytes
        return self.dtype.itemsize * prod([n for n, s in zip(self.shape, self.strides) if s or not n])

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

    def occupies_same_memory(self: T, other: T) -> bool:
        """Whether each element is the very one that the other tensor has there."""
        if self.storage is not other.storage or self.offset != other.offset or self.shape != other.shape:
            return False
        steps = zip(self.shape, self.strides, other.strides)
        return self.dtype is other.dtype and all(mine == its or n == 1 for n, mine, its in steps)

    # **** views ****

    def view(self: T, shape: Sequence[int], strides: Sequence[int], offset: int | None = None) -> T:
        """Elements of the same storage; from the same first one on if ``offset`` is left out."""
        # Far quicker than dataclasses.replace, and lowering makes hundreds of views.
        first = self.offset if offset is None else offset
        return self.__class__(self.storage, self.dtype, tuple(shape), tuple(strides), first)

    def as_bits(self: T) -> T:
        """The same elements as unsigned integers of their size: one kernel moves every type, and NaN stays as it is."""
        dtype = DType(f"uint{8 * self.dtype.itemsize}")
        return self.__class__(self.storage, dtype, self.shape, self.strides, self.offset)

    def permute(self: T, order: Sequence[int]) -> T:
        """Dimensions in another order, as ``numpy.transpose``."""
        return self.view([self.shape[a] for a in order], [self.strides[a] for a in order])

    def slice(self: T, axis: int, start: int, count: int, step: int = 1) -> T:
        """``count`` elements of one dimension from ``start`` on, ``step`` (possibly negative) apart."""
        shape, strides = list(self.shape), list(self.strides)
        offset = self.offset + (start * strides[axis] if count else 0)
        shape[axis] = count
        strides[axis] *= step
        return self.view(shape, strides, offset)

    def expand(self: T, shape: Sequence[int]) -> T:
        """Broadcast to ``shape`` by NumPy's rule; repeated elements have stride 0."""
        shape = tuple(shape)
        if shape == self.shape:
            return self
        lead = len(shape) - self.rank
        own = [0 if n == 1 and m != 1 else s for n, s, m in zip(self.shape, self.strides, shape[lead:])]
        return self.view(shape, (*[0] * lead, *own))

    def reshape(self: T, shape: Sequence[int]) -> T | None:
        """The same elements under another shape; None where no strides can say it, and they need a copy first."""
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
        return self.view(target, strides)


def dense_strides(shape: Sequence[int], order: Sequence[int] | None = None) -> tuple[int, ...]:
    """Strides of a dense tensor; ``order`` lists its dimensions from outermost to innermost in memory."""
    strides = [0] * len(shape)
    step = 1
    for axis in reversed(range(len(shape)) if order is None else order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def memory_order(tensor: StridedTensor[Any]) -> list[int]:
    """The dimensions of a tensor from outermost to innermost in memory."""
    strides = tensor.strides
    return sorted(range(len(strides)), key=lambda axis: -abs(strides[axis]))


def collapse(
    tensors: Sequence[StridedTensor[Any]], order: Sequence[int] | None = None
) -> tuple[list[int], list[list[int]]]:
    """Fewest loops that walk tensors of one shape together, innermost last.

    Args:
        tensors: dimensions that all of them can walk as one are merged, where they are neighbours.
        order: the dimensions from outermost to innermost; as they are if left out.

    Returns:
        The size of each loop, and for each tensor its stride in each loop. At least one loop.
    """
    shape = tensors[0].shape
    sizes: list[int] = []
    strides: list[list[int]] = [[] for _ in tensors]
    given = [tensor.strides for tensor in tensors]
    for axis in range(len(shape)) if order is None else order:
        count = shape[axis]
        if count == 1:
            continue
        if sizes and all(mine[-1] == count * own[axis] for mine, own in zip(strides, given)):
            sizes[-1] *= count
            for mine, own in zip(strides, given):
                mine[-1] = own[axis]
        else:
            sizes.append(count)
            for mine, own in zip(strides, given):
                mine.append(own[axis])
    if not sizes:
        sizes = [1]
        strides = [[0] for _ in tensors]
        strides[0] = [1]
    return sizes, strides


def split_dimensions(tensor: T, parts: Sequence[Sequence[int]]) -> T:
    """A view with each dimension split into some, whose product it is."""
    shape = [n for part in parts for n in part]
    strides = [stride * prod(part[i + 1 :]) for part, stride in zip(parts, tensor.strides) for i in range(len(part))]
    return tensor.view(shape, strides)
