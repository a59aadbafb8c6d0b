"""ConvTranspose: each phase of the output is a convolution of stride 1, whose results are a stride apart.

Outputs whose indices have the same remainder by the stride use the same taps with the same offsets (Shi et al., "Is
the deconvolution layer the same as a convolutional layer?", 2016).
"""

from __future__ import annotations

from functools import partial
from itertools import product

from lite_compiler.fusion import Group
from lite_compiler.tensors import dense_strides
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.convolution import bias_of, refuse_convolution
from lite_opencl.lowering.convolution_gemm import OutputGrid, as_images, emit_gemm, packed_type, pad_images
from lite_opencl.lowering.filters import filters_of
from lite_opencl.lowering.registry import lowers
from lite_opencl.lowering.spatial_axes import output_phases, transposed_axes

__all__ = ["transposed_convolution"]


@lowers("ConvTranspose", refuse=refuse_convolution, epilogue=True)
def transposed_convolution(lowering: Lowering, group: Group) -> None:
    """Lower ConvTranspose to one product for each combination of phases of the dimensions."""
    axes = transposed_axes(group.head)
    target = lowering.target(group.output)
    if not target.size:
        return
    source = lowering.tensor(group.input(0))
    filters = filters_of(lowering, group, transposed=True)
    bias, epilogue = bias_of(lowering, group), lowering.epilogue(group, split=2)
    dtype = packed_type(lowering, source.dtype, group.input(1).dtype)

    phases = [output_phases(axis) for axis in axes]
    shifts = [[shift for phase in of_axis for shift in phase.shifts] or [0] for of_axis in phases]
    # Padding so that the images contain every tap of every phase, and rows have one length.
    begin = [max(0, -min(of_axis)) for of_axis in shifts]
    size = [
        before + max(axis.size, *(p.count + max(p.shifts, default=0) for p in of_axis))
        for axis, before, of_axis in zip(axes, begin, phases)
    ]
    if size == [axis.size for axis in axes]:
        images = as_images(lowering, source)
    else:
        images = pad_images(
            lowering, source, [(0, 0)], (1, 1), (begin[0], begin[1], begin[2]), (size[0], size[1], size[2])
        )
    steps = dense_strides([axis.outputs for axis in axes])
    for combination in product(*phases):
        part = filters
        for axis, phase in enumerate(combination):
            part = part.take(axis, phase.tap, phase.taps, phase.step)
        tap_offsets = [
            (z + begin[0]) * images.depth + (y + begin[1]) * images.row + x + begin[2]
            for z, y, x in product(*(phase.shifts for phase in combination))
        ]
        depth, height, width = (
            (phase.count, step * axis.stride, step * phase.first) for phase, step, axis in zip(combination, steps, axes)
        )
        grid = OutputGrid(
            target,
            (depth[0], height[0], width[0]),
            (depth[1], height[1], width[1]),
            depth[2] + height[2] + width[2],
        )
        emit_gemm(
            lowering,
            partial(part.panels, dtype=dtype),
            images,
            grid,
            None if tap_offsets == [0] else tap_offsets,
            groups=part.shape[0],
            channels=part.shape[2],
            outputs=part.shape[1],
            constant=None if part.array is None else dtype,
            bias=bias,
            epilogue=epilogue,
            label="transposed_convolution",
        )
