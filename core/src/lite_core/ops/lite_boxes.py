"""Operators of the domain ``lite`` that encode, decode, clip and compare boxes (from Paddle).

Boxes are (x1, y1, x2, y2). If a flag marks them as not normalised, coordinates are whole pixels and a box
includes its last pixel, so its width is ``x2 - x1 + 1``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Shape
from lite_core.ops.detection import check_ranks, check_size, dim_of
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import AttributeSpec, choice, op

Array = np.ndarray[Any, Any]


# **** BoxCoder, BoxClip, IouSimilarity ****


def _infer_box_coder(inference: Inference) -> list[Shape]:
    attributes = inference.attributes
    decode = attributes["code_type"] == "decode_center_size"
    check_ranks(inference, (2, None, 3 if decode else 2), ("prior_box", "prior_box_var", "target_box"))
    priors, target = inference.shape(0), inference.shape(2)
    check_size(priors, 1, 4, "prior_box")
    check_size(target, -1, 4, "target_box")
    if attributes["variance"] and len(attributes["variance"]) != 4:
        raise fail(f"variance must be empty or have 4 entries, has {len(attributes['variance'])}")
    if attributes["variance"] and inference.has(1):
        raise fail("give either the input prior_box_var or the attribute variance, not both")
    if attributes["axis"] not in (0, 1):
        raise fail(f"axis must be 0 (a prior for each column) or 1 (for each row), is {attributes['axis']}")
    if not decode:
        return [(dim_of(target, 0, "targets"), dim_of(priors, 0, "priors"), 4)]
    columns = attributes["axis"] == 0
    if priors is not None:
        check_size(target, 1 if columns else 0, priors[0], "target_box")
    rows = dim_of(target if columns else target or priors, 0, "rows")
    return [(rows, dim_of(target, 1, "columns"), 4)]


@op(
    "BoxCoder",
    "prior_box: T, prior_box_var: T?, target_box: T -> output_box: T",
    domain="lite",
    types={"T": FLOATS},
    attributes={
        "code_type": choice("encode_center_size", "decode_center_size"),
        "box_normalized": 1,
        "axis": 0,
        "variance": AttributeSpec("floats", default=()),
    },
    infer=_infer_box_coder,
)
def box_coder(
    priors: Array,
    prior_variances: Array | None,
    target: Array,
    *,
    code_type: str,
    box_normalized: int,
    axis: int,
    variance: tuple[float, ...],
) -> Array:
    """Boxes as offsets from prior boxes (encode: [N, 4] to [N, M, 4]) and back (decode: [N, M, 4]).

    Offsets are ``dx / width, dy / height, log(width ratio), log(height ratio)``, divided by the variances:
    four for each prior [M, 4], or four for all. Decoding takes a prior for each column of the target
    (``axis`` 0) or for each row (1).
    """
    offset = 0 if box_normalized else 1
    size = priors[:, 2:] - priors[:, :2] + offset
    center = priors[:, :2] + size / 2
    scale = np.array(variance or (1.0,) * 4, priors.dtype) if prior_variances is None else prior_variances
    scale = np.broadcast_to(scale, priors.shape)
    if code_type == "encode_center_size":
        # NOTE: the target's centre is the mean of its corners, the prior's includes the offset.
        target_center = ((target[:, :2] + target[:, 2:]) / 2)[:, None]
        target_size = (target[:, 2:] - target[:, :2] + offset)[:, None]
        moved, grown = (target_center - center) / size, np.log(np.abs(target_size / size))
        encoded: Array = np.concatenate([moved, grown], axis=-1) / scale
        return encoded
    index = (None, slice(None)) if axis == 0 else (slice(None), None)
    size, center, scale = size[index], center[index], scale[index]
    decoded_center = scale[..., :2] * target[..., :2] * size + center
    decoded_size = np.exp(scale[..., 2:] * target[..., 2:]) * size
    return np.concatenate([decoded_center - decoded_size / 2, decoded_center + decoded_size / 2 - offset], axis=-1)


def _infer_box_clip(inference: Inference) -> list[Shape | None]:
    boxes, info = inference.shape(0), inference.shape(1)
    check_ranks(inference, (None, 2), ("input", "im_info"))
    if boxes is not None and len(boxes) not in (2, 3):
        raise fail(f"input must be [M, 4] or [N, M, 4], has {len(boxes)} dimensions")
    check_size(boxes, -1, 4, "input")
    check_size(info, 1, 3, "im_info")
    if boxes is not None:
        check_size(info, 0, boxes[0] if len(boxes) == 3 else 1, "im_info")
    return [boxes]


@op(
    "BoxClip",
    "input: T, im_info: T -> output: T",
    domain="lite",
    types={"T": FLOATS},
    infer=_infer_box_clip,
)
def box_clip(boxes: Array, im_info: Array) -> Array:
    """Boxes [N, M, 4] clipped to their images (or [M, 4] clipped to one image).

    im_info [N, 3] is (height, width, scale) of the network's input. The image's size is this height and
    width divided by the scale, rounded; the image includes its last pixel.
    """
    height, width = (np.floor(im_info[:, i] / im_info[:, 2] + 0.5) - 1 for i in (0, 1))
    last = np.stack([width, height, width, height], axis=-1).astype(boxes.dtype)
    inside: Array = np.clip(boxes, 0, np.maximum(last[:, None] if boxes.ndim == 3 else last, 0))
    return inside


def _infer_iou_similarity(inference: Inference) -> list[Shape]:
    check_ranks(inference, (2, 2), ("x", "y"))
    for index, name in enumerate(("x", "y")):
        check_size(inference.shape(index), 1, 4, name)
    return [(dim_of(inference.shape(0), 0, "rows"), dim_of(inference.shape(1), 0, "columns"))]


@op(
    "IouSimilarity",
    "x: T, y: T -> out: T",
    domain="lite",
    types={"T": FLOATS},
    attributes={"box_normalized": 1},
    infer=_infer_iou_similarity,
)
def iou_similarity(x: Array, y: Array, *, box_normalized: int) -> Array:
    """Intersection over union of every box of x [N, 4] with every box of y [M, 4]: [N, M]."""
    return _pairwise(x, y, 0 if box_normalized else 1)


def _pairwise(x: Array, y: Array, offset: float) -> Array:
    # NOTE: unlike in boxes.overlaps, extents are clipped at 0 after the offset is added, so boxes less than
    # a pixel apart overlap.
    low, high = np.maximum(x[:, None, :2], y[:, :2]), np.minimum(x[:, None, 2:], y[:, 2:])
    common = np.maximum(high - low + offset, 0).prod(axis=-1)
    sizes_x, sizes_y = ((b[:, 2:] - b[:, :2] + offset).prod(axis=-1) for b in (x, y))
    similarity: Array = common / (sizes_x[:, None] + sizes_y - common)
    return similarity
