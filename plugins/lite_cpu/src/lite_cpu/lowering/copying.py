"""Emission of copies between tensors of any layout."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lite_compiler.tensors import memory_order
from lite_compiler.tracing.numbers import largest
from lite_cpu.chains import Chain, Operand
from lite_cpu.kernels.transpose import Transpose, transpose_block
from lite_cpu.lowering.chaining import run_chain
from lite_cpu.lowering.steps import StepEmitter
from lite_cpu.tensors import Tensor, collapse

__all__ = ["copy_elements", "vectorizable"]

#: Elements of a work item: the minimum, and also the maximum if there are enough items.
_ITEM_ELEMENTS = 8192

#: Maximum number of rows that are interleaved in registers.
_MAX_INTERLEAVED = 4

#: Minimum size of a source that is copied to allow vectors; for smaller ones the copy costs more than it saves.
_MIN_COPY_BYTES = 4096


def copy_elements(emitter: StepEmitter, source: Tensor, destination: Tensor) -> None:
    """Emit a copy between tensors of one shape and element type; ``source`` may repeat elements (stride 0)."""
    if destination.size == 0:
        return
    source, destination = source.as_bits(), destination.as_bits()
    sizes, (to, from_) = collapse([destination, source])
    columns = next((i for i, (n, s) in enumerate(zip(sizes, from_)) if n > 1 and s == 1), None)
    if to[-1] != 1 or columns is None or columns == len(sizes) - 1:
        run_chain(emitter, Chain(Operand(source.dtype)), [source], destination)
    else:
        _transpose(emitter, source, destination, sizes, to, from_, columns)


def vectorizable(emitter: StepEmitter, source: Tensor, destination: Tensor) -> Tensor:
    """Return the source of an element-wise step, copied if only its layout prevents the step from using vectors."""
    if source.shape != destination.shape or source.bytes < _MIN_COPY_BYTES:
        return source
    _, (to, from_) = collapse([destination, source])
    if to[-1] != 1 or from_[-1] in (0, 1):
        return source
    copy = emitter.allocate(source.shape, source.dtype, memory_order(destination))
    copy_elements(emitter, source, copy)
    return copy


def _transpose(
    emitter: StepEmitter,
    source: Tensor,
    destination: Tensor,
    sizes: Sequence[int],
    to: Sequence[int],
    from_: Sequence[int],
    columns: int,
) -> None:
    """Emit a copy whose destination is contiguous in the last loop and whose source is contiguous in ``columns``."""
    itemsize = source.dtype.itemsize
    block = transpose_block(emitter.machine, itemsize)
    outer = [i for i in reversed(range(len(sizes) - 1)) if i != columns]
    loops = [(sizes[i], from_[i], to[i]) for i in outer]
    rows, width = sizes[-1], sizes[columns]
    thin = min(rows, width) < block // 2
    interleave = rows if thin and 2 <= rows <= _MAX_INTERLEAVED and to[columns] == rows else 0
    column_block = -(-largest(1, _ITEM_ELEMENTS // rows) // block) * block
    items = -(-width // column_block) * prod(sizes[i] for i in outer)
    emitter.step(
        Transpose(itemsize, len(loops), thin, interleave),
        [source, destination],
        Transpose.params(rows, width, from_[-1], to[columns], column_block, loops),
        items,
        largest(1, _ITEM_ELEMENTS // (column_block * rows)),
    )
