"""Elements at indices: the largest k, boxes that do not overlap better ones, and sums at indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lite_core.backend import No, Yes
from lite_core.ir import Array, Node
from lite_core.ops.gather import elementwise_index, nd_index
from lite_numba.backend import backend
from lite_numba.kernels.numpy_calls import FLOATS, by_reference
from lite_numba.kernels.rows import along

# **** TopK ****


def _largest_k(x: Array, k: Array, *, axis: int, largest: int, sorted: int, out: Any) -> Any:
    rows, (values, indices) = along(x, axis), out
    shape = (rows.shape[0], int(k.reshape(-1)[0]), rows.shape[2])
    values = np.empty(shape, x.dtype) if values is None else values.reshape(shape)
    return rows, bool(largest), values, np.empty(shape, np.int64) if indices is None else indices.reshape(shape)


@backend.kernel("TopK", prepare=_largest_k)
def top_k(x, largest, values, indices):
    outer, _, inner = x.shape
    heap = np.empty(values.shape[1], np.int64)
    for o in range(outer):
        for i in range(inner):
            row = x[o, :, i]
            _select(row, heap, largest)
            for k in range(heap.size):
                values[o, k, i], indices[o, k, i] = row[heap[k]], heap[k]


def _select(row, heap, largest):
    """Fill ``heap`` with the positions of as many largest or smallest elements, the most extreme one first.

    While the row is searched, the best positions so far are a heap whose root is the worst of them.
    """
    k = heap.size
    for rank in range(k):
        heap[rank] = rank
    for root in range(k // 2 - 1, -1, -1):
        _sink(heap, root, k, row, largest)
    for candidate in range(k, row.size if k else 0):
        if _beats(row, candidate, heap[0], largest):
            heap[0] = candidate
            _sink(heap, 0, k, row, largest)
    for last in range(k - 1, 0, -1):  # the worst of the rest goes behind it
        heap[0], heap[last] = heap[last], heap[0]
        _sink(heap, 0, last, row, largest)


def _sink(heap, root, count, row, largest):
    while 2 * root + 1 < count:
        child = 2 * root + 1
        if child + 1 < count and _beats(row, heap[child], heap[child + 1], largest):
            child += 1
        if _beats(row, heap[child], heap[root], largest):
            return
        heap[root], heap[child] = heap[child], heap[root]
        root = child


def _beats(row, a, b, largest):
    """Tell whether position ``a`` comes before ``b``: by their elements, NaN as the largest, then by position."""
    x, y = row[a], row[b]
    if x == y or (x != x and y != y):
        return a < b
    above = x != x or x > y  # false if y is NaN
    return above == largest


# **** suppression of boxes, in float32 if they are: thresholds are compared in it ****


def _area(box, offset):
    width, height = box[2] - box[0], box[3] - box[1]
    return 0 * offset if width < 0 or height < 0 else (width + offset) * (height + offset)


def _overlap(a, b, offset):
    """Return the intersection over union; NaN for two boxes without area."""
    width = np.minimum(a[2], b[2]) - np.maximum(a[0], b[0])
    height = np.minimum(a[3], b[3]) - np.maximum(a[1], b[1])
    if width < 0 or height < 0:
        return 0 * offset
    common = (width + offset) * (height + offset)
    return common / (_area(a, offset) + _area(b, offset) - common)


def _suppress(boxes, scores, least, most, threshold, limit, eta, offset, keep_degenerate, kept):
    """Store the positions of boxes that survive, best first, in ``kept``; return their number.

    Candidates are the ``most`` best boxes whose score is above ``least``, if that is given. One survives if no kept box
    overlaps it by more than the threshold, which is multiplied by ``eta`` after each kept box while it is above 0.5. At
    most ``limit`` are kept. ``offset`` is 1 if a box includes its last pixel. With ``keep_degenerate``, boxes without
    area do not suppress each other.
    """
    positions, above, count = np.empty(scores.size, np.int64), np.empty(scores.size, scores.dtype), 0
    for k in range(scores.size):
        if least is None or scores[k] > least:
            positions[count], above[count] = k, -np.inf if scores[k] != scores[k] else scores[k]
            count += 1
    best = np.empty(count if most < 0 else min(most, count), np.int64)
    _select(above[:count], best, True)
    found = 0
    for rank in range(best.size):
        candidate = positions[best[rank]]
        is_free = found < limit and threshold == threshold
        for k in range(found):
            overlap = _overlap(boxes[kept[k]], boxes[candidate], offset)
            if not overlap <= threshold and not (keep_degenerate and overlap != overlap):
                is_free = False
                break
        if is_free:
            kept[found] = candidate
            found += 1
            if eta < 1 and threshold > 0.5:
                threshold *= eta
    return found


def _nms(boxes: Array, scores: Array, *limits: Array | None, center_point_box: int) -> Any:
    most, overlap, score = (None if limit is None else limit.reshape(()).item() for limit in limits)
    if center_point_box:
        half = boxes[..., 2:] / 2
        boxes = np.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], axis=-1)
    low, high = np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])
    return np.concatenate([low, high], axis=-1), scores, most or 0, overlap or 0.0, score


@backend.kernel("NonMaxSuppression", prepare=_nms)
def non_max_suppression(boxes, scores, most, threshold, least):
    images, classes, count = scores.shape
    most = min(max(most, 0), count)
    rows, found, kept = np.empty((images * classes * most, 3), np.int64), 0, np.empty(count, np.int64)
    for image in range(images):
        for label in range(classes if most else 0):
            survivors = _suppress(
                boxes[image], scores[image, label], least, -1, threshold, most, 1.0, boxes.dtype.type(0), True, kept
            )
            for k in range(survivors):
                rows[found, 0], rows[found, 1], rows[found, 2] = image, label, kept[k]
                found += 1
    return rows[:found]


def _boxes_shared_by_classes(node: Node) -> Yes | No:
    scores = node.inputs[1]
    return Yes() if scores is not None and scores.type.rank == 3 else No("the loop needs scores [N, C, M]")


def _multiclass(boxes: Array, scores: Array, _: Any, *, nms_top_k: int, keep_top_k: int, **attributes: Any) -> Any:
    most = keep_top_k if keep_top_k >= 0 else scores.shape[1] * scores.shape[2]
    names = ("score_threshold", "background_label", "nms_threshold", "nms_eta")
    offset = 0.0 if attributes["normalized"] else 1.0
    return boxes, scores, nms_top_k, most, offset, *(attributes[name] for name in names)


@backend.kernel("MulticlassNms", domain="lite", dtypes=FLOATS, when=_boxes_shared_by_classes, prepare=_multiclass)
def multiclass_nms(boxes, scores, most_of_class, most, offset, least, background, threshold, eta):
    images, classes, count = scores.shape
    rows, targets = np.empty((scores.size, 6), boxes.dtype), np.empty((scores.size, 1), np.int32)
    counts, kept, found = np.zeros(images, np.int32), np.empty(count, np.int64), 0
    for image in range(images):
        first = found
        for label in range(classes):
            if label != background:
                survivors = _suppress(
                    boxes[image], scores[image, label], least, most_of_class, threshold, count, eta, offset, False, kept
                )
                for k in range(survivors):
                    rows[found, 0], rows[found, 1] = label, scores[image, label, kept[k]]
                    for side in range(4):
                        rows[found, 2 + side] = boxes[image, kept[k], side]
                    targets[found, 0] = image * count + kept[k]
                    found += 1
        if found - first > most:  # the best of all classes stay in their order
            best, is_best = np.empty(most, np.int64), np.zeros(found, np.bool_)
            _select(rows[first:found, 1], best, True)
            for k in range(most):
                is_best[first + best[k]] = True
            last, found = found, first
            for row in range(first, last):
                if is_best[row]:
                    for column in range(6):
                        rows[found, column] = rows[row, column]
                    targets[found, 0] = targets[row, 0]
                    found += 1
        counts[image] = found - first
    return rows[:found], targets[:found], counts


for _op in ("BipartiteMatch", "BoxClip", "BoxCoder", "IouSimilarity", "MatrixNms", "MulticlassNms", "YoloBox"):
    by_reference(_op, domain="lite")


# **** sums at indices; other elements at indices are stored by NumPy ****


def _adds(node: Node) -> Yes | No:
    return Yes() if node.attributes.get("reduction") == "add" else No("the loop adds")


def _elements(data: Array, indices: Array, updates: Array, *, axis: int, reduction: str, out: Array) -> Any:
    """Each index replaces the position along one axis."""
    out[...] = data
    index = elementwise_index(data.shape, indices, axis % data.ndim)
    targets = np.ravel_multi_index([i % np.maximum(size, 1) for i, size in zip(index, data.shape)], data.shape)
    return targets.reshape(-1), updates.reshape(-1, 1), out.reshape(-1, 1)


def _slices(data: Array, indices: Array, updates: Array, *, reduction: str, out: Array) -> Any:
    """Each tuple of indices addresses one slice."""
    out[...] = data
    targets, depth = np.zeros(indices.shape[:-1], np.int64), indices.shape[-1]
    for size, index in zip(data.shape, nd_index(data.shape, indices)):
        targets = targets * size + index % np.maximum(size, 1)
    rest = math.prod(data.shape[depth:])
    slices = out.reshape(math.prod(data.shape[:depth]), rest)
    return targets.reshape(-1), updates.reshape(targets.size, rest), slices


@backend.kernel("ScatterElements", when=_adds, prepare=_elements)
@backend.kernel("ScatterND", when=_adds, prepare=_slices)
def scatter_add(targets, updates, out):
    for i in range(targets.size):
        for k in range(out.shape[1]):
            out[targets[i], k] += updates[i, k]


by_reference("ScatterElements")
by_reference("ScatterND")
