"""Operators of the domain ``lite`` that decode, suppress and match boxes of detectors (from Paddle).

Boxes are (x1, y1, x2, y2). If a flag marks them as not normalised, coordinates are whole pixels and a box
includes its last pixel, so its width is ``x2 - x1 + 1``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Shape, fresh_dim
from lite_core.ops.boxes import overlaps, suppress
from lite_core.ops.detection import check_ranks, check_size, dim_of
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import choice, op, required

Array = np.ndarray[Any, Any]


# **** YoloBox ****


def _infer_yolo_box(inference: Inference) -> list[Shape]:
    check_ranks(inference, (4, 2), ("x", "img_size"))
    attributes = inference.attributes
    if not attributes["anchors"] or len(attributes["anchors"]) % 2:
        raise fail(f"anchors must be pairs (width, height), has {len(attributes['anchors'])} entries")
    anchors, classes = len(attributes["anchors"]) // 2, attributes["class_num"]
    x, sizes = inference.shape(0), inference.shape(1)
    check_size(x, 1, anchors * (5 + classes + bool(attributes["iou_aware"])), "x")
    check_size(sizes, 1, 2, "img_size")
    batch = dim_of(sizes, 0, "batch") if x is None else x[0]
    check_size(sizes, 0, batch, "img_size")
    boxes = anchors * dim_of(x, 2, "height") * dim_of(x, 3, "width")
    return [(batch, boxes, 4), (batch, boxes, classes)]


def _logistic(x: Array) -> Array:
    return 0.5 * np.tanh(0.5 * x) + 0.5


@op(
    "YoloBox",
    "x: T, img_size: int32 -> boxes: T, scores: T",
    domain="lite",
    types={"T": FLOATS},
    attributes={
        "anchors": required("ints"),
        "class_num": required("int"),
        "conf_thresh": 0.01,
        "downsample_ratio": 32,
        "clip_bbox": 1,
        "scale_x_y": 1.0,
        "iou_aware": 0,
        "iou_aware_factor": 0.5,
    },
    infer=_infer_yolo_box,
)
def yolo_box(
    x: Array,
    img_size: Array,
    *,
    anchors: tuple[int, ...],
    class_num: int,
    conf_thresh: float,
    downsample_ratio: int,
    clip_bbox: int,
    scale_x_y: float,
    iou_aware: int,
    iou_aware_factor: float,
) -> tuple[Array, Array]:
    """Boxes and class scores of one YOLOv3 head (Redmon and Farhadi, 2018).

    x [N, A * (5 + C), H, W] holds, per anchor, tx, ty, tw, th, confidence and classes; with ``iou_aware``
    A further channels come first. img_size [N, 2] is (height, width) of the images. The outputs are boxes
    [N, A*H*W, 4] in pixels and scores [N, A*H*W, C]; both are 0 where the confidence is below
    ``conf_thresh``.
    """
    batch, _, height, width = x.shape
    count = len(anchors) // 2
    head = x[:, -count * (5 + class_num) :].reshape(batch, count, 5 + class_num, height, width)
    sizes = np.array(anchors, x.dtype).reshape(count, 2)[:, :, None, None]
    image_h, image_w = (img_size[:, i].astype(x.dtype)[:, None, None, None] for i in (0, 1))
    bias = -0.5 * (scale_x_y - 1)
    rows, columns = np.arange(height, dtype=x.dtype)[:, None], np.arange(width, dtype=x.dtype)
    center_x = (columns + _logistic(head[:, :, 0]) * scale_x_y + bias) * image_w / width
    center_y = (rows + _logistic(head[:, :, 1]) * scale_x_y + bias) * image_h / height
    half_w = np.exp(head[:, :, 2]) * sizes[:, 0] * image_w / (downsample_ratio * width) / 2
    half_h = np.exp(head[:, :, 3]) * sizes[:, 1] * image_h / (downsample_ratio * height) / 2
    confidence = _logistic(head[:, :, 4])
    if iou_aware:
        iou = _logistic(x[:, :count])
        confidence = confidence ** (1 - iou_aware_factor) * iou**iou_aware_factor
    left, top, right, bottom = center_x - half_w, center_y - half_h, center_x + half_w, center_y + half_h
    if clip_bbox:
        left, top = np.maximum(left, 0), np.maximum(top, 0)
        right, bottom = np.minimum(right, image_w - 1), np.minimum(bottom, image_h - 1)
    sure = (confidence >= conf_thresh)[..., None]
    boxes = np.where(sure, np.stack([left, top, right, bottom], axis=-1), 0)
    classes = np.moveaxis(_logistic(head[:, :, 5:]), 2, -1)
    scores = np.where(sure, confidence[..., None] * classes, 0)
    total = count * height * width
    return boxes.reshape(batch, total, 4), scores.reshape(batch, total, class_num)


# **** non-maximum suppression over classes ****


def _infer_class_nms(inference: Inference) -> list[Shape]:
    boxes, scores = inference.shape(0), inference.shape(1)
    check_ranks(inference, (3, None, 1), ("bboxes", "scores", "rois_num"))
    check_size(boxes, 2, 4, "bboxes")
    images = dim_of(scores, 0, "images") if boxes is None else boxes[0]
    per_region = scores is not None and len(scores) == 2
    if per_region and not inference.has(2):
        raise fail("scores [M, C] need the input rois_num, the number of boxes of each image")
    if scores is not None and len(scores) not in (2, 3):
        raise fail(f"scores must be [N, C, M], or [M, C] with rois_num; has {len(scores)} dimensions")
    if boxes is not None:
        check_size(scores, 0, boxes[0], "scores")
        check_size(scores, 1 if per_region else 2 if scores is not None else 0, boxes[1], "scores")
    if per_region or (scores is None and inference.has(2)):
        images = dim_of(inference.shape(2), 0, "images")
    kept = fresh_dim("detections")
    return [(kept, 6), (kept, 1), (images,)]


_NMS_ATTRIBUTES: dict[str, Any] = {
    "score_threshold": required("float"),
    "nms_top_k": required("int"),
    "keep_top_k": required("int"),
    "background_label": 0,
    "normalized": 1,
}


def _best_first(scores: Array, threshold: float, limit: int) -> Array:
    """Return the indices of scores above the threshold, best first; at most ``limit`` unless it is negative."""
    (above,) = np.nonzero(scores > threshold)
    ordered = above[np.argsort(-scores[above], kind="stable")]
    return ordered[:limit] if limit >= 0 else ordered


@op(
    "MulticlassNms",
    "bboxes: T, scores: T, rois_num: int32? -> out: T, index: int32, nms_rois_num: int32",
    domain="lite",
    types={"T": FLOATS},
    attributes={**_NMS_ATTRIBUTES, "nms_threshold": 0.3, "nms_eta": 1.0},
    infer=_infer_class_nms,
)
def multiclass_nms(
    bboxes: Array,
    scores: Array,
    rois_num: Array | None,
    *,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    background_label: int,
    normalized: int,
    nms_threshold: float,
    nms_eta: float,
) -> tuple[Array, Array, Array]:
    """Non-maximum suppression within each image and class, from the best scores down.

    bboxes [N, M, 4] and scores [N, C, M] share the boxes between classes; bboxes [M, C, 4] and scores
    [M, C] have a box for each class, and ``rois_num`` [N] splits them into images. Suppression runs on the
    ``nms_top_k`` best boxes of each class except ``background_label``; the ``keep_top_k`` best of all
    classes are kept (-1: all). The outputs are rows [K, 6] of (class, score, x1, y1, x2, y2), ordered by
    image, class, and then by score, or by index with ``rois_num``; each box's index [K, 1] among all boxes
    of all images; and the number of rows of each image [N].
    """
    offset = 0.0 if normalized else 1.0
    per_region = scores.ndim == 2
    if per_region:
        assert rois_num is not None, "inference asks for rois_num"
        if rois_num.sum() != len(bboxes):
            raise fail(f"rois_num counts {rois_num.sum()} boxes, there are {len(bboxes)}")
        spans = [slice(end - count, end) for count, end in zip(rois_num, np.cumsum(rois_num))]
        images = [(bboxes[span], scores[span].T) for span in spans]
    else:
        images = list(zip(bboxes, scores))
    rows, indices, counts, first = [], [], [], 0
    for boxes, class_scores in images:
        picked: list[tuple[int, int]] = []
        for label, values in enumerate(class_scores):
            if label != background_label:
                own = boxes[:, label] if per_region else boxes
                candidates = _best_first(values, score_threshold, nms_top_k)
                kept = suppress(own, candidates, nms_threshold, eta=nms_eta, offset=offset, keep_degenerate=False)
                picked += [(label, int(box)) for box in (np.sort(kept) if per_region else kept)]
        if 0 <= keep_top_k < len(picked):
            best = np.argsort([-class_scores[p] for p in picked], kind="stable")[:keep_top_k]
            chosen = [picked[i] for i in best]
            picked = sorted(chosen) if per_region else sorted(chosen, key=lambda p: p[0])
        labels, positions = np.array(picked, np.int64).reshape(-1, 2).T
        chosen_boxes = boxes[positions, labels] if per_region else boxes[positions]
        rows.append(np.column_stack([labels, class_scores[labels, positions], chosen_boxes]))
        indices.append(first + (positions * len(class_scores) + labels if per_region else positions))
        counts.append(len(picked))
        first += boxes.shape[0] * (boxes.shape[1] if per_region else 1)
    return _collected(rows, indices, counts)


def _collected(rows: list[Array], indices: list[Array], counts: list[int]) -> tuple[Array, Array, Array]:
    out = np.concatenate([np.zeros((0, 6), np.float32), *rows])
    index = np.concatenate([np.zeros(0, np.int32), *indices])[:, None]
    return out, index, np.array(counts, np.int32)


def _infer_matrix_nms(inference: Inference) -> list[Shape]:
    check_ranks(inference, (3, 3), ("bboxes", "scores"))
    return _infer_class_nms(inference)


@op(
    "MatrixNms",
    "bboxes: T, scores: T -> out: T, index: int32, rois_num: int32",
    domain="lite",
    types={"T": FLOATS},
    attributes={**_NMS_ATTRIBUTES, "post_threshold": 0.0, "use_gaussian": 0, "gaussian_sigma": 2.0},
    infer=_infer_matrix_nms,
)
def matrix_nms(
    bboxes: Array,
    scores: Array,
    *,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    background_label: int,
    normalized: int,
    post_threshold: float,
    use_gaussian: int,
    gaussian_sigma: float,
) -> tuple[Array, Array, Array]:
    """Scores decayed by the overlap with better boxes of the class (Wang et al., SOLOv2, 2020).

    bboxes [N, M, 4], scores [N, C, M]; the outputs are like MulticlassNms's, with each image's rows best first.
    Boxes whose decayed score is not above ``post_threshold`` are dropped.
    """
    rows, indices, counts = [], [], []
    for image, (boxes, class_scores) in enumerate(zip(bboxes, scores)):
        found: list[Array] = [np.zeros((0, 3))]  # class, decayed score, box
        for label, values in enumerate(class_scores):
            order = _best_first(values, score_threshold, nms_top_k)
            if label == background_label or not len(order):
                continue
            decay = _matrix_decay(boxes[order], 0.0 if normalized else 1.0, use_gaussian, gaussian_sigma)
            decayed = values[order] * decay
            kept = decayed > post_threshold
            found.append(np.column_stack([np.full(kept.sum(), label), decayed[kept], order[kept]]))
        table = np.concatenate(found)
        table = table[np.argsort(-table[:, 1], kind="stable")]
        table = table[:keep_top_k] if keep_top_k >= 0 else table
        positions = table[:, 2].astype(np.int64)
        rows.append(np.column_stack([table[:, :2], boxes[positions]]))
        indices.append(image * bboxes.shape[1] + positions)
        counts.append(len(table))
    return _collected(rows, indices, counts)


def _matrix_decay(boxes: Array, offset: float, use_gaussian: int, sigma: float) -> Array:
    """Return the score factor of each box, best box first: the smallest factor that any better box causes."""
    overlap = np.tril(np.nan_to_num(overlaps(boxes[:, None], boxes, offset)), -1)  # [worse, better]
    most = overlap.max(axis=1)  # each box's largest overlap with a better box
    if use_gaussian:
        decay = np.exp((most**2 - overlap**2) * sigma)
    else:
        decay = (1 - overlap) / (1 - most)
    decay = np.where(np.tri(len(boxes), k=-1, dtype=bool), decay, 1)
    least: Array = np.fmin(decay, 1).min(axis=1)
    return least


# **** BipartiteMatch ****


def _infer_bipartite_match(inference: Inference) -> list[Shape]:
    check_ranks(inference, (2,), ("dist_mat",))
    return [(1, dim_of(inference.shape(0), 1, "columns"))] * 2


@op(
    "BipartiteMatch",
    "dist_mat: T -> col_to_row_match_indices: int32, col_to_row_match_dist: T",
    domain="lite",
    types={"T": FLOATS},
    attributes={"match_type": choice("bipartite", "per_prediction"), "dist_threshold": 0.5},
    infer=_infer_bipartite_match,
)
def bipartite_match(dist_mat: Array, *, match_type: str, dist_threshold: float) -> tuple[Array, Array]:
    """Greedy matching of columns to rows [K, M], the greatest value first: row indices and values [1, M].

    Unmatched columns have index -1 and value 0; values below 1e-6 never match. ``per_prediction`` then gives
    each unmatched column its best row if that value is at least ``dist_threshold``.
    """
    _, columns = dist_mat.shape
    indices, values = np.full(columns, -1, np.int32), np.zeros(columns, dist_mat.dtype)
    usable = np.where(dist_mat < 1e-6, -np.inf, dist_mat)
    left = usable.T.copy()
    for _ in range(min(dist_mat.shape)):
        column, row = np.unravel_index(np.argmax(left), left.shape)
        if left[column, row] == -np.inf:
            break
        indices[column], values[column] = row, left[column, row]
        left[column], left[:, row] = -np.inf, -np.inf
    if match_type == "per_prediction" and dist_mat.size:
        best, most = usable.argmax(axis=0), usable.max(axis=0)
        more = (indices == -1) & (most >= dist_threshold)
        indices[more], values[more] = best[more], most[more]
    return indices[None], values[None]
