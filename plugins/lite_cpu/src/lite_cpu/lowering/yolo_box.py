"""Lowering of YoloBox."""

from __future__ import annotations

from lite_compiler.fusion import Group
from lite_core.ir import DType, Node
from lite_core.ops import attributes_of
from lite_cpu.emitter import float_bits
from lite_cpu.kernels.yolo_box import YoloBox, YoloSizes
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import required_input

__all__ = ["yolo_box"]


def _refuse(node: Node) -> str | None:
    attributes, dtype = attributes_of(node), required_input(node).dtype
    if attributes["iou_aware"] and not 0 < attributes["iou_aware_factor"] < 1:
        return f"YoloBox with iou_aware_factor {attributes['iou_aware_factor']}: only between 0 and 1 is there"
    return None if dtype is DType.FLOAT32 else f"{node.op} has kernels for float32 only, not for {dtype}"


@lowers("lite.YoloBox", refuse=_refuse)
def yolo_box(lowering: Lowering, group: Group) -> None:
    """Emit the decoding of a head, in the layout that convolutions produce."""
    node = group.head
    attributes = attributes_of(node)
    source = lowering.channels_last(lowering.tensor(required_input(node)))
    images = lowering.dense(lowering.tensor(required_input(node, 1)))
    batch, _, height, width = source.shape
    anchors, classes = len(attributes["anchors"]) // 2, attributes["class_num"]
    outputs = [*node.outputs, None][:2]
    boxes, scores = (
        lowering.allocate((batch, anchors * height * width, many), source.dtype) if v is None else lowering.target(v)
        for v, many in zip(outputs, (4, classes))
    )
    scale = attributes["scale_x_y"]
    numbers = (attributes["conf_thresh"], scale, -0.5 * (scale - 1), attributes["iou_aware_factor"])
    of_image, _, of_row, of_column = source.strides
    sizes = YoloSizes(height, width, anchors, classes, of_image, of_row, of_column, attributes["downsample_ratio"])
    lowering.step(
        YoloBox(bool(attributes["clip_bbox"]), bool(attributes["iou_aware"])),
        [source, images, boxes, scores],
        [*sizes, *map(float_bits, (*numbers, *attributes["anchors"]))],
        batch * height,
        flops=20 * source.size,
    )
