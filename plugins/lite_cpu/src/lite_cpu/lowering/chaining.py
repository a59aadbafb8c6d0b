"""Emission of element-wise chains as separate steps that iterate over strided tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lite_compiler.tracing.numbers import computed, largest, smallest
from lite_cpu.chains import Chain, Operand
from lite_cpu.kernels.elementwise import Elementwise
from lite_cpu.lowering.steps import StepEmitter
from lite_cpu.tensors import Tensor, collapse

__all__ = ["run_chain"]

#: Minimum number of elements of a work item; scheduling a smaller one takes longer than computing it.
_ITEM_ELEMENTS = 8192


def run_chain(emitter: StepEmitter, chain: Chain, sources: Sequence[Tensor], destination: Tensor) -> None:
    """Emit a step that applies a chain to all elements; sources are broadcast to the destination's shape.

    The operands of ``chain`` provide the element types; this function determines which of them are repeated.
    """
    if destination.size == 0:
        return
    tensors = [destination, *(s.expand(destination.shape) for s in sources)]
    sizes, strides = collapse(tensors)
    spread = [s[-1] == 0 for s in strides[1:]]
    strided = any(s[-1] not in (0, 1) for s in strides) or strides[0][-1] != 1
    start, *operands = (Operand(t.dtype, flag) for t, flag in zip(tensors[1:], spread))
    outer = max(0, len(sizes) - 2)
    if len(sizes) == 1:  # a single long row is cut into several, so that threads can share the work
        length = sizes[0]
        rows = _equal_rows(length)
        sizes = [rows, length // rows]
        strides = [[s[0] * sizes[1], s[0]] for s in strides]
    rows, length = sizes[-2:]
    row_block = smallest(rows, largest(1, _ITEM_ELEMENTS // length))
    items = -(-rows // row_block) * prod(sizes[:-2])
    kernel = Elementwise(Chain(start, tuple(operands), chain.steps), outer, strided)
    params = Elementwise.params(sizes, strides, row_block)
    grain = largest(1, _ITEM_ELEMENTS // (row_block * length))
    emitter.step(
        kernel, tensors, params, items, grain, flops=chain.cost * destination.size,
        label="elementwise" if chain.steps else "copy", overwrites=_overwritable(tensors), streams=True,
    )  # fmt: skip


@computed
def _equal_rows(length: int) -> int:
    """Return the number of rows of equal length that a long row is cut into, none much shorter than a work item."""
    return next((rows for rows in range(length // _ITEM_ELEMENTS, 1, -1) if length % rows == 0), 1)


def _overwritable(tensors: Sequence[Tensor]) -> list[int]:
    """Return the positions of the operands of an element-wise step whose memory the result, ``tensors[0]``, may reuse.

    The result and the operand must each occupy a whole arena storage and have the same strides, offset and size.
    """
    result = tensors[0]

    def has_layout_of_result(tensor: Tensor) -> bool:
        return (tensor.strides, tensor.offset, tensor.bytes) == (result.strides, result.offset, result.bytes)

    def fills_storage(tensor: Tensor) -> bool:
        return tensor.storage.in_arena and tensor.bytes == tensor.storage.bytes

    if not fills_storage(result):
        return []
    return [
        i
        for i, tensor in enumerate(tensors)
        if i and fills_storage(tensor) and all(has_layout_of_result(t) for t in tensors if t.storage is tensor.storage)
    ]
