"""Lowering of Softmax, LogSoftmax and Hardmax."""

from __future__ import annotations

from collections.abc import Callable

from lite_compiler.fusion import Group
from lite_compiler.tensors import memory_order
from lite_core.ir import DType, Node
from lite_core.ops import attributes_of
from lite_cpu.kernels.arg import Hardmax
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.rows import RowLayout
from lite_cpu.kernels.softmax import Softmax
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.rows import plan_rows
from lite_cpu.lowering.shape import required_input

#: Approximate floating-point operations for each element, for profiles.
_OPERATIONS = 20


def refuse_softmax(node: Node) -> str | None:
    dtype = required_input(node).dtype
    if dtype is DType.FLOAT32 or dtype.is_half:
        return None
    return f"{node.op} of {dtype}: the CPU kernels compute exponentials in float32"


@lowers("Softmax", "LogSoftmax", refuse=refuse_softmax)
def softmax(lowering: Lowering, group: Group) -> None:
    """Emit a softmax or its logarithm along an axis."""
    logarithm = group.head.op == "LogSoftmax"
    wide = group.output.dtype.is_half and not logarithm
    _along_axis(lowering, group, lambda layout: Softmax(layout, logarithm), wide=wide)


@lowers("Hardmax")
def hardmax(lowering: Lowering, group: Group) -> None:
    """Emit 1 at the first of the largest elements along an axis, 0 elsewhere."""
    _along_axis(lowering, group, Hardmax)


def _along_axis(lowering: Lowering, group: Group, kernel: Callable[[RowLayout], Kernel], *, wide: bool = False) -> None:
    node = group.head
    source = lowering.tensor(required_input(node))
    axis = attributes_of(node)["axis"] % source.rank
    target = lowering.target(group.output, memory_order(source))
    if not source.size:
        return
    tensors = [source, target]
    plan = plan_rows(lowering, tensors, [axis], wide=wide)
    lowering.step(
        kernel(plan.layout), tensors, plan.params, plan.tasks, plan.grain,
        flops=_OPERATIONS * source.size, label=node.op, scratch_bytes=plan.scratch_bytes,
    )  # fmt: skip
