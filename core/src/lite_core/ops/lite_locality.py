"""LocalityAwareNms of the domain ``lite`` (from Paddle): suppression that first joins neighbours."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from lite_core.ir import Shape, fresh_dim
from lite_core.ops.boxes import overlaps
from lite_core.ops.detection import check_ranks, check_size, dim_of
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import op, required

Array = np.ndarray[Any, Any]
Point = tuple[float, float]
Edge = tuple[Point, Point]

#: Numbers that a box may have: two corners, or the points of a polygon.
_SIZES = (4, 8, 16, 24, 32)


def _infer_locality_aware_nms(inference: Inference) -> list[Shape]:
    check_ranks(inference, (3, 3), ("bboxes", "scores"))
    boxes, scores = inference.shape(0), inference.shape(1)
    if boxes is not None and isinstance(boxes[2], int) and boxes[2] not in _SIZES:
        raise fail(f"bboxes must have one of {_SIZES} numbers for each box, have {boxes[2]}")
    if boxes is not None:
        check_size(scores, 0, boxes[0], "scores")
        check_size(scores, 2, boxes[1], "scores")
    images = dim_of(scores, 0, "images") if boxes is None else boxes[0]
    return [(fresh_dim("detections"), dim_of(boxes, 2, "numbers") + 2), (images,)]


@op(
    "LocalityAwareNms",
    "bboxes: T, scores: T -> out: T, rois_num: int32",
    domain="lite",
    types={"T": FLOATS},
    attributes={
        "score_threshold": required("float"),
        "nms_top_k": required("int"),
        "keep_top_k": required("int"),
        "nms_threshold": 0.3,
        "nms_eta": 1.0,
        "background_label": -1,
        "normalized": 1,
    },
    infer=_infer_locality_aware_nms,
)
def locality_aware_nms(
    bboxes: Array,
    scores: Array,
    *,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float,
    nms_eta: float,
    background_label: int,
    normalized: int,
) -> tuple[Array, Array]:
    """Non-maximum suppression of boxes that lie in the order of rows (Zhou et al., EAST, 2017).

    bboxes [N, M, S] are corners (x1, y1, x2, y2), or polygons of S / 2 points with S 8, 16, 24 or 32; scores [N, C, M].
    In each class but ``background_label``, a box that overlaps the one before it by more than ``nms_threshold`` is
    joined with it: coordinates are averaged by their scores, scores are added. The ``nms_top_k`` best joined boxes
    with a sum above ``score_threshold`` are then suppressed, and the ``keep_top_k`` best of all classes are kept (-1:
    all, in both). The outputs are rows [K, 2 + S] of class, score and box, ordered by image, class and score, and the
    number of rows of each image [N]. Boxes joined in a class stay joined in the classes behind it, as in Paddle.
    """
    offset = 0.0 if normalized else 1.0
    overlap = _polygon_overlaps if bboxes.shape[2] > 4 else lambda a, b: overlaps(a, b, offset)
    rows, counts = [np.zeros((0, 2 + bboxes.shape[2]), bboxes.dtype)], []
    for boxes, class_scores in zip(bboxes.copy(), scores.copy()):
        picked: list[tuple[int, int]] = []
        for label, values in enumerate(class_scores):
            if label == background_label:
                continue
            joined = _join_neighbours(boxes, values, nms_threshold, overlap)
            candidates = joined[values[joined] > score_threshold]
            candidates = candidates[np.argsort(-values[candidates], kind="stable")]
            candidates = candidates[:nms_top_k] if nms_top_k >= 0 else candidates
            picked += [(label, i) for i in _suppressed(boxes, candidates.tolist(), nms_threshold, nms_eta, overlap)]
        if 0 <= keep_top_k < len(picked):
            best = np.argsort([-class_scores[p] for p in picked], kind="stable")[:keep_top_k]
            picked = sorted((picked[i] for i in best), key=lambda p: p[0])
        labels, positions = np.array(picked, np.int64).reshape(-1, 2).T
        table = np.column_stack([labels, class_scores[labels, positions], boxes[positions]])
        rows.append(table.astype(bboxes.dtype))
        counts.append(len(picked))
    return np.concatenate(rows), np.array(counts, np.int32)


_Overlap = Callable[[Array, Array], Array]


def _join_neighbours(boxes: Array, scores: Array, threshold: float, overlap: _Overlap) -> Array:
    """Join boxes with the one before them, in place; return the indices of the boxes that are left."""
    left: list[int] = []
    for index, box in enumerate(boxes):
        if left and overlap(box, boxes[left[-1:]])[0] > threshold:
            last = left[-1]
            total = scores[index] + scores[last]
            boxes[last] = (box * scores[index] + boxes[last] * scores[last]) / total
            scores[last] = total
        else:
            left.append(index)
    return np.array(left, np.int64)


def _suppressed(boxes: Array, candidates: list[int], threshold: float, eta: float, overlap: _Overlap) -> list[int]:
    """Return the candidates, best first, whose overlaps with all kept ones before them are not above the threshold."""
    kept: list[int] = []
    for index in candidates:
        if kept and not (overlap(boxes[index], boxes[kept]) <= threshold).all():
            continue
        kept.append(index)
        if eta < 1 and threshold > 0.5:
            threshold *= eta
    return kept


# **** polygons ****


def _polygon_overlaps(polygon: Array, others: Array) -> Array:
    """Return intersection over union of a polygon [S] with each of others [K, S]; 0 if an area is 0."""
    return np.array([_polygon_overlap(_points(polygon), _points(other)) for other in others])


def _points(polygon: Array) -> list[Point]:
    return [(float(x), float(y)) for x, y in polygon.reshape(-1, 2)]


def _polygon_overlap(first: list[Point], second: list[Point]) -> float:
    """Return intersection over union of two polygons of any shape; a point is inside by the even-odd rule.

    No edges cross between two neighbours of the sorted coordinates of vertices and crossings, so that the area between
    them is the length of the cut in their middle times their distance.
    """
    if not _boxes_meet(first, second):
        return 0.0
    edges = [_edges(first), _edges(second)]
    both = [*edges[0], *edges[1]]
    stops = sorted({x for x, _ in (*first, *second)} | {x for i, e in enumerate(both) for x in _crossings(e, both[:i])})
    areas, common = [0.0, 0.0], 0.0
    for low, high in pairwise(stops):
        cuts = [_cut(polygon, (low + high) / 2) for polygon in edges]
        for index, cut in enumerate(cuts):
            areas[index] += (high - low) * sum(b - a for a, b in cut)
        common += (high - low) * sum(max(0.0, min(b, d) - max(a, c)) for a, b in cuts[0] for c, d in cuts[1])
    return common / (areas[0] + areas[1] - common) if min(*areas, common) > 0 else 0.0


def _boxes_meet(first: list[Point], second: list[Point]) -> bool:
    return all(
        max(p[axis] for p in a) >= min(p[axis] for p in b)
        for axis in (0, 1)
        for a, b in ((first, second), (second, first))
    )


def _edges(polygon: list[Point]) -> list[Edge]:
    """Return the edges that are not vertical, left end first."""
    found = ((min(a, b), max(a, b)) for a, b in zip(polygon, [*polygon[1:], polygon[0]]))
    return [(a, b) for a, b in found if a[0] < b[0]]


def _height(edge: Edge, x: float) -> float:
    (x0, y0), (x1, y1) = edge
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def _crossings(edge: Edge, others: list[Edge]) -> list[float]:
    """Return the horizontal positions where an edge crosses others."""
    found = []
    for other in others:
        low, high = max(edge[0][0], other[0][0]), min(edge[1][0], other[1][0])
        if low >= high:
            continue
        before, after = (_height(edge, x) - _height(other, x) for x in (low, high))
        if before * after < 0:
            found.append(low + (high - low) * before / (before - after))
    return found


def _cut(edges: list[Edge], x: float) -> list[Point]:
    """Return the spans (low, high) that a polygon has on the vertical line at ``x``."""
    heights = sorted(_height(edge, x) for edge in edges if edge[0][0] < x < edge[1][0])
    return list(zip(heights[::2], heights[1::2]))
