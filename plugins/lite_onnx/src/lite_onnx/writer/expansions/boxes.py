"""Expansions of operators that encode, decode, clip and compare boxes, see :mod:`lite_core.ops.lite_boxes`."""

from __future__ import annotations

import numpy as np

from lite_core.ir import Value
from lite_onnx.writer.expansions.formula import Formula, expands
from lite_onnx.writer.problems import Unwritable


def _sizes(f: Formula, boxes: Value, offset: float) -> Value:
    """Return widths and heights [..., 2] of boxes [..., 4]."""
    size = f("Sub", f.part(boxes, 2, 4), f.part(boxes, 0, 2))
    return f("Add", size, offset) if offset else size


@expands("BoxCoder")
def box_coder(
    f: Formula,
    priors: Value,
    prior_variances: Value | None,
    target: Value,
    *,
    code_type: str,
    box_normalized: int,
    axis: int,
    variance: tuple[float, ...],
) -> list[Value]:
    """Encode boxes as offsets from prior boxes, divided by variances, or decode such offsets."""
    offset = 0.0 if box_normalized else 1.0
    size = _sizes(f, priors, offset)
    center = f("Add", f.part(priors, 0, 2), f("Div", size, 2.0))
    scale = prior_variances
    if scale is None:
        scale = f.builder.constant(np.array([variance or (1.0,) * 4], priors.dtype.numpy))
    if code_type == "encode_center_size":
        target_center = f("Div", f("Add", f.part(target, 0, 2), f.part(target, 2, 4)), 2.0)
        target_size = f("Unsqueeze", _sizes(f, target, offset), [1])
        center_offset = f("Div", f("Sub", f("Unsqueeze", target_center, [1]), center), size)
        log_size = f("Log", f("Abs", f("Div", target_size, size)))
        return [f("Div", f("Concat", center_offset, log_size, axis=-1), scale)]
    size, center, scale = (f("Unsqueeze", x, [axis]) for x in (size, center, scale))
    center_offset = f("Mul", f("Mul", f.part(scale, 0, 2), f.part(target, 0, 2)), size)
    decoded_center = f("Add", center_offset, center)
    decoded_size = f("Mul", f("Exp", f("Mul", f.part(scale, 2, 4), f.part(target, 2, 4))), size)
    half = f("Div", decoded_size, 2.0)
    last = f("Add", decoded_center, half)
    return [f("Concat", f("Sub", decoded_center, half), f("Sub", last, offset) if offset else last, axis=-1)]


@expands("BoxClip")
def box_clip(f: Formula, boxes: Value, im_info: Value) -> list[Value]:
    """Clip boxes to their images."""
    if boxes.type.rank is None:
        raise Unwritable("the rank of its boxes is not known", "fix the shapes of the model's inputs")
    size = f("Div", f.part(im_info, 0, 2), f.part(im_info, 2, 3))
    last = f("Sub", f("Floor", f("Add", size, 0.5)), 1.0)
    last = f("Max", f("Gather", last, [1, 0, 1, 0], axis=-1), 0.0)
    return [f("Min", f("Max", boxes, 0.0), f("Unsqueeze", last, [1]) if boxes.type.rank == 3 else last)]


@expands("IouSimilarity")
def iou_similarity(f: Formula, x: Value, y: Value, *, box_normalized: int) -> list[Value]:
    """Compute the intersection over union of every pair."""
    offset = 0.0 if box_normalized else 1.0
    rows = f("Unsqueeze", x, [1])
    low = f("Max", f.part(rows, 0, 2), f.part(y, 0, 2))
    high = f("Min", f.part(rows, 2, 4), f.part(y, 2, 4))
    extent = f("Sub", high, low)
    extent = f("Max", f("Add", extent, offset) if offset else extent, 0.0)
    common = _product(f, extent)
    areas = f("Add", _product(f, _sizes(f, rows, offset)), _product(f, _sizes(f, y, offset)))
    return [f("Div", common, f("Sub", areas, common))]


def _product(f: Formula, pair: Value) -> Value:
    return f("Mul", f.item(pair, 0), f.item(pair, 1))
