"""Lowering of ArgMax, ArgMin, TopK, Mode and CumSum."""

from __future__ import annotations

from dataclasses import replace

from lite_compiler.fusion import Group
from lite_compiler.tensors import memory_order
from lite_core.ir import DType
from lite_core.ops import attributes_of
from lite_cpu.kernels.arg import ArgExtreme
from lite_cpu.kernels.mode import Mode
from lite_cpu.kernels.rows import Vectors
from lite_cpu.kernels.scan import RunningSum
from lite_cpu.kernels.top_k import TopK
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.indices import check_indices
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.rows import along_axes, plan_rows
from lite_cpu.lowering.shape import required_input
from lite_cpu.tensors import Tensor


@lowers("ArgMax", "ArgMin")
def arg_extreme(lowering: Lowering, group: Group) -> None:
    """Emit the search for the index of the largest or smallest element along an axis."""
    node, y = group.head, group.output
    attributes = attributes_of(node)
    source = lowering.tensor(required_input(node))
    axis = attributes["axis"] % source.rank
    target = lowering.target(y)
    if not target.size:
        return
    with_axis = target if attributes["keepdims"] else _with_axis(target, axis)
    tensors = [source, along_axes(with_axis, source.shape, [axis])]
    plan = plan_rows(lowering, tensors, [axis])
    kernel = ArgExtreme(plan.layout, node.op == "ArgMax", bool(attributes["select_last_index"]))
    lowering.step(kernel, tensors, plan.params, plan.tasks, plan.grain, flops=source.size, label=node.op)


def _with_axis(tensor: Tensor, axis: int) -> Tensor:
    """Return the tensor with a dimension of size 1 inserted."""
    shape, strides = list(tensor.shape), list(tensor.strides)
    shape.insert(axis, 1)
    strides.insert(axis, 0)
    return replace(tensor, shape=tuple(shape), strides=tuple(strides))


@lowers("TopK")
def top_k(lowering: Lowering, group: Group) -> None:
    """Emit the selection of the k largest or smallest elements along an axis, with their indices."""
    node = group.head
    attributes = attributes_of(node)
    source = lowering.tensor(required_input(node))
    axis = attributes["axis"] % source.rank
    values, indices = (_result(lowering, source, axis, group, i) for i in (0, 1))
    count = next(v.shape[axis] for v in node.outputs if v is not None)
    tensors = [source, *(replace(t, shape=source.shape) for t in (values, indices))]
    if not count:
        return
    plan = plan_rows(lowering, tensors, [axis], vectors=())
    lowering.step(
        TopK(plan.layout, bool(attributes["largest"])),
        tensors,
        [*plan.params, count, int(count).bit_length()],
        plan.tasks,
        plan.grain,
        flops=source.size,
        scratch_bytes=TopK.scratch_bytes(count),
    )


def _result(lowering: Lowering, source: Tensor, axis: int, group: Group, number: int) -> Tensor:
    """Return the destination of an output of TopK; unused outputs get temporary memory."""
    outputs = group.head.outputs
    value = outputs[number] if number < len(outputs) else None
    if value is not None:
        return lowering.target(value)
    shape = list(source.shape)
    shape[axis] = next(v.shape[axis] for v in outputs if v is not None)
    return lowering.allocate(shape, DType.INT64 if number else source.dtype)


@lowers("lite.Mode")
def mode(lowering: Lowering, group: Group) -> None:
    """Emit the search for the most frequent element along an axis, and its index."""
    node = group.head
    source = lowering.tensor(required_input(node))
    axis = attributes_of(node)["axis"] % source.rank
    kept = (*source.shape[:axis], *source.shape[axis + 1 :])
    types = (source.dtype, DType.INT64)
    given = [*node.outputs, None][:2]
    results = [lowering.allocate(kept, t) if v is None else lowering.target(v) for v, t in zip(given, types)]
    if not source.size:
        return
    tensors = [source, *(along_axes(_with_axis(result, axis), source.shape, [axis]) for result in results)]
    plan, count = plan_rows(lowering, tensors, [axis], vectors=()), source.shape[axis]
    lowering.step(
        Mode(plan.layout),
        tensors,
        [*plan.params, count],
        plan.tasks,
        plan.grain,
        flops=source.size,
        scratch_bytes=Mode.scratch_bytes(count),
    )


@lowers("CumSum")
def running_sum(lowering: Lowering, group: Group) -> None:
    """Emit sums along an axis.

    If the model computes the axis, there is one step for each axis, and only the step of that axis takes effect.
    """
    axis = required_input(group.head, 1)
    source = lowering.tensor(required_input(group.head))
    target = lowering.target(group.output, memory_order(source))
    known = lowering.known(axis)
    check_indices(lowering, group.head, (source.rank,))
    if not source.size:
        return
    if known is not None or source.rank == 1:
        _sum_along(lowering, group, source, target, 0 if known is None else int(known.reshape(-1)[0]) % source.rank)
        return
    for number in range(source.rank):
        _sum_along(lowering, group, source, target, number, lowering.tensor(axis))


def _sum_along(
    lowering: Lowering, group: Group, source: Tensor, target: Tensor, axis: int, wanted: Tensor | None = None
) -> None:
    """Emit sums along ``axis``; with ``wanted``, the step does nothing unless the run computes this axis."""
    attributes = attributes_of(group.head)
    tensors = [source, target]
    if attributes["reverse"]:
        last = source.shape[axis] - 1
        tensors = [t.slice(axis, last, last + 1, -1) for t in tensors]
    plan = plan_rows(lowering, tensors, [axis], vectors=[Vectors.ACROSS])
    kernel = RunningSum(plan.layout, bool(attributes["exclusive"]), None if wanted is None else wanted.dtype)
    params = plan.params if wanted is None else [*plan.params, axis, source.rank]
    pointers = tensors if wanted is None else [*tensors, wanted]
    lowering.step(kernel, pointers, params, plan.tasks, plan.grain, flops=source.size)
