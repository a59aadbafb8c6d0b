"""The operands of 8-bit products: packed weights and zero points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core.ir import DType, Value
from lite_cpu.dot_panels import DotPanels, Matrices
from lite_cpu.kernels.integer_dots import INT16_PAIRS, DotForm, byte_form, is_x86, packed_size
from lite_cpu.kernels.packing_int8 import PackInt8
from lite_cpu.kernels.tiles import gemm_tile
from lite_cpu.lowering.context import Lowering
from lite_cpu.tensors import Tensor

__all__ = [
    "RightSide",
    "choose_form",
    "is_single",
    "pack_at_run_time",
    "pack_known",
    "subtract_zero_point",
    "zero_point",
]

Array = np.ndarray[Any, Any]

#: The largest absolute weight whose products with two bytes fit 16 bits when they are added.
_SEVEN_BITS = 64


@dataclass(frozen=True, slots=True)
class RightSide:
    """The right matrices: packed panels [batches, n], and the sums of their columns [batches, columns]."""

    form: DotForm
    panels: Tensor
    sums: Tensor


def is_single(value: Value | None) -> bool:
    """Return True if a scale or a zero point is a single number or left out."""
    return value is None or value.shape in ((), (1,))


def subtract_zero_point(w: Array, zero: Array | None) -> Array:
    """Return ``w - zero`` in int16, which cannot overflow."""
    return np.asarray(w.astype(np.int16) if zero is None else w.astype(np.int16) - zero.astype(np.int16))


def choose_form(lowering: Lowering, x: DType, w: Value, zero: Value | None, zero_shape: tuple[int, ...]) -> DotForm:
    """Choose 8-bit dot products if the machine has them and the weights minus their zero point fit into 8 bits.

    x86 processors without them multiply bytes by weights of at most 7 bits.

    Args:
        lowering: the lowering context.
        x: the element type of the left matrix.
        w: the weights.
        zero: their zero point, or None.
        zero_shape: the shape in which it broadcasts to the weights.
    """
    bytes_ = byte_form(lowering.machine, x)
    array, point = lowering.known(w), lowering.known(zero)
    if zero is not None and point is None:
        return INT16_PAIRS
    middle = 0 if w.dtype is DType.INT8 else 128
    if bytes_ is not None and np.all((0 if point is None else point) == middle):
        return bytes_
    if array is None or (bytes_ is None and not is_x86(lowering.machine)):
        return INT16_PAIRS
    difference = subtract_zero_point(array, None if point is None else point.reshape(zero_shape))
    lowest, highest = difference.min(initial=0), difference.max(initial=0)
    if bytes_ is None:
        return DotForm(DType.UINT8, DType.INT8) if lowest >= -_SEVEN_BITS and highest <= _SEVEN_BITS else INT16_PAIRS
    return bytes_ if lowest >= -128 and highest <= 127 else INT16_PAIRS


def pack_known(lowering: Lowering, w: Array, zero: Array | None, form: DotForm, matrices: Matrices) -> RightSide:
    """Pack constant weights, once in the process.

    Args:
        lowering: the lowering context.
        w: the weights.
        zero: their zero point, or None.
        form: the form of dot product that multiplies them.
        matrices: the weights as matrices.
    """
    lanes, (_, vectors) = lowering.machine.lanes(), gemm_tile(lowering.machine)
    sources = [w] if zero is None else [w, zero]
    layout = DotPanels(matrices, form.right, form.group, lanes, vectors)

    def sums() -> Array:
        differences = np.subtract(matrices.of(w), matrices.zeros(w, zero), dtype=np.int16)
        return np.asarray(differences.sum((1, 2), dtype=np.int32))

    panels = lowering.packed(("int8 panels", layout), sources, lambda: layout.pack(*sources), layout)
    return RightSide(form, panels, lowering.packed(("int8 sums", matrices), sources, sums))


def pack_at_run_time(lowering: Lowering, b: Tensor, zero: Tensor, form: DotForm) -> RightSide:
    """Emit a step that packs ``b`` [batches, runs, depth, columns]; ``zero`` is [batches, columns], of any strides."""
    batches, runs, depth, columns = b.shape
    lanes, (_, vectors) = lowering.machine.lanes(), gemm_tile(lowering.machine)
    size = packed_size(form, runs, depth, columns, lanes)
    panels = lowering.allocate((batches, size), form.right)
    sums = lowering.allocate((batches, columns), DType.INT32)
    zero_strides = (zero.strides[0], zero.strides[1])
    lowering.step(
        PackInt8(b.dtype, form), [b, zero, panels, sums], PackInt8.params(b.shape, b.strides, zero_strides, size),
        batches * -(-columns // (lanes * vectors)),
    )  # fmt: skip
    return RightSide(form, panels, sums)


def zero_point(lowering: Lowering, zero: Value | None, dtype: DType) -> Tensor:
    """Return a zero point as a tensor; 0 if it is left out."""
    return lowering.constant(np.zeros((), dtype.numpy)) if zero is None else lowering.tensor(zero)
