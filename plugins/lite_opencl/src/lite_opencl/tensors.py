"""Tensors of a partition: strided views of pieces of device memory.

A :class:`Tensor` is what a NumPy array is to its buffer. Most tensors are dense, in the order of their dimensions;
a reshape, slice, transposition or broadcast is another view of the same storage and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from lite_core.ir import DType
from lite_opencl.device.memory import Allocation

__all__ = ["Storage", "Tensor", "anywhere", "collapse", "dense_strides", "types_of"]


@dataclass(eq=False, slots=True)
class Storage:
    """A piece of device memory.

    Attributes:
        bytes: its size.
        place: where it is: an allocation for a constant, the number of an argument of the partition (inputs, then
            outputs), or None for the arena.
        offset: bytes from the beginning of the arena, decided when memory is planned; 0 elsewhere.
    """

    bytes: int
    place: Allocation | int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Tensor:
    """A strided view of storage. ``offset`` and ``strides`` count elements; strides may be 0 or negative."""

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
        """Bytes of its elements, those repeated by broadcasting counted once."""
        return self.dtype.itemsize * prod(n for n, s in zip(self.shape, self.strides) if s or not n)

    @property
    def is_dense(self) -> bool:
        """Elements lie without gaps in the order of the dimensions."""
        return all(n == 1 or s == d for n, s, d in zip(self.shape, self.strides, dense_strides(self.shape)))

    def view(self, shape: Sequence[int], strides: Sequence[int], offset: int | None = None) -> Tensor:
        """Elements of the same storage, from the same first one on if ``offset`` is left out."""
        return Tensor(self.storage, self.dtype, tuple(shape), tuple(strides), self.offset if offset is None else offset)

    def permute(self, order: Sequence[int]) -> Tensor:
        """Dimensions in another order, as ``numpy.transpose``."""
        return self.view([self.shape[a] for a in order], [self.strides[a] for a in order])

    def slice(self, axis: int, start: int, count: int, step: int = 1) -> Tensor:
        """``count`` elements of one dimension from ``start`` on, ``step`` (possibly negative) apart."""
        shape, strides = list(self.shape), list(self.strides)
        offset = self.offset + (start * strides[axis] if count else 0)
        shape[axis] = count
        strides[axis] *= step
        return self.view(shape, strides, offset)

    def expand(self, shape: Sequence[int]) -> Tensor:
        """Broadcast to ``shape`` by NumPy's rule; repeated elements have stride 0."""
        lead = len(shape) - self.rank
        own = [0 if n == 1 and m != 1 else s for n, s, m in zip(self.shape, self.strides, shape[lead:])]
        return self.view(shape, [0] * lead + own)

    def reshape(self, shape: Sequence[int]) -> Tensor | None:
        """The same elements under another shape; None where no strides can say it, and they need a copy first."""
        if self.is_dense or not self.size:
            return self.view(shape, dense_strides(shape))
        (merged,) = collapse([self])
        sizes, steps = list(merged.shape), list(merged.strides)
        strides = []
        for count in reversed(shape):
            if len(sizes) > 1 and sizes[-1] == 1:
                sizes.pop()
                steps.pop()
            if sizes[-1] % count:
                return None
            strides.append(steps[-1])
            sizes[-1] //= count
            steps[-1] *= count
        return self.view(shape, strides[::-1])

    def is_same_place(self, other: Tensor) -> bool:
        """Whether each element is the very one that the other tensor has there."""
        mine, its = (
            (t.storage, t.dtype, t.shape, t.offset, [s for s, n in zip(t.strides, t.shape) if n != 1])
            for t in (self, other)
        )
        return mine == its


def anywhere(place: Tensor) -> bool:
    """Whether a step that takes strides can write to a tensor: it can; see ``Lowering.target``."""
    return True


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a tensor whose elements lie without gaps, the last dimension innermost."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(range(len(shape))):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def collapse(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Views of tensors of one shape with the fewest dimensions in which all of them can be walked together.

    At least one dimension. Neighbours in the dimensions' own order are merged; their order is kept.
    """
    axes = [a for a, n in enumerate(tensors[0].shape) if n != 1]
    sizes: list[int] = []
    strides: list[list[int]] = [[] for _ in tensors]
    for axis in axes:
        count = tensors[0].shape[axis]
        if sizes and all(mine[-1] == count * t.strides[axis] for mine, t in zip(strides, tensors)):
            sizes[-1] *= count
            for mine, tensor in zip(strides, tensors):
                mine[-1] = tensor.strides[axis]
        else:
            sizes.append(count)
            for mine, tensor in zip(strides, tensors):
                mine.append(tensor.strides[axis])
    if not sizes:
        return [t.view((1,), (1,)) for t in tensors]
    return [t.view(sizes, mine) for t, mine in zip(tensors, strides)]


def types_of(**tensors: Tensor) -> tuple[tuple[str, DType], ...]:
    """What :class:`KernelSource` takes as its types: those in which tensors lie in memory, by the kernel's names."""
    return tuple((name, tensor.dtype) for name, tensor in tensors.items())
