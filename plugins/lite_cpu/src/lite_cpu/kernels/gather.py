"""Reading elements at indices that are data: Gather, GatherND and GatherElements.

Elements are moved as integers of their size. An index out of range is recorded by a step of its own (see
:mod:`lite_cpu.kernels.bounds`); kernels that use it take the nearest valid one, so that no memory outside of the
tensors is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Params, Pointer, Val
from lite_cpu.kernels.base import Kernel

__all__ = ["GatherElements", "GatherRows", "Lines", "wrapped"]


def wrapped(k: Emitter, index: Val, size: Val) -> Val:
    """An index as an int64 from 0 to ``size - 1``: a negative one counts from the end, others are clamped."""
    wide = index.to(DType.INT64)
    positive = (wide < 0).select(wide + size, wide)
    return k.maximum(k.minimum(positive, size - 1), 0)


@dataclass(frozen=True)
class GatherRows(Kernel):
    """``destination[o, t] = source[o, i0, i1, ...]``, rows of neighbouring elements; ``i`` is index tuple ``t``.

    Pointers: source, indices, destination. Parameters: see :meth:`params`. A work item is a row.
    """

    itemsize: int
    index: DType
    depth: int

    @staticmethod
    def params(
        length: int,
        tuples: int,
        source_outer: int,
        index_outer: int,
        sizes: Sequence[int],
        strides: Sequence[int],
    ) -> list[int]:
        """Sizes and strides, in elements.

        Args:
            length: elements of a row.
            tuples: index tuples for each ``o``.
            source_outer: from one ``o`` to the next in the source.
            index_outer: the same in the indices; 0 where all share them.
            sizes: of the dimensions that a tuple addresses.
            strides: of those dimensions in the source.
        """
        return [length, tuples, source_outer, index_outer, *sizes, *strides]

    def emit(self, k: Emitter) -> None:
        dtype = DType(f"uint{8 * self.itemsize}")
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            source, destination = pointers.tensor(0, dtype), pointers.tensor(2, dtype)
            indices = pointers.tensor(1, self.index)
            length, tuples, source_outer, index_outer = (params[i] for i in range(4))
            with k.loop(begin, end) as item:
                outer, number = item / tuples, item % tuples
                place = indices[outer * index_outer + number * self.depth]
                row = source[outer * source_outer]
                for d in range(self.depth):
                    row = row[wrapped(k, place[d].load(), params[4 + d]) * params[4 + self.depth + d]]
                copy_row(k, row, destination[item * length], length)


def copy_row(k: Emitter, source: Pointer, destination: Pointer, length: Val) -> None:
    lanes = k.machine.lanes(source.dtype.itemsize)
    k.span(length, lanes, lambda i, n: destination[i].store(source[i].load(n)), narrow=True)


@dataclass(frozen=True)
class Lines:
    """Lines of elements along one axis of a tensor, each beside a line of indices; a work item is a line.

    Parameters: elements of a line of indices, their stride; size and stride of the axis; then for each of the
    ``outer`` dimensions around, innermost first, its size, stride of the tensor and stride of the indices.
    """

    outer: int

    @staticmethod
    def params(
        axis: int, shape: Sequence[int], index_strides: Sequence[int], size: int, strides: Sequence[int]
    ) -> list[int]:
        """Parameters for indices of ``shape``, along ``axis``, which has ``size`` and ``strides`` in the tensor."""
        listed = [shape[axis], index_strides[axis], size, strides[axis]]
        for d in reversed(range(len(shape))):
            if d != axis:
                listed += [shape[d], strides[d], index_strides[d]]
        return listed

    def at(
        self, params: Params, item: Val, tensor: Pointer, beside: Sequence[Pointer]
    ) -> tuple[Pointer, list[Pointer]]:
        """The start of a line in the tensor and in what lies as the indices do."""
        rest = item
        for d in range(self.outer):
            size, stride, index_stride = (params[4 + 3 * d + i] for i in range(3))
            tensor = tensor[rest % size * stride]
            beside = [p[rest % size * index_stride] for p in beside]
            rest = rest / size
        return tensor, list(beside)


@dataclass(frozen=True)
class GatherElements(Kernel):
    """``destination[o, j] = source[o, indices[o, j]]`` along lines. Pointers: source, indices, destination."""

    itemsize: int
    index: DType
    lines: Lines

    def emit(self, k: Emitter) -> None:
        dtype = DType(f"uint{8 * self.itemsize}")
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            count, step, size, stride = (params[i] for i in range(4))
            beside = [pointers.tensor(1, self.index), pointers.tensor(2, dtype)]
            with k.loop(begin, end) as item:
                line, (indices, destination) = self.lines.at(params, item, pointers.tensor(0, dtype), beside)
                with k.loop(0, count) as j:
                    index = wrapped(k, indices[j * step].load(), size)
                    destination[j * step].store(line[index * stride].load())
