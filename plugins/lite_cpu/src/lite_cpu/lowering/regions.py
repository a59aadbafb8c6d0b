"""Lowering of RoiAlign."""

from __future__ import annotations

from lite_compiler.fusion import Group
from lite_compiler.tensors import memory_order
from lite_core.ir import DType, Node
from lite_core.ops import attributes_of
from lite_cpu.emitter import float_bits
from lite_cpu.kernels.roi_align import RoiAlign, RoiSizes, most_taps, scratch_bytes
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.indices import check_bounds
from lite_cpu.lowering.movement import zero_like
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import required_input

__all__ = ["roi_align"]

#: Channels of a work item: enough to share the tables of a region.
_BLOCK = 64


def _refuse(node: Node) -> str | None:
    dtype = required_input(node).dtype
    return None if dtype is DType.FLOAT32 else f"{node.op} has kernels for float32 only, not for {dtype}"


@lowers("RoiAlign", refuse=_refuse)
def roi_align(lowering: Lowering, group: Group) -> None:
    """Emit the pooling of all regions, for the layout that the images have."""
    node, attributes = group.head, attributes_of(group.head)
    source = lowering.tensor(required_input(node))
    rois, image_of_region = (lowering.dense(lowering.tensor(required_input(node, i))) for i in (1, 2))
    # The maximum has many terms for each element, which only vectors of channels compute fast.
    is_maximum = attributes["mode"] == "max"
    channels_last = is_maximum or (source.is_channels_last and not source.is_dense)
    source = lowering.channels_last(source) if channels_last else lowering.dense(source)
    target = lowering.target(group.output, memory_order(source))
    message = lowering.text(
        lambda: f"{node.describe()}: batch_indices must be from 0 to {source.shape[0] - 1}, has {{}}"
    )
    check_bounds(lowering, required_input(node, 2), [(0, source.shape[0])], message)
    if not target.size:
        return
    images, channels, height, width = source.shape
    if not source.size:
        lowering.copy(zero_like(lowering, group.output).expand(target.shape), target)
        return
    rows, columns, samples = target.shape[2], target.shape[3], max(attributes["sampling_ratio"], 0)
    taps = most_taps(height, width, samples)
    sizes = RoiSizes(images, channels, height, width, rows, columns, samples, min(_BLOCK, channels), taps)
    kernel = RoiAlign(
        is_maximum,
        attributes["coordinate_transformation_mode"] == "half_pixel",
        channels_last,
        target.strides[1] == 1,
    )
    lowering.step(
        kernel,
        [source, rois, image_of_region, target],
        [*sizes, *source.strides, *target.strides, float_bits(attributes["spatial_scale"], DType.FLOAT64)],
        target.shape[0] * -(-channels // sizes.block),
        flops=2 * target.size * 4 * max(samples, 1) ** 2,
        scratch_bytes=scratch_bytes(sizes),
    )
