"""Stores to indices computed at run time: ScatterND and ScatterElements, into a tensor that already holds the data.

Different work items never store to the same element, so the updates of an element are applied in their order. A chain
computes the new element: value 0 is the old element, value 1 the update; without steps the update replaces it.
"""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.chains import Chain
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.gather import Lines, wrapped

__all__ = ["ScatterElements", "ScatterRows"]


def _update(k: Emitter, chain: Chain, destination: Pointer, update: Pointer, lanes: int = 1) -> None:
    if not chain.steps:
        destination.store(update.load(lanes))
    else:
        destination.store(chain.emit(k, destination.load(lanes), lambda _, operand: update.load(lanes)))


@dataclass(frozen=True)
class ScatterRows(Kernel):
    """Update contiguous rows: ``tensor[i0, i1, ...]`` by row ``t`` of the updates, where ``i`` is index tuple ``t``.

    Pointers: tensor, indices, updates. Parameters: length of a row, columns of a work item, number of tuples, then
    the sizes and the strides of the dimensions that a tuple addresses. A work item is a block of columns of all rows.
    """

    chain: Chain
    index: DType
    depth: int

    def emit(self, k: Emitter) -> None:
        dtype = self.chain.start.dtype
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            tensor, indices, updates = (pointers.tensor(i, t) for i, t in enumerate((dtype, self.index, dtype)))
            length, column_block, tuples = (params[i] for i in range(3))
            with k.loop(begin, end) as item, k.loop(0, tuples) as number:
                first = item * column_block
                row, update = tensor[first], updates[number * length + first]
                for d in range(self.depth):
                    index = wrapped(k, indices[number * self.depth + d].load(), params[3 + d])
                    row = row[index * params[3 + self.depth + d]]
                columns = k.minimum(column_block, length - first)

                def body(i: Val, lanes: int, row: Pointer = row, update: Pointer = update) -> None:
                    _update(k, self.chain, row[i], update[i], lanes)

                k.span(columns, k.machine.lanes(max(4, dtype.itemsize)), body)


@dataclass(frozen=True)
class ScatterElements(Kernel):
    """Update ``tensor[o, indices[o, j]]`` by ``updates[o, j]`` along lines. Pointers: tensor, indices, updates."""

    chain: Chain
    index: DType
    lines: Lines

    def emit(self, k: Emitter) -> None:
        dtype = self.chain.start.dtype
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            count, step, size, stride = (params[i] for i in range(4))
            beside = [pointers.tensor(1, self.index), pointers.tensor(2, dtype)]
            with k.loop(begin, end) as item:
                line, (indices, updates) = self.lines.at(params, item, pointers.tensor(0, dtype), beside)
                with k.loop(0, count) as j:
                    index = wrapped(k, indices[j * step].load(), size)
                    _update(k, self.chain, line[index * stride], updates[j * step])
