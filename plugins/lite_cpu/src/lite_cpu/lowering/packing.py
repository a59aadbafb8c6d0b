"""Packing of the second operand of matrix products into panels: constants once, other values in every run."""

from __future__ import annotations

from collections.abc import Hashable
from math import prod
from typing import Any

import numpy as np

from lite_compiler.tracing.numbers import largest, smallest
from lite_core.ir import DType, PanelLayout
from lite_cpu.kernels.packing import Contiguous, Pack
from lite_cpu.kernels.tiles import gemm_tile, pack_panels
from lite_cpu.lowering.context import Lowering
from lite_cpu.machine import Machine
from lite_cpu.panel_preparation import prepare_panels
from lite_cpu.tensors import Tensor

__all__ = ["pack_at_run_time", "pack_constant", "panel_elements"]

Array = np.ndarray[Any, Any]

#: Minimum number of elements of a work item.
_ITEM_ELEMENTS = 8192


def panel_elements(machine: Machine, depth: int, columns: int) -> int:
    """Return the number of elements in the panels of one matrix, whose columns are padded to whole vectors."""
    lanes = machine.lanes()
    return depth * -(-columns // lanes) * lanes


def pack_constant(
    lowering: Lowering, array: Array, *, transposed: bool = False, scale: float = 1.0, dtype: DType = DType.FLOAT32
) -> Tensor:
    """Pack a constant [..., depth, columns], multiplied by ``scale``, once in the process.

    Args:
        lowering: the lowering context.
        array: float32, or 16-bit floats, which are widened; all dimensions before the last two are batches. A vector
            counts as one row.
        transposed: True if ``array`` is [..., columns, depth].
        scale: multiplies every element.
        dtype: the floating-point type that the panels are rounded to.

    Returns:
        [batches, n], see :func:`~lite_cpu.kernels.tiles.pack_panels`; a single column is not packed.
    """
    lanes, (_, vectors) = lowering.machine.lanes(), gemm_tile(lowering.machine)
    key: Hashable = ("matrix", transposed, scale, dtype, lanes, vectors)
    stacked = array.reshape(prod(array.shape[:-2]), *(1, *array.shape)[-2:])
    order = (0, 2, 1) if transposed else (0, 1, 2)
    depth, columns = stacked.transpose(order).shape[1:]
    is_exact = scale == 1 and array.dtype == dtype.numpy == np.float32 and columns > 1 and array.size
    layout = PanelLayout(stacked.shape, order, depth, columns, lanes * vectors, lanes) if is_exact else None

    def pack() -> Array:
        matrices: Array = stacked.transpose(order)
        matrices = matrices if scale == 1 else np.multiply(matrices, np.float32(scale), dtype=np.float32)
        if layout is not None:
            return prepare_panels(lowering.library, matrices)
        packed: Array = matrices[:, :, 0] if matrices.shape[2] == 1 else pack_panels(matrices, lanes, vectors)
        rounded: Array = packed.astype(dtype.numpy, copy=False)
        return rounded

    return lowering.packed(key, [array], pack, layout)


def pack_at_run_time(lowering: Lowering, b: Tensor) -> Tensor:
    """Emit a step that packs ``b`` [batches, depth, columns] of any strides, 32 or 64 bits each, into panels.

    Returns:
        [batches, n], in the layout of :func:`~lite_cpu.kernels.tiles.pack_panels`.
    """
    batches, depth, columns = b.shape
    size = panel_elements(lowering.machine, depth, columns)
    packed = lowering.allocate((batches, size), b.dtype)
    if b.size == 0:
        return packed
    batch_stride, depth_stride, column_stride = b.strides
    width = lowering.machine.lanes() * gemm_tile(lowering.machine)[1]
    column_block = -(-largest(1, _ITEM_ELEMENTS // depth) // width) * width
    items = batches * -(-columns // column_block)
    element = DType.FLOAT32 if b.dtype.itemsize == 4 else b.dtype
    lowering.step(
        Pack(Contiguous.of(depth_stride, 1 if columns == 1 else column_stride), element),
        [b, packed],
        Pack.params(depth, columns, (batch_stride, depth_stride, column_stride), size, column_block),
        items,
        largest(1, _ITEM_ELEMENTS // (depth * smallest(columns, column_block))),
    )
    return packed
