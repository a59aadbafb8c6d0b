"""Loading of elements at indices computed at run time: Gather, GatherND and GatherElements.

Elements are copied as integers of their size. A separate step records an index out of range (see
:mod:`lite_cpu.kernels.bounds`); kernels clamp it to the nearest valid one, so that no memory outside the tensors is
accessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Params, Pointer, Val
from lite_cpu.kernels.base import Kernel

__all__ = ["GatherElements", "GatherRows", "Lines", "wrapped"]


def wrapped(k: Emitter, index: Val, size: Val) -> Val:
    """Return an index as an int64 in [0, size): a negative index counts from the end, then the result is clamped."""
    wide = index.to(DType.INT64)
    positive = (wide < 0).select(wide + size, wide)
    return k.maximum(k.minimum(positive, size - 1), 0)


@dataclass(frozen=True)
class GatherRows(Kernel):
    """Gather contiguous rows: ``destination[o, t] = source[o, i0, i1, ...]``, where ``i`` is index tuple ``t``.

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
        """Return the parameters; sizes and strides are in elements.

        Args:
            length: elements of a row.
            tuples: number of index tuples for each ``o``.
            source_outer: stride of ``o`` in the source.
            index_outer: stride of ``o`` in the indices; 0 if all share them.
            sizes: sizes of the dimensions that a tuple addresses.
            strides: strides of those dimensions in the source.
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
                index_tuple = indices[outer * index_outer + number * self.depth]
                row = source[outer * source_outer]
                for d in range(self.depth):
                    row = row[wrapped(k, index_tuple[d].load(), params[4 + d]) * params[4 + self.depth + d]]
                copy_row(k, row, destination[item * length], length)


def copy_row(k: Emitter, source: Pointer, destination: Pointer, length: Val) -> None:
    """Emit the copy of contiguous elements."""
    lanes = k.machine.lanes(source.dtype.itemsize)
    k.span(length, lanes, lambda i, n: destination[i].store(source[i].load(n)), narrow=True)


@dataclass(frozen=True)
class Lines:
    """Lines of elements along one axis of a tensor, each with a line of indices; a work item is a line.

    Parameters: elements of a line of indices, their stride; size and stride of the axis; then for each of the
    ``outer`` other dimensions, innermost first, its size, stride in the tensor and stride in the indices.
    """

    outer: int

    @staticmethod
    def params(
        axis: int, shape: Sequence[int], index_strides: Sequence[int], size: int, strides: Sequence[int]
    ) -> list[int]:
        """Return the parameters for indices of ``shape`` along ``axis``, which has ``size`` elements in the tensor."""
        listed = [shape[axis], index_strides[axis], size, strides[axis]]
        for d in reversed(range(len(shape))):
            if d != axis:
                listed += [shape[d], strides[d], index_strides[d]]
        return listed

    def at(
        self, params: Params, item: Val, tensor: Pointer, beside: Sequence[Pointer]
    ) -> tuple[Pointer, list[Pointer]]:
        """Return the start of a line in the tensor, and in the tensors ``beside`` it with the layout of the indices."""
        rest = item
        for d in range(self.outer):
            size, stride, index_stride = (params[4 + 3 * d + i] for i in range(3))
            tensor = tensor[rest % size * stride]
            beside = [p[rest % size * index_stride] for p in beside]
            rest = rest / size
        return tensor, list(beside)


@dataclass(frozen=True)
class GatherElements(Kernel):
    """Gather along lines: ``destination[o, j] = source[o, indices[o, j]]``.

    Pointers: source, indices, destination.
    """

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
