"""RoiAlign: regions of images pooled to one size."""

from __future__ import annotations

import numpy as np

from lite_compiler.fusion import Group
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.indices import check_ranges
from lite_opencl.lowering.registry import lowers
from lite_opencl.programs.element_types import scalar
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import types_of

__all__ = ["roi_align"]

_LOCAL = (64, 1, 1)
#: Channels of a work item.
_BLOCK = 8


@lowers("RoiAlign")
def roi_align(lowering: Lowering, group: Group) -> None:
    """Lower RoiAlign to one kernel with a work item for each bin and block of channels."""
    attributes, images = group.attributes, group.input(0).shape[0]
    check_ranges(lowering, group.head, group.input(2), "batch_indices", [range(max(images, 1))])
    x, rois, image_of_region = (lowering.dense(lowering.tensor(group.input(i))) for i in range(3))
    if not x.size:
        lowering.set_known(group.output, np.zeros(tuple(group.output.shape), x.dtype.numpy))
        return
    result = lowering.target(group.output)
    flags = (
        ("MAXIMUM", attributes["mode"] == "max"),
        ("SHIFT", attributes["coordinate_transformation_mode"] == "half_pixel"),
    )
    defines = (("BLOCK", _BLOCK), *((name, 1) for name, flag in flags if flag))
    types = types_of(X=x, R=rois, I=image_of_region, Y=result)
    regions, channels, rows, columns = result.shape
    ratio = max(attributes["sampling_ratio"], 0)
    sizes = map(np.int32, (*x.shape, regions, rows, columns, ratio))
    lowering.step(
        KernelSource("roi_align", "roi_align", _LOCAL, defines, types),
        [result, x, rois, image_of_region, *sizes, scalar(attributes["spatial_scale"], rois.dtype)],
        (rows * columns, -(-channels // _BLOCK), regions),
        flops=8 * max(ratio, 1) ** 2 * result.size,
    )
