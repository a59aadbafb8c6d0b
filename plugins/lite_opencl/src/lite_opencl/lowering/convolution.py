"""Conv over one to three spatial dimensions."""

from __future__ import annotations

from functools import partial
from math import prod

from lite_compiler.fusion import Group
from lite_compiler.tournaments.choice import problem
from lite_core.ir import DType, Node
from lite_opencl.lowering.chaining import Epilogue
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.convolution_choice import Algorithm, winograd_algorithms
from lite_opencl.lowering.convolution_gemm import (
    Images,
    OutputGrid,
    as_images,
    emit_gemm,
    packed_type,
    pad_images,
)
from lite_opencl.lowering.depthwise import depthwise
from lite_opencl.lowering.filters import Filters, filters_of
from lite_opencl.lowering.registry import lowers
from lite_opencl.lowering.spatial_axes import Axis, convolution_axes
from lite_opencl.lowering.winograd import TAPS, winograd
from lite_opencl.tensors import Tensor

__all__ = ["bias_of", "convolution", "refuse_convolution", "window_images"]

#: The largest number of taps that a depthwise kernel unrolls.
_MAX_UNROLLED = 49


def refuse_convolution(node: Node) -> str | None:
    """Return the reason why a convolution of any kind is not supported, or None."""
    ranks = [v.type.rank for v in node.inputs[:2] if v is not None]
    return "it has more than three spatial dimensions" if any(r is None or r > 5 for r in ranks) else None


def bias_of(lowering: Lowering, group: Group, position: int = 2) -> Tensor | None:
    """Return the bias of a group's head, or None."""
    value = group.optional(position)
    return None if value is None else lowering.dense(lowering.tensor(value))


@lowers("Conv", refuse=refuse_convolution, epilogue=True)
def convolution(lowering: Lowering, group: Group) -> None:
    """Choose an algorithm for a convolution and emit it."""
    axes = convolution_axes(group.head)
    is_pointwise = all(axis.is_pointwise for axis in axes)  # always computed as a product
    target = lowering.target(group.output, OutputGrid.fits) if is_pointwise else lowering.target(group.output)
    grid = OutputGrid.all_of(target)
    if not target.size:
        return
    filters, source = filters_of(lowering, group), lowering.tensor(group.input(0))
    bias, epilogue = bias_of(lowering, group), lowering.epilogue(group, split=2)

    def emit(emitter: Lowering, algorithm: Algorithm) -> None:
        if algorithm.name == "winograd":
            winograd(emitter, algorithm.m, filters, source, target, axes, bias, epilogue)
            return
        images, tap_offsets = window_images(emitter, source, axes)
        if algorithm.name == "depthwise" and tap_offsets is not None:
            weights = emitter.dense(emitter.tensor(group.input(1)))
            depthwise(emitter, weights, images, target, tap_offsets, bias, epilogue)
            return
        _product(emitter, group, filters, images, tap_offsets, grid, axes[0].stride, bias, epilogue)

    groups, outputs, channels = filters.shape[:3]
    lowering.choose(
        problem(
            "convolution",
            [source, target],
            images=source.shape[0],
            groups=groups,
            channels=f"{channels}>{outputs}",
            **{name: "x".join(str(getattr(axis, name)) for axis in axes) for name in Axis._fields},
        ),
        _algorithms(lowering, filters, source, axes),
        emit,
    )


def _product(
    lowering: Lowering,
    group: Group,
    filters: Filters,
    images: Images,
    tap_offsets: list[int] | None,
    grid: OutputGrid,
    depth_stride: int,
    bias: Tensor | None,
    epilogue: Epilogue,
) -> None:
    """Emit a matrix product whose depth is input channels times taps."""
    groups, outputs, channels = filters.shape[:3]
    dtype = packed_type(lowering, images.tensor.dtype, group.input(1).dtype)
    emit_gemm(
        lowering,
        partial(filters.panels, dtype=dtype),
        images,
        grid,
        tap_offsets,
        groups=groups,
        channels=channels,
        outputs=outputs,
        constant=None if filters.array is None else dtype,
        bias=bias,
        epilogue=epilogue,
        depth_stride=depth_stride,
    )


def _algorithms(lowering: Lowering, filters: Filters, source: Tensor, axes: tuple[Axis, Axis, Axis]) -> list[Algorithm]:
    """Return the algorithms that fit, the one that is estimated to be fastest first."""
    depth, height, width = axes
    groups, outputs, inputs = filters.shape[:3]
    taps, is_pointwise = prod(axis.kernel for axis in axes), all(axis.is_pointwise for axis in axes)
    if inputs == 1 and depth.is_pointwise and not is_pointwise and taps <= _MAX_UNROLLED:
        return [Algorithm("depthwise"), Algorithm("product")]
    is_fit = depth.is_pointwise and all((a.kernel, a.stride, a.dilation) == (TAPS, 1, 1) for a in (height, width))
    if lowering.options.exact or not is_fit or groups != 1 or filters.array is None or source.dtype is DType.FLOAT64:
        return [Algorithm("product")]
    return winograd_algorithms(inputs, outputs, source.shape[0], height.outputs, width.outputs)


def window_images(lowering: Lowering, source: Tensor, axes: tuple[Axis, Axis, Axis]) -> tuple[Images, list[int] | None]:
    """Return images that contain all taps of all outputs, and the offsets of the taps; see :func:`emit_gemm`."""
    if all(axis.is_pointwise for axis in axes):
        return as_images(lowering, source), None
    depth, height, width = axes
    # The position of each tap along an axis: a shift in elements of a phase, and the phase.
    rows, columns = ([divmod(k * a.dilation, a.stride) for k in range(a.kernel)] for a in (height, width))
    phases = sorted({(row, column) for _, row in rows for _, column in columns})
    size = (
        (depth.outputs - 1) * depth.stride + depth.reach,
        height.outputs + max(shift for shift, _ in rows),
        width.outputs + max(shift for shift, _ in columns),
    )
    begin = (depth.begin, height.begin, width.begin)
    images = pad_images(lowering, source, phases, (height.stride, width.stride), begin, size)
    tap_offsets = [
        k * depth.dilation * images.depth + (phases.index((row, column)) * size[1] + down) * size[2] + across
        for k in range(depth.kernel)
        for down, row in rows
        for across, column in columns
    ]
    return images, tap_offsets
