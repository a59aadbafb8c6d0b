"""RoiAlign and NonMaxSuppression as ONNX defines them, and shape checks shared by detection operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_core.ir import Dim, Shape, fresh_dim
from lite_core.ops.boxes import suppress
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import choice, op

Array = np.ndarray[Any, Any]


def check_ranks(inference: Inference, ranks: Sequence[int | None], names: Sequence[str]) -> None:
    """Raise GraphError if the rank of an input is known and differs from the required one."""
    for index, (rank, name) in enumerate(zip(ranks, names)):
        shape = inference.shape(index) if inference.has(index) else None
        if rank is not None and shape is not None and len(shape) != rank:
            raise fail(f"{name} must have {rank} dimensions, has shape [{', '.join(map(str, shape))}]")


def check_size(shape: Shape | None, axis: int, wanted: Dim, name: str) -> None:
    """Raise GraphError if a size is known and differs from the wanted one."""
    if shape is None:
        return
    size = shape[axis]
    if isinstance(size, int) and isinstance(wanted, int) and size != wanted:
        raise fail(f"{name} must have size {wanted} on axis {axis}, has shape [{', '.join(map(str, shape))}]")


def dim_of(shape: Shape | None, axis: int, prefix: str) -> Dim:
    """Return a dimension of a shape, or a fresh symbol if the rank is unknown."""
    return fresh_dim(prefix) if shape is None else shape[axis]


# **** RoiAlign ****


def _infer_roi_align(inference: Inference) -> list[Shape]:
    check_ranks(inference, (4, 2, 1), ("X", "rois", "batch_indices"))
    x, rois, indices = (inference.shape(i) for i in range(3))
    check_size(rois, 1, 4, "rois")
    height, width = inference.attributes["output_height"], inference.attributes["output_width"]
    if height < 1 or width < 1:
        raise fail(f"output_height and output_width must be at least 1, are {height} and {width}")
    count = dim_of(indices, 0, "rois") if rois is None else rois[0]
    check_size(indices, 0, count, "batch_indices")
    return [(count, dim_of(x, 1, "channels"), height, width)]


def _interpolation(start: float, bin_size: float, bins: int, samples: int, size: int) -> tuple[Array, Array, Array]:
    """Compute the two neighbours of each sample along one axis, and their weights.

    Returns:
        Indices of the lower and the upper neighbours, and weights [2, bins, samples]. A sample more than
        one element outside the map has weight 0; other samples outside are moved to its edge.
    """
    offsets = (np.arange(samples) + 0.5) / max(samples, 1)
    position = start + (np.arange(bins)[:, None] + offsets) * bin_size
    inside = (position >= -1.0) & (position <= size)
    position = np.clip(position, 0, size - 1)
    low = np.floor(position).astype(np.int64)
    fraction = position - low
    return low, np.minimum(low + 1, size - 1), np.stack([1 - fraction, fraction]) * inside


def _roi_average(image: Array, y: tuple[Array, Array, Array], x: tuple[Array, Array, Array]) -> Array:
    """Return the mean of the samples of each bin: first interpolated between rows, then between columns."""
    if not y[0].size or not x[0].size:
        return np.zeros((len(image), y[0].shape[0], x[0].shape[0]))
    first = x[0].min()
    used = image[:, :, first : x[1].max() + 1]
    low, high, (lower, upper) = y[0], y[1], y[2][..., None]
    rows = (used[:, low] * lower + used[:, high] * upper).mean(axis=2)
    low, high, (lower, upper) = x[0] - first, x[1] - first, x[2]
    pooled: Array = (rows[..., low] * lower + rows[..., high] * upper).mean(axis=3)
    return pooled


def _roi_maximum(image: Array, y: tuple[Array, Array, Array], x: tuple[Array, Array, Array]) -> Array:
    """Return the maximum over the weighted neighbours of all samples of each bin.

    NOTE: this is not the maximum of the interpolated samples. ONNX takes it before the four terms are added.
    """
    rows, columns = np.stack(y[:2]), np.stack(x[:2])  # [2, bins, samples]
    terms = image[:, rows][..., columns] * y[2][..., None, None, None] * x[2]
    if not terms.size:
        return np.zeros((len(image), rows.shape[1], columns.shape[1]))
    maxima: Array = terms.max(axis=(1, 3, 4, 6))
    return maxima


@op(
    "RoiAlign",
    "X: T1, rois: T1, batch_indices: int64 -> Y: T1",
    types={"T1": FLOATS},
    attributes={
        "coordinate_transformation_mode": choice("half_pixel", "output_half_pixel"),
        "mode": choice("avg", "max"),
        "output_height": 1,
        "output_width": 1,
        "sampling_ratio": 0,
        "spatial_scale": 1.0,
    },
    infer=_infer_roi_align,
)
def roi_align(
    x: Array,
    rois: Array,
    batch_indices: Array,
    *,
    coordinate_transformation_mode: str,
    mode: str,
    output_height: int,
    output_width: int,
    sampling_ratio: int,
    spatial_scale: float,
) -> Array:
    """Regions of interest pooled to one size with bilinear samples (He et al., Mask R-CNN, 2017).

    X [N, C, H, W] and rois [K, 4] as (x1, y1, x2, y2) give Y [K, C, output_height, output_width]. Each bin
    has ``sampling_ratio`` x ``sampling_ratio`` samples; for 0, one sample per element of the bin, rounded up.
    ``output_half_pixel`` leaves the corners unchanged and makes regions at least 1 x 1;
    ``half_pixel`` moves them by half an element, so that element centres are at integers.
    """
    images, channels, height, width = x.shape
    if batch_indices.size and not 0 <= batch_indices.min() <= batch_indices.max() < images:
        raise fail(f"batch_indices must be from 0 to {images - 1}, are {batch_indices.tolist()}")
    result = np.zeros((len(rois), channels, output_height, output_width), x.dtype)
    shifted = coordinate_transformation_mode == "half_pixel"
    corners = rois.astype(np.float64) * spatial_scale - (0.5 if shifted else 0.0)
    pool = _roi_average if mode == "avg" else _roi_maximum
    if x.size == 0:
        return result
    for index, (left, top, right, bottom) in enumerate(corners.tolist()):
        h, w = bottom - top, right - left
        if not shifted:
            h, w = max(h, 1.0), max(w, 1.0)
        bin_h, bin_w = h / output_height, w / output_width
        samples_h = sampling_ratio if sampling_ratio > 0 else max(int(np.ceil(bin_h)), 0)
        samples_w = sampling_ratio if sampling_ratio > 0 else max(int(np.ceil(bin_w)), 0)
        result[index] = pool(
            x[batch_indices[index]],
            _interpolation(top, bin_h, output_height, samples_h, height),
            _interpolation(left, bin_w, output_width, samples_w, width),
        )
    return result


# **** NonMaxSuppression ****


def _infer_nms(inference: Inference) -> list[Shape]:
    check_ranks(inference, (3, 3), ("boxes", "scores"))
    boxes, scores = inference.shape(0), inference.shape(1)
    check_size(boxes, 2, 4, "boxes")
    if boxes is not None:
        check_size(scores, 0, boxes[0], "scores")
        check_size(scores, 2, boxes[1], "scores")
    if inference.attributes["center_point_box"] not in (0, 1):
        raise fail(f"center_point_box must be 0 or 1, is {inference.attributes['center_point_box']}")
    return [(fresh_dim("selected"), 3)]


def _corners(boxes: Array, center_point_box: int) -> Array:
    """Convert boxes to corners (low, low, high, high)."""
    if center_point_box:
        half = boxes[..., 2:] / 2
        boxes = np.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], axis=-1)
    return np.concatenate(
        [np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])], axis=-1
    )


@op(
    "NonMaxSuppression",
    "boxes: float32, scores: float32, max_output_boxes_per_class: int64?, iou_threshold: float32?, "
    "score_threshold: float32? -> selected_indices: int64",
    attributes={"center_point_box": 0},
    infer=_infer_nms,
)
def non_max_suppression(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array | None,
    iou_threshold: Array | None,
    score_threshold: Array | None,
    *,
    center_point_box: int,
) -> Array:
    """Boxes that survive greedy suppression, for each image and class: rows (image, class, box) [K, 3].

    boxes [N, M, 4] as (y1, x1, y2, x2), any two opposite corners, or (x, y, width, height) around the
    centre; scores [N, C, M]. A box is dropped if its overlap with a better one is above ``iou_threshold``
    (default 0) or its score is not above ``score_threshold``. At most ``max_output_boxes_per_class``
    boxes are kept (default 0).
    """
    limit = 0 if max_output_boxes_per_class is None else int(max_output_boxes_per_class.reshape(()))
    overlap = 0.0 if iou_threshold is None else float(iou_threshold.reshape(()))
    rows: list[Array] = [np.zeros((0, 3), np.int64)]
    if limit > 0:
        for image, corners in enumerate(_corners(boxes, center_point_box)):
            for label, class_scores in enumerate(scores[image]):
                candidates = np.argsort(-class_scores, kind="stable")
                if score_threshold is not None:
                    candidates = candidates[class_scores[candidates] > float(score_threshold.reshape(()))]
                kept = suppress(corners, candidates, overlap, limit=limit)
                rows.append(np.stack([np.full_like(kept, image), np.full_like(kept, label), kept], axis=1))
    return np.concatenate(rows)
