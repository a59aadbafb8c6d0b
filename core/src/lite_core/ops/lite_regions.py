"""Operators of the domain ``lite`` for region proposals, pyramid levels and region pooling (from Paddle)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import DType, Shape, TensorType, fresh_dim
from lite_core.ops.boxes import box_areas, suppress
from lite_core.ops.detection import check_ranks, check_size, dim_of
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import op, required

Array = np.ndarray[Any, Any]


def _image_of_each(rois_num: Array | None, count: int) -> Array:
    """Return the image index of each region; ``rois_num`` [N] counts the regions of each image (None: all in one)."""
    if rois_num is None:
        return np.zeros(count, np.int64)
    if rois_num.sum() != count or (rois_num < 0).any():
        raise fail(f"rois_num {rois_num.tolist()} counts {rois_num.sum()} regions, there are {count}")
    return np.repeat(np.arange(len(rois_num)), rois_num)


def _round(x: Array) -> Array:
    """Round to the nearest integer, halves away from zero, as C does."""
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


# **** pooling ****


def _infer_roi_pool(inference: Inference) -> list[Shape]:
    attributes = inference.attributes
    check_ranks(inference, (4, 2, 1), ("x", "boxes", "boxes_num"))
    x, boxes = inference.shape(0), inference.shape(1)
    check_size(boxes, 1, 4, "boxes")
    height, width = attributes["pooled_height"], attributes["pooled_width"]
    if height < 1 or width < 1:
        raise fail(f"pooled_height and pooled_width must be at least 1, are {height} and {width}")
    channels = dim_of(x, 1, "channels")
    if "output_channels" in attributes:
        channels = attributes["output_channels"]
        check_size(x, 1, channels * height * width, "x")
    return [(dim_of(boxes, 0, "regions"), channels, height, width)]


def _bins(start: float, size: float, bins: int, limit: int) -> list[slice]:
    """Return the elements of each bin along one axis, clipped to the map."""
    numbers = np.arange(bins, dtype=np.float32)
    bin_size = np.float32(size) / np.float32(bins)
    low = np.floor(numbers * bin_size + np.float32(start))
    high = np.ceil((numbers + 1) * bin_size + np.float32(start))
    edges = np.clip(np.stack([low, high]), 0, limit).astype(np.int64)
    return [slice(a, b) for a, b in edges.T.tolist()]


_POOL_ATTRIBUTES: dict[str, Any] = {"pooled_height": 1, "pooled_width": 1, "spatial_scale": 1.0}


@op(
    "RoiPool",
    "x: T, boxes: T, boxes_num: int32? -> out: T",
    domain="lite",
    types={"T": FLOATS},
    attributes=_POOL_ATTRIBUTES,
    infer=_infer_roi_pool,
)
def roi_pool(
    x: Array,
    boxes: Array,
    boxes_num: Array | None,
    *,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> Array:
    """The maximum of each bin of each region (Girshick, Fast R-CNN, 2015); 0 for an empty bin.

    x [N, C, H, W], boxes [K, 4] and boxes_num [N] give [K, C, pooled_height, pooled_width]. Corners are
    scaled, then rounded to whole elements (halves away from zero); a region includes its last element.
    """
    result = np.zeros((len(boxes), x.shape[1], pooled_height, pooled_width), x.dtype)
    corners = _round(boxes * x.dtype.type(spatial_scale))
    images = _image_of_each(boxes_num, len(boxes)).tolist()
    for pooled, image, (left, top, right, bottom) in zip(result, images, corners.tolist()):
        rows = _bins(top, max(bottom - top + 1, 1), pooled_height, x.shape[2])
        columns = _bins(left, max(right - left + 1, 1), pooled_width, x.shape[3])
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                part = x[image, :, row, column]
                if part.size:
                    pooled[:, i, j] = part.max(axis=(1, 2))
    return result


@op(
    "PsRoiPool",
    "x: T, boxes: T, boxes_num: int32? -> out: T",
    domain="lite",
    types={"T": FLOATS},
    attributes={**_POOL_ATTRIBUTES, "output_channels": required("int")},
    infer=_infer_roi_pool,
)
def psroi_pool(
    x: Array,
    boxes: Array,
    boxes_num: Array | None,
    *,
    pooled_height: int,
    pooled_width: int,
    output_channels: int,
    spatial_scale: float,
) -> Array:
    """Position-sensitive pooling (Dai et al., R-FCN, 2016): each bin averages different channels.

    x [N, output_channels * pooled_height * pooled_width, H, W] gives
    [K, output_channels, pooled_height, pooled_width]; 0 for an empty bin. Corners are rounded to whole
    elements (halves away from zero), extended to include the last element, and then scaled.
    """
    result = np.zeros((len(boxes), output_channels, pooled_height, pooled_width), x.dtype)
    maps = x.reshape(len(x), output_channels, pooled_height, pooled_width, *x.shape[2:])
    corners = (_round(boxes) + np.array([0, 0, 1, 1], x.dtype)) * x.dtype.type(spatial_scale)
    images = _image_of_each(boxes_num, len(boxes)).tolist()
    for pooled, image, (left, top, right, bottom) in zip(result, images, corners.tolist()):
        rows = _bins(top, max(bottom - top, 0.1), pooled_height, x.shape[2])
        columns = _bins(left, max(right - left, 0.1), pooled_width, x.shape[3])
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                part = maps[image, :, i, j, row, column]
                if part.size:
                    pooled[:, i, j] = part.mean(axis=(1, 2))
    return result


# **** GenerateProposals ****


def _infer_generate_proposals(inference: Inference) -> list[Shape]:
    names = ("scores", "bbox_deltas", "im_shape", "anchors", "variances")
    check_ranks(inference, (4, 4, 2, 4, 4), names)
    scores = inference.shape(0)
    check_size(inference.shape(2), 1, 2, "im_shape")
    check_size(inference.shape(3), 3, 4, "anchors")
    check_size(inference.shape(4), 3, 4, "variances")
    if scores is not None:
        check_size(inference.shape(1), 1, 4 * scores[1], "bbox_deltas")
    kept = fresh_dim("proposals")
    return [(kept, 4), (kept, 1), (dim_of(scores, 0, "images"),)]


@op(
    "GenerateProposals",
    "scores: T, bbox_deltas: T, im_shape: T, anchors: T, variances: T "
    "-> rpn_rois: T, rpn_roi_probs: T, rpn_rois_num: int32",
    domain="lite",
    types={"T": FLOATS},
    attributes={
        "pre_nms_top_n": required("int"),
        "post_nms_top_n": required("int"),
        "nms_thresh": required("float"),
        "min_size": required("float"),
        "eta": 1.0,
        "pixel_offset": 1,
    },
    infer=_infer_generate_proposals,
)
def generate_proposals(
    scores: Array,
    bbox_deltas: Array,
    im_shape: Array,
    anchors: Array,
    variances: Array,
    *,
    pre_nms_top_n: int,
    post_nms_top_n: int,
    nms_thresh: float,
    min_size: float,
    eta: float,
    pixel_offset: int,
) -> tuple[Array, Array, Array]:
    """Proposals of a region proposal network (Ren et al., Faster R-CNN, 2015).

    scores [N, A, H, W], bbox_deltas [N, 4A, H, W], im_shape [N, 2] (height, width), anchors and variances
    [H, W, A, 4] give regions [K, 4], their scores [K, 1] and their number in each image [N]. The best
    ``pre_nms_top_n`` are decoded and clipped to the image, those smaller than ``min_size`` are dropped, the
    rest is suppressed, and the best ``post_nms_top_n`` are kept (0 means all, for both numbers). An image
    without proposals gives one region of zeros.
    """
    offset = 1.0 if pixel_offset else 0.0
    regions, kept_scores, counts = [], [], []
    flat_anchors, flat_variances = anchors.reshape(-1, 4), variances.reshape(-1, 4)
    batch, per_cell, height, width = scores.shape
    all_deltas = bbox_deltas.reshape(batch, per_cell, 4, height, width).transpose(0, 3, 4, 1, 2)
    for image_scores, deltas, size in zip(scores.transpose(0, 2, 3, 1), all_deltas, im_shape):
        values = image_scores.reshape(-1)
        order = np.argsort(-values, kind="stable")
        order = order[:pre_nms_top_n] if pre_nms_top_n > 0 else order
        boxes = _decode(flat_anchors[order], deltas.reshape(-1, 4)[order], flat_variances[order], offset)
        limits = np.array([size[1], size[0]] * 2, boxes.dtype) - boxes.dtype.type(offset)
        boxes = np.maximum(np.minimum(boxes, limits), 0)
        large = _large_enough(boxes, size, max(min_size, 1.0), offset)
        boxes, values = boxes[large], values[order][large]
        if not len(boxes):
            boxes, values = np.zeros((1, 4), boxes.dtype), np.zeros(1, values.dtype)
        elif nms_thresh > 0:
            limit = post_nms_top_n if post_nms_top_n > 0 else None
            # NOTE: of equal scores the later one comes first, as Paddle takes boxes from the end of a sorted list.
            best_first = np.argsort(values, kind="stable")[::-1]
            kept = suppress(boxes, best_first, nms_thresh, limit=limit, eta=eta, offset=offset, keep_degenerate=False)
            boxes, values = boxes[kept], values[kept]
        regions.append(boxes)
        kept_scores.append(values[:, None])
        counts.append(len(boxes))
    return (
        np.concatenate([np.zeros((0, 4), scores.dtype), *regions]),
        np.concatenate([np.zeros((0, 1), scores.dtype), *kept_scores]),
        np.array(counts, np.int32),
    )


def _decode(anchors: Array, deltas: Array, variances: Array, offset: float) -> Array:
    size = anchors[:, 2:] - anchors[:, :2] + offset
    center = variances[:, :2] * deltas[:, :2] * size + anchors[:, :2] + size / 2
    # the limit prevents exp from overflowing: a region is at most 1000 / 16 times as large as its anchor
    grown = np.exp(np.minimum(variances[:, 2:] * deltas[:, 2:], np.log(1000.0 / 16.0))) * size
    return np.concatenate([center - grown / 2, center + grown / 2 - offset], axis=1)


def _large_enough(boxes: Array, image_size: Array, min_size: float, offset: float) -> Array:
    size = boxes[:, 2:] - boxes[:, :2] + offset
    large: Array = np.all(size >= min_size, axis=1)
    if offset:
        center = boxes[:, :2] + size / 2
        large = large & np.all(center <= image_size[1::-1], axis=1)
    return large


# **** pyramid levels ****


def _infer_distribute(inference: Inference) -> list[TensorType]:
    attributes = inference.attributes
    check_ranks(inference, (2, 1), ("fpn_rois", "rois_num"))
    rois = inference.shape(0)
    check_size(rois, 1, 4, "fpn_rois")
    levels = attributes["max_level"] - attributes["min_level"] + 1
    if levels < 1 or inference.n_outputs not in (1 + levels, 1 + 2 * levels):
        raise fail(
            f"levels {attributes['min_level']} to {attributes['max_level']} need {1 + levels} outputs "
            f"(restore_index, a tensor of regions for each level) or {1 + 2 * levels} (then their counts), "
            f"the node has {inference.n_outputs}"
        )
    images = dim_of(inference.shape(1), 0, "images") if inference.has(1) else 1
    return [
        TensorType(DType.INT32, (dim_of(rois, 0, "regions"), 1)),
        *(TensorType(inference.dtype(0), (fresh_dim("regions"), 4)) for _ in range(levels)),
        *[TensorType(DType.INT32, (images,))] * (inference.n_outputs - 1 - levels),
    ]


@op(
    "DistributeFpnProposals",
    "fpn_rois: T, rois_num: int32? -> restore_index: int32, multi_fpn_rois_and_rois_num: V**",
    domain="lite",
    types={"T": FLOATS, "V": (*FLOATS, DType.INT32)},
    attributes={
        "min_level": required("int"),
        "max_level": required("int"),
        "refer_level": required("int"),
        "refer_scale": required("int"),
        "pixel_offset": 1,
    },
    infer=_infer_distribute,
)
def distribute_fpn_proposals(
    fpn_rois: Array,
    rois_num: Array | None,
    *,
    min_level: int,
    max_level: int,
    refer_level: int,
    refer_scale: int,
    pixel_offset: int,
) -> tuple[Array, ...]:
    """Regions [K, 4] assigned to the levels of a feature pyramid by their size (Lin et al., FPN, 2017).

    ``level = floor(refer_level + log2(sqrt(area) / refer_scale))``, clamped. Outputs: restore_index
    [K, 1], the position of each region in the concatenated levels; the regions of each level; and, for
    each level, the number of regions in each image [N]. A region whose area is NaN is on the first level.
    """
    scale = np.sqrt(box_areas(fpn_rois, 1.0 if pixel_offset else 0.0))
    level = np.floor(np.log2(scale / refer_scale + 1e-6) + refer_level)
    level = np.where(level > min_level, np.minimum(level, max_level), min_level)  # NaN is on the first level
    images = _image_of_each(rois_num, len(fpn_rois))
    members = [np.flatnonzero(level == number) for number in range(min_level, max_level + 1)]
    restore = np.empty(len(fpn_rois), np.int32)
    restore[np.concatenate(members)] = np.arange(len(fpn_rois))
    count = 1 if rois_num is None else len(rois_num)
    counts = (np.bincount(images[m], minlength=count) for m in members)
    return restore[:, None], *(fpn_rois[m] for m in members), *(c.astype(np.int32) for c in counts)


def _infer_collect(inference: Inference) -> list[TensorType]:
    if len(inference.types) % 3 or not inference.types:
        raise fail(
            "inputs must be the regions, the scores and the counts of each level (all regions first), "
            f"so a multiple of 3; there are {len(inference.types)}"
        )
    levels = len(inference.types) // 3
    for number in range(2 * levels, 3 * levels):
        if inference.dtype(number) is not DType.INT32:
            raise fail(f"counts of level {number - 2 * levels} must be int32, are {inference.dtype(number)}")
        rois, scores, counts = (inference.shape(number - n * levels) for n in (2, 1, 0))
        check_size(scores, 0, dim_of(rois, 0, "regions"), "scores")
        check_size(counts, 0, dim_of(inference.shape(2 * levels), 0, "images"), "counts")
    images = dim_of(inference.shape(2 * levels), 0, "images")
    return [
        TensorType(inference.dtype(0), (fresh_dim("regions"), 4)),
        TensorType(DType.INT32, (images,)),
    ]


@op(
    "CollectFpnProposals",
    "multi_level_rois_and_scores_and_rois_num: V** -> fpn_rois: V, rois_num: int32",
    domain="lite",
    types={"V": (*FLOATS, DType.INT32)},
    attributes={"post_nms_top_n": required("int")},
    infer=_infer_collect,
)
def collect_fpn_proposals(*inputs: Array, post_nms_top_n: int) -> tuple[Array, Array]:
    """The best ``post_nms_top_n`` regions of all levels, ordered by image and then by score.

    Inputs: the regions [K_i, 4] of each level, then the scores [K_i, 1] of each level, then, for each
    level, the number of regions in each image [N]. Outputs: regions [K, 4] and their number in each image [N].
    """
    levels = len(inputs) // 3
    rois, counts = np.concatenate(inputs[:levels]), inputs[2 * levels :]
    scores = np.concatenate([s.reshape(-1) for s in inputs[levels : 2 * levels]])
    images = np.concatenate([_image_of_each(c, len(r)) for c, r in zip(counts, inputs[:levels])])
    best = np.argsort(-scores, kind="stable")[:post_nms_top_n]
    best = best[np.argsort(images[best], kind="stable")]
    return rois[best], np.bincount(images[best], minlength=len(counts[0])).astype(np.int32)
