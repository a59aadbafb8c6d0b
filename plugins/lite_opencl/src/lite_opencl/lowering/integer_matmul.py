"""MatMulInteger and QLinearMatMul: products of bytes with zero points, summed exactly in 32 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_compiler.fusion import Group
from lite_core.ir import DType, Value
from lite_opencl.lowering.chain_building import ChainBuilder
from lite_opencl.lowering.chaining import Epilogue
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.products import Matrices, emit_product
from lite_opencl.lowering.quantization import round_to, single
from lite_opencl.lowering.registry import lowers
from lite_opencl.tensors import Tensor

__all__ = ["matmul_integer", "qlinear_matmul"]

Array = np.ndarray[Any, Any]
I32 = DType.INT32


@lowers("MatMulInteger", epilogue=True)
def matmul_integer(lowering: Lowering, group: Group) -> None:
    """Lower MatMulInteger: ``(A - a_zero_point) @ (B - b_zero_point)``."""
    a, b = group.input(0), group.input(1)
    rows = _row_dimensions(group)
    _emit(lowering, group, (a, group.optional(2)), (b, group.optional(3)), lowering.epilogue(group, split=rows))


@lowers("QLinearMatMul", epilogue=False)
def qlinear_matmul(lowering: Lowering, group: Group) -> None:
    """Lower QLinearMatMul: the integer product, scaled and quantized again before it is stored."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (group.input(i) for i in range(8))
    shape, rows = group.output.shape, _row_dimensions(group)
    # NOTE: sums of more than 24 bits are rounded where the device has no float64.
    real = DType.FLOAT64 if lowering.device.double else DType.FLOAT32
    chain = ChainBuilder(I32)
    scaled = chain.cast(chain.start, real)
    for op, scale, per_row in (("Mul", a_scale, True), ("Mul", b_scale, False), ("Div", y_scale, True)):
        tensor = _per_row(lowering, scale) if per_row else _per_column(lowering, scale)
        factor = chain.cast(chain.operand(_of_result(tensor, a, b), scale.dtype), real)
        scaled = chain.apply(op, [scaled, factor], real)
    point = chain.operand(_of_result(_per_row(lowering, y_zero), a, b), y_zero.dtype)
    round_to(chain, scaled, point, group.output.dtype)
    epilogue = lowering.epilogue_of(*chain.built(), tuple(shape), split=rows)
    _emit(lowering, group, (a, a_zero), (b, b_zero), epilogue)


def _row_dimensions(group: Group) -> int:
    """Return the number of dimensions of the result that the product counts as rows."""
    product = group.head.outputs[0]
    right = group.input(3 if group.head.op == "QLinearMatMul" else 1)
    assert product is not None
    return len(product.shape) - (len(right.shape) > 1)


def _emit(
    lowering: Lowering,
    group: Group,
    left: tuple[Value, Value | None],
    right: tuple[Value, Value | None],
    epilogue: Epilogue,
) -> None:
    a = _without_zero_point(lowering, *left, per_row=True)
    b = _without_zero_point(lowering, *right, per_row=False)
    a = a.add_axis(0) if a.tensor.rank == 1 else a
    b = b.add_axis(1) if b.tensor.rank == 1 else b
    emit_product(lowering, a, b, lowering.target(group.output), epilogue)


def _without_zero_point(lowering: Lowering, value: Value, zero_point: Value | None, *, per_row: bool) -> Matrices:
    """Return an operand as 32-bit integers minus its zero point, computed before the run if both are known."""
    array = lowering.known(value)
    offset = lowering.known(zero_point) if zero_point is not None else np.zeros((), np.int32)
    if array is not None and offset is not None:
        shaped = offset.astype(np.int32)
        if shaped.size == 1:
            shaped = shaped.reshape(())
        elif per_row and shaped.ndim == 1:
            shaped = shaped[:, None]
        key = ("without zero point", shaped.shape, shaped.tobytes())
        return Matrices(_subtracted(lowering, key, array, shaped))
    chain = ChainBuilder(value.dtype)
    number = chain.cast(chain.start, I32)
    if zero_point is not None:
        tensor = _per_row(lowering, zero_point) if per_row else _per_column(lowering, zero_point)
        point = chain.operand(tensor, zero_point.dtype)
        chain.apply("Sub", [number, chain.cast(point, I32)])
    result = lowering.allocate(tuple(value.shape), I32)
    built, operands = chain.built()
    lowering.elementwise(built, lowering.tensor(value), operands, result)
    return Matrices(result)


def _subtracted(lowering: Lowering, key: Sequence[object], array: Array, offset: Array) -> Tensor:
    return lowering.constant(tuple(key), [array], lambda: array.astype(np.int32) - offset)


def _per_row(lowering: Lowering, parameter: Value) -> Tensor:
    """Return a scale or zero point of the left operand or the result; a vector has one number per row."""
    tensor = lowering.tensor(parameter)
    if tensor.size == 1:
        return single(tensor)
    return tensor.view((*tensor.shape, 1), (*tensor.strides, 0)) if tensor.rank == 1 else tensor


def _per_column(lowering: Lowering, parameter: Value) -> Tensor:
    """Return a scale or zero point of the right operand; a vector has one number per column."""
    tensor = lowering.tensor(parameter)
    return single(tensor) if tensor.size == 1 else tensor


def _of_result(tensor: Tensor, a: Value, b: Value) -> Tensor:
    """Return a parameter [..., rows, columns] of a product, without dimensions that the result does not have."""
    if tensor.rank == 0:
        return tensor
    axes = list(range(tensor.rank))
    if len(b.shape) == 1:
        axes = axes[:-1]
    if len(a.shape) == 1 and tensor.rank > 1:
        del axes[tensor.rank - 2]
    return tensor.view([tensor.shape[i] for i in axes], [tensor.strides[i] for i in axes])
