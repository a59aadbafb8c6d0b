"""Lowering of MatMulInteger, fused with the element-wise nodes after it."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from lite_compiler.fusion import Group
from lite_compiler.tensors import dense_strides
from lite_core.ir import Node
from lite_cpu.dot_panels import Matrices
from lite_cpu.kernels.int8_tiles import LeftSide
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.int8_operands import (
    RightSide,
    choose_form,
    is_single,
    pack_at_run_time,
    pack_known,
    zero_point,
)
from lite_cpu.lowering.int8_products import emit_int8_product
from lite_cpu.lowering.products import insert_axis, with_contiguous_rows
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import input_of, required_input
from lite_cpu.tensors import Tensor

__all__ = ["refuse_matmul_integer"]


def refuse_matmul_integer(node: Node) -> str | None:
    """Return the reason why an integer product cannot be run, or None."""
    b, zero = (node.inputs[3], node.inputs[5]) if node.op == "QLinearMatMul" else (node.inputs[1], input_of(node, 3))
    assert b is not None
    if b.shape is not None and len(b.shape) == 1 and not is_single(zero):
        return f"{node.op} of a vector on the right with a zero point for each element"
    return None


@lowers("MatMulInteger", refuse=refuse_matmul_integer, epilogue=True)
def matmul_integer(lowering: Lowering, group: Group) -> None:
    """Emit a product of stacks of 8-bit matrices, which broadcast as in MatMul."""
    node = group.head
    left, right = required_input(node), required_input(node, 1)
    vectors = (len(left.shape) == 1, len(right.shape) == 1)
    shape = tuple(group.output.shape) or (1,)
    epilogue, others = lowering.epilogue(group, shape, len(shape) - 1)
    target = lowering.target(group.output)
    if target.size == 0:
        return

    def as_matrix(tensor: Tensor) -> Tensor:
        """Return a view with the dimensions that the result lacks because an operand is a vector."""
        tensor = replace(tensor, shape=shape, strides=tensor.strides or (1,))
        if vectors[0]:
            return insert_axis(tensor, tensor.rank - 1)
        return insert_axis(tensor, tensor.rank) if vectors[1] else tensor

    c = as_matrix(target)
    written = c if c.strides[-1] == 1 or c.shape[-1] == 1 else lowering.allocate(c.shape, c.dtype)
    loops = written.shape[:-1]
    a = with_contiguous_rows(lowering, insert_axis(lowering.tensor(left), 0) if vectors[0] else lowering.tensor(left))
    packed, batch_strides = _matmul_weights(lowering, node, loops[:-1])
    zero = input_of(node, 2)
    points = zero_point(lowering, zero, left.dtype)
    if points.rank > 1:  # [..., rows, 1]
        points = replace(points, shape=points.shape[:-1], strides=points.strides[:-1])
    row_points = replace(points, shape=(), strides=()) if is_single(zero) else points
    emit_int8_product(
        lowering, LeftSide(left.dtype, packed.form), epilogue, written, a.expand((*loops, a.shape[-1])),
        row_points.expand(loops), packed, (*batch_strides, 0), [as_matrix(t) for t in others],
    )  # fmt: skip
    if written is not c:
        lowering.copy(written, c)


def _matmul_weights(lowering: Lowering, node: Node, batch: tuple[int, ...]) -> tuple[RightSide, tuple[int, ...]]:
    """Pack the right matrices; also return their strides along the dimensions of ``batch``, in elements of panels."""
    value, zero = required_input(node, 1), input_of(node, 3)
    shape = tuple(value.shape) if len(value.shape) > 1 else (*value.shape, 1)
    *stack, depth, columns = shape
    zero_shape = () if zero is None or is_single(zero) else tuple(zero.shape)
    form = choose_form(lowering, required_input(node).dtype, value, zero, zero_shape)
    array, point = lowering.known(value), lowering.known(zero)
    if array is not None and (zero is None or point is not None):
        matrices = Matrices(shape, tuple(range(len(shape))), (prod(stack), 1, depth, columns), zero_shape)
        packed = pack_known(lowering, array, point, form, matrices)
    else:
        b = lowering.tensor(value)
        b = replace(b, shape=shape, strides=(*b.strides, 0) if b.rank == 1 else b.strides)
        flat = b.reshape((prod(stack), 1, depth, columns))
        if flat is None:
            flat = lowering.dense(b).reshape((prod(stack), 1, depth, columns))
        assert flat is not None
        points = zero_point(lowering, zero, value.dtype)
        points = lowering.dense(replace(points, shape=(), strides=()) if is_single(zero) else points)
        wide = (
            points.expand((*stack, columns))
            if points.rank < 2
            else replace(points, shape=(*stack, columns), strides=(*points.strides[:-2], points.strides[-1]))
        )
        wide = wide if wide.reshape((prod(stack), columns)) is not None else lowering.dense(wide)
        flat_points = wide.reshape((prod(stack), columns))
        assert flat_points is not None
        packed = pack_at_run_time(lowering, flat, flat_points, form)
    strides = tuple(packed.panels.shape[1] * s for s in dense_strides(stack))
    view = replace(packed.panels, shape=tuple(stack), strides=strides).expand(batch)
    return packed, view.strides
