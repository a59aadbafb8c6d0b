"""Products of bfloat16 on machines that multiply pairs of them: which nodes are, and their operands as pairs."""

from __future__ import annotations

from collections.abc import Container
from math import prod
from typing import Any

import numpy as np

from lite_core.ir import DType, Node, Value
from lite_cpu.dot_panels import DotPanels, Matrices, bfloat16_bits, pack_pairs
from lite_cpu.kernels.bfloat16_pairs import PAIR
from lite_cpu.kernels.direct import MOST_PLANES
from lite_cpu.kernels.tiles import gemm_tile
from lite_cpu.lowering.context import Lowering
from lite_cpu.machine import Machine
from lite_cpu.tensors import Tensor

__all__ = ["PRODUCTS", "as_pairs", "is_product_of_pairs", "pack_constant_pairs", "reads_pairs"]

Array = np.ndarray[Any, Any]

#: The operators that may be computed in pairs; they have no kernels for other 16-bit floats.
PRODUCTS = ("Conv", "Gemm", "MatMul")

_RECURRENT = ("GRU", "LSTM", "RNN")


def is_product_of_pairs(machine: Machine, node: Node, constants: Container[Value]) -> bool:
    """Return True if a node is a product that is computed in pairs if its first input is bfloat16.

    Args:
        machine: the processor.
        node: any node.
        constants: the values that are constants.
    """
    if not machine.bf16_dot or node.domain or node.op not in (*PRODUCTS, *_RECURRENT):
        return False
    x, w = node.inputs[:2]
    assert x is not None
    assert w is not None
    if x.dtype is DType.FLOAT16:
        return False
    if node.op == "Conv":
        # Depthwise convolutions have kernels of their own, which are limited by memory.
        channels, groups = x.shape[1] // node.attributes.get("group", 1), node.attributes.get("group", 1)
        even = channels % 2 == 0 or (groups == 1 and channels <= MOST_PLANES)
        return w in constants and len(x.shape) in (3, 4) and even and (channels > 1 or groups == 1)
    if node.op in _RECURRENT:
        recurrence = node.inputs[2]
        assert recurrence is not None
        return w in constants and recurrence in constants and x.shape[-1] % 2 == recurrence.shape[-1] % 2 == 0
    depth = x.shape[0] if node.attributes.get("transA", 0) else x.shape[-1]
    return bool(depth % 2 == 0 and depth)


def reads_pairs(lowering: Lowering, x: Value) -> bool:
    """Return True if the product whose first input is ``x`` is computed in pairs; others are widened before."""
    return x.dtype is DType.BFLOAT16 and lowering.machine.bf16_dot


def as_pairs(lowering: Lowering, tensor: Tensor, axis: int = -1, group: int = 2) -> Tensor:
    """Return a tensor of bfloat16 as one of pairs along an axis of even size, copied if its layout forbids it.

    The axis is contiguous in the result, so that all other strides count pairs. With a ``group`` of 4, an element is
    four of bfloat16, as uint64.
    """
    axis %= tensor.rank
    strides = [s for i, (n, s) in enumerate(zip(tensor.shape, tensor.strides)) if n > 1 and i != axis]
    if tensor.strides[axis] != 1 or tensor.offset % group or any(s % group for s in strides):
        copy = lowering.allocate(tensor.shape, tensor.dtype, [*(i for i in range(tensor.rank) if i != axis), axis])
        lowering.copy(tensor, copy)
        tensor = copy
    shape = tuple(n // group if i == axis else n for i, n in enumerate(tensor.shape))
    strides = [1 if i == axis else s // group for i, s in enumerate(tensor.strides)]
    return Tensor(tensor.storage, PAIR if group == 2 else DType.UINT64, shape, tuple(strides), tensor.offset // group)


def pack_constant_pairs(
    lowering: Lowering,
    array: Array,
    shape: tuple[int, ...],
    *,
    transposed: bool = False,
    scale: float = 1.0,
    group: int = 2,
) -> Tensor:
    """Pack constant matrices [..., depth, columns], multiplied by ``scale`` and rounded, once in the process.

    Args:
        lowering: the lowering context.
        array: the constant, floats.
        shape: the shape of the matrices; all dimensions before the last two are batches.
        transposed: True if ``array`` is [..., columns, depth].
        scale: multiplies every element.
        group: elements along the depth that are adjacent in a panel, 2 or 4.

    Returns:
        [batches, n], see :func:`~lite_cpu.dot_panels.pack_pairs`; a single column is not packed.
    """
    lanes, (_, vectors) = lowering.machine.lanes(), gemm_tile(lowering.machine)
    stacked = (prod(shape[:-2]), 1, *shape[-2:])
    order = (0, 1, 3, 2) if transposed else (0, 1, 2, 3)
    matrices = Matrices(stacked, order, tuple(stacked[i] for i in order), ())

    def scaled() -> Array:
        return matrices.of(array if scale == 1 else array.astype(np.float32) * np.float32(scale))

    if matrices.shape[-1] == 1:

        def column() -> Array:
            return np.ascontiguousarray(bfloat16_bits(scaled()[:, 0, :, 0])).view(np.uint32)

        return lowering.packed(("bfloat16 column", scale, matrices), [array], column)
    layout = DotPanels(matrices, DType.BFLOAT16, group, lanes, vectors)
    recipe = layout if scale == 1 else None
    return lowering.packed(
        ("bfloat16 panels", scale, layout), [array], lambda: pack_pairs(scaled(), lanes, vectors, group), recipe
    )
