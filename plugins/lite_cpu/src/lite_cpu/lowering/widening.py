"""Conversion of 16-bit floats to float32 for the parts of a kernel's input that it reads as float32."""

from __future__ import annotations

import numpy as np

from lite_compiler.chains import Apply
from lite_compiler.tensors import memory_order
from lite_core.ir import DType, Value
from lite_cpu.chains import Chain, Operand
from lite_cpu.lowering.context import Lowering
from lite_cpu.tensors import Tensor

__all__ = ["bias_of", "widened", "widened_value"]

F32 = DType.FLOAT32


def widened(lowering: Lowering, tensor: Tensor) -> Tensor:
    """Return a tensor of floats as float32: the tensor itself, or a copy that a step of the program makes."""
    if not tensor.dtype.is_half:
        return tensor
    copy = lowering.allocate(tensor.shape, F32, memory_order(tensor))
    cast = Apply("Cast", (0,), F32, (("to", F32),))
    lowering.elementwise(Chain(Operand(tensor.dtype), (), (cast,)), [tensor], copy)
    return copy


def widened_value(lowering: Lowering, value: Value) -> Value:
    """Return a value of floats as one of float32; known elements are converted before the run."""
    if not value.dtype.is_half:
        return value
    wide = Value(value.name, value.type.with_dtype(F32))
    array = lowering.known(value)
    if array is None:
        lowering.bind(wide, widened(lowering, lowering.tensor(value)))
    else:
        lowering.set_known(wide, lowering.weights.derived("float32", array, lambda a: a.astype(np.float32)))
    return wide


def bias_of(lowering: Lowering, bias: Value | None, columns: int) -> Tensor:
    """Return a bias as a dense tensor of float32; zeros if there is none."""
    if bias is None:
        return lowering.packed(("zeros", columns), [], lambda: np.zeros(columns, np.float32))
    return lowering.dense(lowering.tensor(widened_value(lowering, bias)))
