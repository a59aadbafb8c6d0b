"""Expansions of operators that decode a detector's raw output, see :mod:`lite_core.ops.lite_detection`."""

from __future__ import annotations

import numpy as np

from lite_core.ir import Value
from lite_onnx.writer.expansions.formula import Formula, expands

_TO_END = np.iinfo(np.int64).max


@expands("YoloBox")
def yolo_box(
    f: Formula,
    x: Value,
    img_size: Value,
    *,
    anchors: tuple[int, ...],
    class_num: int,
    conf_thresh: float,
    downsample_ratio: int,
    clip_bbox: int,
    scale_x_y: float,
    iou_aware: int,
    iou_aware_factor: float,
) -> list[Value]:
    """Decode one head [N, A * (5 + C), H, W] to boxes [N, A*H*W, 4] and scores [N, A*H*W, C]."""
    count = len(anchors) // 2
    batch, height, width = (f.size(x, axis) for axis in (0, 2, 3))
    channels = f.part(x, -count * (5 + class_num), _TO_END, axis=1)
    head = f("Reshape", channels, f("Concat", batch, [count, 5 + class_num], height, width, axis=0))
    extents = f.cast(f("Concat", width, height, axis=0), x.dtype)
    extents = f("Reshape", extents, [2, 1, 1, 1, 1])  # width and height of the feature map
    image = f("Transpose", f("Gather", f.cast(img_size, x.dtype), [1, 0], axis=1))
    image = f("Unsqueeze", image, [2, 3, 4])  # [2, N, 1, 1, 1]
    # All tensors are [2, N, A, H, W] from here: the two coordinates are the first axis.
    positions = [
        f("Unsqueeze", f.count_up(width, x.dtype), [0, 1, 2, 3]),
        f("Unsqueeze", f.count_up(height, x.dtype), [0, 1, 2, 4]),
    ]
    zero = f("Mul", f("Add", positions[0], positions[1]), 0.0)
    cells = f("Concat", *(f("Add", position, zero) for position in positions), axis=0)
    offsets = f("Transpose", f("Sigmoid", f.part(head, 0, 2, axis=2)), perm=(2, 0, 1, 3, 4))
    offsets = f("Add", f("Mul", offsets, float(scale_x_y)), -0.5 * (scale_x_y - 1))
    center = f("Div", f("Mul", f("Add", cells, offsets), image), extents)
    sizes = np.array(anchors, x.dtype.numpy).reshape(count, 2).T[:, None, :, None, None]
    size = f("Exp", f("Transpose", f.part(head, 2, 4, axis=2), perm=(2, 0, 1, 3, 4)))
    size = f("Mul", f("Mul", size, f.builder.constant(sizes)), image)
    half = f("Div", f("Div", size, f("Mul", extents, float(downsample_ratio))), 2.0)
    first, last = f("Sub", center, half), f("Add", center, half)
    if clip_bbox:
        first, last = f("Max", first, 0.0), f("Min", last, f("Sub", image, 1.0))
    confidence = f("Sigmoid", f.item(head, 4, axis=2))
    if iou_aware:
        objectness = f("Pow", confidence, 1.0 - iou_aware_factor)
        overlap = f("Sigmoid", f.part(x, 0, count, axis=1))
        confidence = f("Mul", objectness, f("Pow", overlap, float(iou_aware_factor)))
    is_confident = f("Unsqueeze", f("GreaterOrEqual", confidence, float(conf_thresh)), [4])
    boxes = f("Transpose", f("Concat", first, last, axis=0), perm=(1, 2, 3, 4, 0))
    classes = f("Transpose", f("Sigmoid", f.part(head, 5, _TO_END, axis=2)), perm=(0, 1, 3, 4, 2))
    scores = f("Mul", f("Unsqueeze", confidence, [4]), classes)
    zero = f.builder.constant(np.zeros((), x.dtype.numpy))
    total = f("Mul", f("Mul", height, width), [count])
    shapes = [f("Concat", batch, total, [n], axis=0) for n in (4, class_num)]
    return [f("Reshape", f("Where", is_confident, y, zero), shape) for y, shape in zip((boxes, scores), shapes)]
