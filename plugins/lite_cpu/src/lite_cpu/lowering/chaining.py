"""Chains of element-wise operators as steps of their own: how they walk strided tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lite_cpu.chains import Chain, Operand
from lite_cpu.kernels.elementwise import Elementwise
from lite_cpu.lowering.steps import StepEmitter
from lite_cpu.tensors import Tensor, collapse

__all__ = ["run_chain"]

#: Elements that one work item of a light kernel should have at least: below, handing it out costs more.
_ITEM_ELEMENTS = 8192


def run_chain(emitter: StepEmitter, chain: Chain, sources: Sequence[Tensor], destination: Tensor) -> None:
    """Run a chain over all elements; sources are broadcast to the destination's shape.

    The operands of ``chain`` give the element types; which of them repeat is found here.
    """
    if destination.size == 0:
        return
    tensors = [destination, *(s.expand(destination.shape) for s in sources)]
    sizes, strides = collapse(tensors)
    spread = [s[-1] == 0 for s in strides[1:]]
    strided = any(s[-1] not in (0, 1) for s in strides) or strides[0][-1] != 1
    start, *operands = (Operand(t.dtype, flag) for t, flag in zip(tensors[1:], spread))
    outer = max(0, len(sizes) - 2)
    if len(sizes) == 1:  # one long row: cut it into several, so that threads can share it
        length = sizes[0]
        rows = max(1, length // _ITEM_ELEMENTS)
        while rows > 1 and length % rows:
            rows -= 1
        sizes = [rows, length // rows]
        strides = [[s[0] * sizes[1], s[0]] for s in strides]
    rows, length = sizes[-2:]
    row_block = min(rows, max(1, _ITEM_ELEMENTS // length))
    items = -(-rows // row_block) * prod(sizes[:-2])
    kernel = Elementwise(Chain(start, tuple(operands), chain.steps), outer, strided)
    params = Elementwise.params(sizes, strides, row_block)
    grain = max(1, _ITEM_ELEMENTS // (row_block * length))
    emitter.step(
        kernel, tensors, params, items, grain, flops=chain.cost * destination.size,
        label="elementwise" if chain.steps else "copy", overwrites=_replaceable(tensors),
    )  # fmt: skip


def _replaceable(tensors: Sequence[Tensor]) -> list[int]:
    """Which operands of an element-wise step (after the result) lie in memory of their own just as the result does."""
    result = tensors[0]

    def lies_alike(tensor: Tensor) -> bool:
        return (tensor.strides, tensor.offset, tensor.bytes) == (result.strides, result.offset, result.bytes)

    def is_alone(tensor: Tensor) -> bool:
        return tensor.storage.in_arena and tensor.bytes == tensor.storage.bytes

    if not is_alone(result):
        return []
    return [
        i
        for i, tensor in enumerate(tensors)
        if i and is_alone(tensor) and all(lies_alike(t) for t in tensors if t.storage is tensor.storage)
    ]
