"""Detection operators that only older releases of Paddle and Paddle-Lite have."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.lod import Sequences
from lite_paddle.lowering.operators.detection import minus_one_when_empty
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.sequences import offsets_of_lengths
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

#: A score that no candidate has; candidates must be above it.
_NO_SCORE = -3e38
I64 = DType.INT64


# **** retinanet_detection_output ****


@lowers("retinanet_detection_output")
def retinanet_detection_output(op: SourceOp, context: Context) -> None:
    """Decode the best scores of each level, and suppress within each class; rows are ordered by image and score."""
    levels = list(zip(*(context.inputs(op, slot) for slot in ("BBoxes", "Scores", "Anchors"))))
    if not levels:
        raise Unlowerable("it has no levels")
    info, attrs = context.input(op, "ImInfo"), op.attrs
    boxes = [_decoded(context, deltas, anchors, info) for deltas, _, anchors in levels]
    # NOTE: the threshold of the last level, which has the largest boxes, is 0.
    thresholds = [float(attrs["score_threshold"])] * (len(levels) - 1) + [0.0]
    limit = int(attrs["nms_top_k"])
    scores = [_best(context, given, threshold, limit) for (_, given, _), threshold in zip(levels, thresholds)]
    attributes: dict[str, Any] = {
        "score_threshold": _NO_SCORE,
        "nms_top_k": -1,
        "keep_top_k": int(attrs["keep_top_k"]),
        "nms_threshold": float(attrs["nms_threshold"]),
        "nms_eta": float(attrs["nms_eta"]),
        "normalized": 0,
        "background_label": -1,
    }
    joined = context.node("Concat", boxes, {"axis": 1})
    by_class = context.transpose(context.node("Concat", scores, {"axis": 1}), (0, 2, 1))
    found, index, counts = context.nodes(
        "MulticlassNms", [joined, by_class, None], attributes, outputs=3, domain="lite"
    )
    count = context.node("Shape", [joined], {"start": 1, "end": 2})
    image = context.node("Div", [context.cast(context.reshape(index, [-1]), I64), count])
    first_label_is_1 = context.builder.constant(np.array([1, 0, 0, 0, 0, 0]).astype(found.dtype.numpy))
    context.bind(op, "Out", context.node("Add", [_by_score(context, found, image), first_label_is_1]))
    _bind_images(op, context, counts)


def _decoded(context: Context, deltas: Value, anchors: Value, info: Value) -> Value:
    """Return corners [N, M, 4] in the original image, whose size and scale are in ``info`` [N, 3]."""
    coding: dict[str, Any] = {"code_type": "decode_center_size", "box_normalized": 0}
    corners = context.node("BoxCoder", [anchors, None, deltas], coding, domain="lite")
    scale = context.reshape(_column(context, info, 2, 3), [-1, 1, 1])
    scaled = context.node("Div", [corners, scale])
    return context.node("BoxClip", [scaled, info], domain="lite")


def _column(context: Context, x: Value, start: int, end: int) -> Value:
    ints = context.builder.ints
    return context.node("Slice", [x, ints(start), ints(end), ints(1)])


def _best(context: Context, scores: Value, threshold: float, limit: int) -> Value:
    """Return scores [N, M, C] in which only the best ``limit`` of an image (-1: all) above a threshold are left."""
    nothing = context.scalar(_NO_SCORE, scores)
    above = context.node("Greater", [scores, context.scalar(threshold, scores)])
    kept = context.node("Where", [above, scores, nothing])
    if limit < 0:
        return kept
    flat = context.node("Flatten", [kept], {"axis": 1})
    size = context.node("Shape", [flat], {"start": 1})
    least = context.node("Min", [size, context.builder.ints(limit)])
    best, positions = context.nodes("TopK", [flat, least], {"axis": 1}, outputs=2)
    erased = context.node("Expand", [nothing, context.node("Shape", [flat])])
    chosen = context.node("ScatterElements", [erased, positions, best], {"axis": 1})
    return context.node("Reshape", [chosen, context.node("Shape", [scores])])


def _by_score(context: Context, rows: Value, image: Value) -> Value:
    """Sort rows of (class, score, ...) by their image, then from the best score down; ties keep their order."""
    count = context.node("Shape", [rows], {"start": 0, "end": 1})
    scores = context.reshape(_column(context, rows, 1, 2), [-1])
    order = context.nodes("TopK", [scores, count], {"axis": 0}, outputs=2)[1]
    zero, one = (context.scalar(n, I64) for n in (0, 1))
    positions = context.node("Range", [zero, context.reshape(count, []), one])
    keys = context.node("Mul", [context.node("Gather", [image, order], {"axis": 0}), count])
    keys = context.node("Add", [keys, positions])
    by_image = context.nodes("TopK", [keys, count], {"axis": 0, "largest": 0}, outputs=2)[1]
    return context.node("Gather", [rows, context.node("Gather", [order, by_image], {"axis": 0})], {"axis": 0})


def _bind_images(op: SourceOp, context: Context, counts: Value) -> None:
    """Make the rows of each image a sequence, if there may be several images."""
    if counts.shape != (1,):
        offsets = offsets_of_lengths(context, counts)
        for source in op.outputs.get("Out", ()):
            context.bind_sequences(source, Sequences(offsets=offsets))


# **** locality_aware_nms, decode_bboxes ****


@lowers("locality_aware_nms")
def locality_aware_nms(op: SourceOp, context: Context) -> None:
    attrs = op.attrs
    attributes = {
        **{name: float(attrs[name]) for name in ("score_threshold", "nms_threshold", "nms_eta")},
        **{name: int(attrs[name]) for name in ("nms_top_k", "keep_top_k", "background_label", "normalized")},
    }
    inputs = [context.input(op, "BBoxes"), context.input(op, "Scores")]
    found, counts = context.nodes("LocalityAwareNms", inputs, attributes, outputs=2, domain="lite")
    context.bind(op, "Out", minus_one_when_empty(context, found))
    _bind_images(op, context, counts)


@lowers("decode_bboxes")
def decode_bboxes(op: SourceOp, context: Context) -> None:
    """Decode an SSD's offsets from prior boxes; the input Prior has the boxes, and then their variances."""
    if not op.attrs["share_location"]:
        raise Unlowerable("it has boxes for each class (share_location is false)")
    given, count = context.input(op, "Loc"), int(op.attrs["num_priors"])
    offsets = context.reshape(given, [-1, count, 4])
    flat = context.reshape(context.input(op, "Prior"), [1, -1, 4])
    priors = _column(context, flat, 0, count)
    if not op.attrs["variance_encoded_in_target"]:
        offsets = context.node("Mul", [offsets, _column(context, flat, count, 2 * count)])

    def half(x: Value, number: int) -> Value:
        return context.node("Slice", [x, *(context.builder.ints(n) for n in (2 * number, 2 * number + 2, 2))])

    low, high = half(priors, 0), half(priors, 1)
    size = context.node("Sub", [high, low])
    kind = str(op.attrs["code_type"])
    if kind == "corner":
        result = context.node("Add", [priors, offsets])
    elif kind == "corner_size":
        sizes = context.node("Concat", [size, size], {"axis": 2})
        result = context.node("Add", [priors, context.node("Mul", [offsets, sizes])])
    elif kind == "center_size":
        two = context.scalar(2, size)
        center = context.node("Div", [context.node("Add", [low, high]), two])
        center = context.node("Add", [context.node("Mul", [half(offsets, 0), size]), center])
        reach = context.node("Div", [context.node("Mul", [context.node("Exp", [half(offsets, 1)]), size]), two])
        corners = [context.node(type_, [center, reach]) for type_ in ("Sub", "Add")]
        result = context.node("Concat", corners, {"axis": 2})
    else:
        raise Unlowerable(f"its code_type is {kind!r}; Lite has corner, corner_size and center_size")
    context.bind(op, "Bbox", context.node("Reshape", [result, context.node("Shape", [given])]))
