"""Expansion of multi-class non-maximum suppression, by ONNX's NonMaxSuppression."""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.writer.expansions.formula import Formula, expands
from lite_onnx.writer.problems import Unwritable

_REMEDY = "write the model up to its boxes and scores, and compute the rest with Lite"


@expands("MulticlassNms")
def multiclass_nms(
    f: Formula,
    bboxes: Value,
    scores: Value,
    rois_num: Value | None,
    *,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    background_label: int,
    normalized: int,
    nms_threshold: float,
    nms_eta: float,
) -> list[Value]:
    """Compute rows [K, 6], indices [K, 1] and numbers of rows per image [N] of boxes [N, M, 4] and scores [N, C, M].

    ONNX's operator sorts its result like Lite's, by image, class and score. TopK, which orders equal scores in the same
    way, selects the best candidates of each class before it, and the best rows of each image after it.
    """
    if rois_num is not None:
        raise Unwritable("ONNX's NonMaxSuppression does not support boxes per class (rois_num)", _REMEDY)
    if not normalized:
        raise Unwritable("ONNX's NonMaxSuppression does not support boxes in integer pixels (normalized=0)", _REMEDY)
    if nms_eta < 1:
        raise Unwritable("ONNX's NonMaxSuppression does not support a decreasing threshold (nms_eta)", _REMEDY)
    candidates = _candidates(f, scores, nms_top_k, background_label)
    limits = [np.float32(nms_threshold), np.float32(score_threshold)]
    chosen = f(
        "NonMaxSuppression",
        f.cast(bboxes, DType.FLOAT32),
        f.cast(candidates, DType.FLOAT32),
        f.size(bboxes, 1),
        *(f.builder.constant(np.array([limit])) for limit in limits),
    )  # [K, 3]: image, class, box
    if keep_top_k >= 0:
        chosen = _best_of_each_image(f, scores, chosen, keep_top_k)
    image, label, box = (f.part(chosen, i, i + 1) for i in range(3))
    values = f("Unsqueeze", f("GatherND", scores, chosen), [1])
    corners = f("GatherND", bboxes, f("Concat", image, box, axis=1))
    rows = f("Concat", f.cast(label, scores.dtype), values, corners, axis=1)
    index = f("Add", f("Mul", image, f.size(bboxes, 1)), box)
    counts = f("ReduceSum", _of_each_image(f, image, bboxes), [0], keepdims=0)
    return [rows, f.cast(index, DType.INT32), f.cast(counts, DType.INT32)]


def _candidates(f: Formula, scores: Value, nms_top_k: int, background_label: int) -> Value:
    """Return scores [N, C, M] with minus infinity for boxes that are not candidates."""
    excluded = f("Expand", f.builder.constant(np.array(-np.inf, scores.dtype.numpy)), f("Shape", scores))
    if nms_top_k >= 0:
        count = f("Min", f.size(scores, 2), f.builder.ints(nms_top_k))
        best, indices = f.several("TopK", 2, scores, count, axis=2)
        scores = f("ScatterElements", excluded, indices, best, axis=2)
    if background_label >= 0:
        labels = f("Unsqueeze", f.count_up(f.size(scores, 1), DType.INT64), [0, 2])
        scores = f("Where", f("Equal", labels, f.scalar(background_label)), excluded, scores)
    return scores


def _of_each_image(f: Formula, image: Value, bboxes: Value) -> Value:
    """Convert image indices [K, 1] to one-hot rows [K, N]."""
    return f.cast(f("Equal", image, f.count_up(f.size(bboxes, 0), DType.INT64)), DType.INT64)


def _best_of_each_image(f: Formula, scores: Value, chosen: Value, keep_top_k: int) -> Value:
    """Select the rows [K, 3] that are among the best of their image, in unchanged order."""
    _, order = f.several("TopK", 2, f("GatherND", scores, chosen), f.size(chosen, 0), axis=0)
    image = f.part(f("Gather", chosen, order, axis=0), 0, 1)
    is_of = _of_each_image(f, image, scores)
    rank = f("GatherElements", f("CumSum", is_of, f.scalar(0)), image, axis=1)
    is_kept = f("LessOrEqual", f("Squeeze", rank, [1]), f.scalar(keep_top_k))
    kept = f("Compress", order, is_kept, axis=0)
    kept, _ = f.several("TopK", 2, kept, f.size(kept, 0), axis=0, largest=0)
    return f("Gather", chosen, kept, axis=0)
