"""lite.YoloBox: the boxes of one head of a detector."""

from __future__ import annotations

import numpy as np

from lite_compiler.fusion import Group
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.registry import lowers
from lite_opencl.lowering.tables import upload_table
from lite_opencl.programs.element_types import scalar
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import types_of

__all__ = ["yolo_box"]

_LOCAL = (64, 1, 1)


@lowers("lite.YoloBox")
def yolo_box(lowering: Lowering, group: Group) -> None:
    """Lower lite.YoloBox to one kernel with a work item for each box."""
    x, image_sizes = (lowering.dense(lowering.tensor(group.input(i))) for i in (0, 1))
    attributes = group.attributes
    anchors, classes = len(attributes["anchors"]) // 2, attributes["class_num"]
    images, _, height, width = x.shape
    sizes = ((images, anchors * height * width, 4), (images, anchors * height * width, classes))
    boxes, scores = (
        lowering.allocate(size, x.dtype) if value is None else lowering.target(value)
        for value, size in zip((*group.head.outputs, None), sizes)
    )
    flags = (("IOU_AWARE", attributes["iou_aware"]), ("CLIP", attributes["clip_bbox"]))
    kernel = KernelSource(
        "yolo_box",
        "yolo_box",
        _LOCAL,
        (("CLASSES", classes), *((name, 1) for name, flag in flags if flag)),
        types_of(X=x, B=boxes, S=scores),
    )
    anchor_sizes = upload_table(lowering, np.array(attributes["anchors"], np.int32))
    numbers = [scalar(attributes[name], x.dtype) for name in ("conf_thresh", "scale_x_y", "iou_aware_factor")]
    counts = map(np.int32, (images, anchors, height, width))
    lowering.step(
        kernel,
        [boxes, scores, x, image_sizes, anchor_sizes, *counts, *numbers, np.int32(attributes["downsample_ratio"])],
        (height * width, anchors, images),
        results=(0, 1),
        flops=40 * (boxes.size // 4) + 25 * scores.size,
    )
