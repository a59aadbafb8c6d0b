"""Non-maximum suppression over classes, by ONNX's operator of that name."""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.writer.expansions.formula import Formula, expands
from lite_onnx.writer.problems import Unwritable

_BY_LITE = "write the model up to its boxes and scores, and compute the rest by Lite"


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
    """Rows [K, 6], index [K, 1] and how many rows each image has [N], for boxes [N, M, 4] and scores [N, C, M].

    ONNX's operator lists what it keeps as Lite's does, by image, class and score. What comes before and after it, the
    best candidates of each class and the best of each image, is said with TopK, whose first of equals is the same.
    """
    if rois_num is not None:
        raise Unwritable("ONNX's NonMaxSuppression has no boxes of each class (rois_num)", _BY_LITE)
    if not normalized:
        raise Unwritable("ONNX's NonMaxSuppression has no boxes of whole pixels (normalized=0)", _BY_LITE)
    if nms_eta < 1:
        raise Unwritable("ONNX's NonMaxSuppression has no threshold that falls (nms_eta)", _BY_LITE)
    wanted = _candidates(f, scores, nms_top_k, background_label)
    limits = [np.float32(nms_threshold), np.float32(score_threshold)]
    chosen = f(
        "NonMaxSuppression",
        f.cast(bboxes, DType.FLOAT32),
        f.cast(wanted, DType.FLOAT32),
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
    """Scores [N, C, M], minus infinity for what is not to be looked at."""
    never = f("Expand", f.builder.constant(np.array(-np.inf, scores.dtype.numpy)), f("Shape", scores))
    if nms_top_k >= 0:
        most = f("Min", f.size(scores, 2), f.builder.ints(nms_top_k))
        best, places = f.several("TopK", 2, scores, most, axis=2)
        scores = f("ScatterElements", never, places, best, axis=2)
    if background_label >= 0:
        labels = f("Unsqueeze", f.count_up(f.size(scores, 1), DType.INT64), [0, 2])
        scores = f("Where", f("Equal", labels, f.scalar(background_label)), never, scores)
    return scores


def _of_each_image(f: Formula, image: Value, bboxes: Value) -> Value:
    """[K, 1] -> [K, N]: 1 where a row belongs to an image."""
    return f.cast(f("Equal", image, f.count_up(f.size(bboxes, 0), DType.INT64)), DType.INT64)


def _best_of_each_image(f: Formula, scores: Value, chosen: Value, keep_top_k: int) -> Value:
    """Those of the rows [K, 3] that are among the best of their image, in their order."""
    everything = f.size(chosen, 0)
    _, order = f.several("TopK", 2, f("GatherND", scores, chosen), everything, axis=0)
    image = f.part(f("Gather", chosen, order, axis=0), 0, 1)
    is_of = _of_each_image(f, image, scores)
    rank = f("GatherElements", f("CumSum", is_of, f.scalar(0)), image, axis=1)
    is_kept = f("LessOrEqual", f("Squeeze", rank, [1]), f.scalar(keep_top_k))
    kept = f("Compress", order, is_kept, axis=0)
    kept, _ = f.several("TopK", 2, kept, f.size(kept, 0), axis=0, largest=0)
    return f("Gather", chosen, kept, axis=0)
