"""Lowering of Conv on channels-last data: depthwise, depthwise fused with the pointwise Conv after it, or dense."""

from __future__ import annotations

from dataclasses import replace

from lite_compiler.fusion import Group
from lite_core.ir import DType, Node
from lite_cpu.lowering.context import Lowering, channels_last_order
from lite_cpu.lowering.convolution_task import Convolution
from lite_cpu.lowering.dense import dense
from lite_cpu.lowering.depthwise import depthwise, is_depthwise
from lite_cpu.lowering.depthwise_pointwise import depthwise_pointwise
from lite_cpu.lowering.filters import filters_of
from lite_cpu.lowering.pairs import reads_pairs
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.widening import bias_of
from lite_cpu.lowering.window import Window, as_image, cached_window
from lite_cpu.tensors import Tensor

__all__ = ["refuse_convolution", "task_of"]


def refuse_convolution(node: Node) -> str | None:
    """Return the reason why a Conv or ConvTranspose cannot be run, or None."""
    x, weights = node.inputs[:2]
    assert x is not None
    assert weights is not None
    if x.dtype is not DType.FLOAT32 and not (x.dtype.is_half and node.op == "Conv"):
        return f"{node.op} of {x.dtype}: the CPU kernels compute in float32"
    shape = weights.shape if x.shape is None else x.shape  # of one rank
    if shape is None or len(shape) not in (3, 4):
        return f"{node.op} over other than one or two spatial dimensions"
    return None


@lowers("Conv", refuse=refuse_convolution, epilogue=True)
def convolution(lowering: Lowering, group: Group) -> None:
    """Choose an algorithm for a convolution and emit it."""
    x = group.head.inputs[0]
    assert x is not None
    target = lowering.target(group.output, channels_last_order(len(group.output.shape)))
    if not target.is_channels_last:
        target = lowering.allocate(target.shape, target.dtype, channels_last_order(target.rank))
    if group.producer is not None:
        depthwise_pointwise(lowering, group, as_image(target))
    else:
        window = cached_window(lowering, group.head)
        source, image = as_image(lowering.tensor(x)), as_image(target)
        if is_depthwise(lowering, group, window):
            depthwise(lowering, group, window, source, image)
        else:
            filters = filters_of(lowering, group.head, window.groups)
            task = task_of(lowering, group, window, source, image)
            dense(lowering, replace(task, unit=filters.unit(lowering)) if task.halves else task, filters)
    bound = lowering.tensor(group.output)
    if bound.storage is not target.storage:
        lowering.copy(target, bound)


def task_of(lowering: Lowering, group: Group, window: Window, source: Tensor, target: Tensor) -> Convolution:
    """Describe the convolution of a group, with the bias of its head and its tail as the epilogue."""
    _, _, *bias = group.head.inputs
    epilogue, operands = lowering.epilogue(group, group.output.shape, axis=1)
    columns = target.shape[1]
    biases = lowering.cached(group.head, "bias", lambda: bias_of(lowering, bias[0] if bias else None, columns))
    images = tuple(as_image(tensor) for tensor in operands)
    pairs, halves = reads_pairs(lowering, group.input(0)), source.dtype is DType.FLOAT16
    return Convolution(window, source, target, biases, epilogue, images, pairs, halves)
