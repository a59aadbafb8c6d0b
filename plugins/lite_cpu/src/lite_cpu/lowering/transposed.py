"""Lowering of ConvTranspose: each phase of the output is a small convolution of stride 1, written to a strided view.

Output row ``y`` is computed from the taps ``k`` for which ``y + pad - k * dilation`` is a multiple of the stride. The
rows with equal remainders form a *phase*. They use the same taps at the same distances, so a phase is a dense
convolution with those taps in reverse (Shi et al., "Is the deconvolution layer the same as a convolutional layer?",
2016).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import gcd
from typing import Any

import numpy as np

from lite_compiler.fusion import Group
from lite_core import ops
from lite_core.ir import Node
from lite_core.ops.helpers import windows_of
from lite_cpu.chains import Chain
from lite_cpu.kernels.tiles import gemm_tile, pack_panels
from lite_cpu.lowering.context import Lowering, channels_last_order
from lite_cpu.lowering.convolution import refuse_convolution, task_of
from lite_cpu.lowering.convolution_task import Convolution
from lite_cpu.lowering.dense import dense, pointwise
from lite_cpu.lowering.filters import Filters, filters_of
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.window import Window, as_image
from lite_cpu.tensors import Tensor

Array = np.ndarray[Any, Any]

_ONE_PIXEL = Window((1, 1), (1, 1), (1, 1), (0, 0), (0, 0), 1)


@dataclass(frozen=True, slots=True)
class _Axis:
    """One spatial dimension of a transposed convolution.

    Attributes:
        kernel: number of taps.
        stride: distance between the outputs of neighbouring inputs.
        dilation: distance between the outputs of neighbouring taps.
        begin: number of outputs cut off at the start.
    """

    kernel: int
    stride: int
    dilation: int
    begin: int


@dataclass(frozen=True, slots=True)
class _Phase:
    """Outputs ``first``, ``first + stride``, ... of one dimension as a convolution of stride 1.

    Attributes:
        first: the first output.
        count: the number of outputs.
        tap: the tap of the filter for the first input; the other taps have lower indices.
        step: the distance between taps.
        taps: the number of taps; 0 if the outputs are only the bias.
        dilation: the distance between the inputs of neighbouring taps.
        offset: the input under the first tap of the first output; negative in the padding.
    """

    first: int
    count: int
    tap: int
    step: int
    taps: int
    dilation: int
    offset: int


@lowers("ConvTranspose", refuse=refuse_convolution, epilogue=True)
def transposed_convolution(lowering: Lowering, group: Group) -> None:
    """Emit a transposed convolution."""
    x = group.head.inputs[0]
    assert x is not None
    target = lowering.target(group.output, channels_last_order(len(group.output.shape)))
    if not target.is_channels_last:
        target = lowering.allocate(target.shape, target.dtype, channels_last_order(target.rank))
    source, image = as_image(lowering.tensor(x)), as_image(target)
    axes, groups = _axes_of(group.head)
    filters = filters_of(lowering, group.head, groups, transposed=True)
    task = task_of(lowering, group, replace(_ONE_PIXEL, groups=groups), source, image)
    if image.size:
        bias = _known_bias(lowering, group.head, image.shape[1])
        if bias is not None and _is_disjoint(task, axes, filters):
            _disjoint(lowering, task, axes, filters, bias)
        else:
            _by_phases(lowering, task, axes, filters)
    bound = lowering.tensor(group.output)
    if bound.storage is not target.storage:
        lowering.copy(target, bound)


def _axes_of(node: Node) -> tuple[tuple[_Axis, _Axis], int]:
    """Return the spatial dimensions of a node whose shapes are known, height first, and its number of groups."""
    axes = [_Axis(a.kernel, a.stride, a.dilation, a.begin) for a in windows_of(node)]
    down, across = axes if len(axes) == 2 else (_Axis(1, 1, 1, 0), axes[0])
    return (down, across), ops.attributes_of(node)["group"]


def _known_bias(lowering: Lowering, node: Node, columns: int) -> Array | None:
    """Return the bias, or zeros if the node has none; None if the bias is computed during the run."""
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    return np.zeros(columns, np.float32) if bias is None else lowering.known(bias)


def _phases(axis: _Axis, size: int) -> list[_Phase]:
    """Return the phases of a dimension with ``size`` outputs."""
    step = axis.stride // gcd(axis.stride, axis.dilation)
    phases = []
    for first in range(min(axis.stride, size)):
        position = first + axis.begin
        taps = [k for k in range(axis.kernel) if (position - k * axis.dilation) % axis.stride == 0]
        last = taps[-1] if taps else 0
        offset = (position - last * axis.dilation) // axis.stride
        count = -(-(size - first) // axis.stride)
        phases.append(_Phase(first, count, last, step, len(taps), step * axis.dilation // axis.stride, offset))
    return phases


def _by_phases(lowering: Lowering, task: Convolution, axes: tuple[_Axis, _Axis], filters: Filters) -> None:
    """Emit one convolution for each pair of phases."""
    for down in _phases(axes[0], task.target.shape[2]):
        for across in _phases(axes[1], task.target.shape[3]):
            view, source = filters.view, task.source
            pairs = (down, across)
            if down.taps and across.taps:
                for axis, phase in zip((3, 4), pairs):
                    view = view.slice(axis, phase.tap, phase.taps, -phase.step)
                # Inputs before the first tap are cut off, so that a window begins in the padding or at the first input.
                for axis, phase in zip((2, 3), pairs):
                    cut = min(max(0, phase.offset), source.shape[axis])
                    source = source.slice(axis, cut, source.shape[axis] - cut)
                begin = (max(0, -down.offset), max(0, -across.offset))
                kernel, dilations = (down.taps, across.taps), (down.dilation, across.dilation)
            else:
                # These outputs have no taps: a product over no channels yields the bias.
                view, source = view.slice(2, 0, 0).slice(3, 0, 1).slice(4, 0, 1), source.slice(1, 0, 0)
                begin, kernel, dilations = (0, 0), (1, 1), (1, 1)
            covered = [
                (phase.count - 1) + (n - 1) * d + 1 - b - size
                for phase, n, d, b, size in zip(pairs, kernel, dilations, begin, source.shape[2:])
            ]
            end = (max(0, covered[0]), max(0, covered[1])) if source.shape[1] else (0, 0)
            window = Window(kernel, (1, 1), dilations, begin, end, task.window.groups)

            def phase_of(tensor: Tensor, down: _Phase = down, across: _Phase = across) -> Tensor:
                rows = tensor.slice(2, down.first, down.count, axes[0].stride)
                return rows.slice(3, across.first, across.count, axes[1].stride)

            part = replace(
                task,
                window=window,
                source=source,
                target=phase_of(task.target),
                operands=tuple(phase_of(tensor) for tensor in task.operands),
            )
            dense(lowering, part, replace(filters, view=view))


def _is_disjoint(task: Convolution, axes: tuple[_Axis, _Axis], filters: Filters) -> bool:
    """Return True if every output has one tap, and rows of the filter can be the columns of one product."""
    one_tap = all(axis.kernel == axis.stride and axis.dilation == 1 and axis.begin == 0 for axis in axes)
    sizes = tuple(n * axis.stride for n, axis in zip(task.source.shape[2:], axes))
    return (
        one_tap
        and sizes == task.target.shape[2:]
        and task.window.groups == 1
        and not task.operands
        and filters.source is not None
        and task.target.strides[3] == task.target.shape[1]
    )


def _disjoint(lowering: Lowering, task: Convolution, axes: tuple[_Axis, _Axis], filters: Filters, bias: Array) -> None:
    """Emit one product for each row of the filter; its columns are (pixel, channel), contiguous in the output row."""
    lanes, (_, vectors) = lowering.machine.lanes(), gemm_tile(lowering.machine)
    (down, across), target = axes, task.target
    pixels, channels = across.kernel, target.shape[1]
    # With few columns, most lanes of a fused epilogue would be empty, so it becomes a separate step.
    is_separate = bool(task.epilogue.steps) and 2 * pixels * channels <= lanes
    epilogue = Chain(task.epilogue.start) if is_separate else task.epilogue
    if is_separate:
        target = lowering.allocate(target.shape, task.epilogue.start.dtype, channels_last_order(4))
    batch, _, height, width = task.source.shape
    n, c, h, w = target.strides
    repeated = lowering.constant(np.tile(bias, pixels))

    def pack(elements: Array, row: int) -> Array:
        matrix = elements[0, :, :, row].transpose(1, 2, 0)  # [depth, pixel, channel]
        return pack_panels(matrix.reshape(1, -1, pixels * channels), lanes, vectors)

    for row in range(down.kernel):
        weights = filters.packed(lowering, ("transposed", row, lanes, vectors), partial(pack, row=row))
        row_target = replace(
            target,
            shape=(batch, pixels * channels, height, width),
            strides=(n, c, down.stride * h, across.stride * w),
            offset=target.offset + row * h,
        )
        pointwise(lowering, replace(task, target=row_target, bias=repeated, epilogue=epilogue), weights)
    if is_separate:
        lowering.elementwise(task.epilogue, [target], task.target)
