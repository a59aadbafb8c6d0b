"""Cases of YoloBox, MulticlassNms, MatrixNms, BipartiteMatch (domain ``lite``)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.box_initializers import MARGIN, boxes, first_accepted, joint_tensors, scores
from lite_conformance.cases.tensors import Array, Tensor, const, t, values
from lite_conformance.judge.tolerances import EXACT, SCALED
from lite_core import ops
from lite_core.ir import DType

# **** YoloBox ****

yolo = table("YoloBox", SCALED, domain="lite")


def _sure_or_not(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return logits with sigmoid above 0.7 or below 0.05: no confidence is near the thresholds 0.1 and 0.4."""
    high, low = random.uniform(1, 2, shape), random.uniform(-4, -3, shape)
    return np.where(random.integers(0, 2, shape), high, low).astype(dtype.numpy)


def _yolo_inputs(
    images: int, size: tuple[int, int], anchors: tuple[int, ...], class_num: int, aware: int
) -> tuple[Tensor, Tensor]:
    channels = len(anchors) // 2 * (5 + class_num + aware)
    sizes = [(96 + 32 * i, 160 - 16 * i) for i in range(images)]
    return t(images, channels, *size, init=_sure_or_not), values(np.array(sizes).reshape(-1, 2), "int32")


def _yolo(label: str, images: int, size: tuple[int, int], anchors: tuple[int, ...], classes: int, **more: Any) -> None:
    inputs = _yolo_inputs(images, size, anchors, classes, more.get("iou_aware", 0))
    attributes = {"conf_thresh": 0.4, **more}
    yolo(label, *inputs, outputs=2, anchors=anchors, class_num=classes, **attributes)


_ANCHORS = (10, 13, 16, 30, 33, 23)
_yolo("n1h3w5,a3,c2", 1, (3, 5), _ANCHORS, 2)
_yolo("n2h4w3,a2,c3", 2, (4, 3), (10, 14, 23, 27), 3)
_yolo("n1h5w4,a1,c1", 1, (5, 4), (10, 14), 1)
_yolo("n1h3w3,a3,c33", 1, (3, 3), _ANCHORS, 33)
_yolo("no-clip", 2, (3, 4), _ANCHORS, 2, clip_bbox=0)
_yolo("downsample16", 1, (4, 5), _ANCHORS, 2, downsample_ratio=16)
_yolo("downsample8,no-clip", 1, (4, 5), _ANCHORS, 2, downsample_ratio=8, clip_bbox=0)
_yolo("scale1.25", 2, (3, 4), _ANCHORS, 2, scale_x_y=1.25)
_yolo("scale1.25,no-clip", 1, (3, 4), _ANCHORS, 2, scale_x_y=1.25, clip_bbox=0)
_yolo("iou-aware", 2, (3, 4), _ANCHORS, 2, iou_aware=1)
_yolo("iou-aware,factor0.25", 1, (3, 4), _ANCHORS, 3, iou_aware=1, iou_aware_factor=0.25, conf_thresh=0.0)
_yolo("iou-factor-without-iou", 1, (3, 4), _ANCHORS, 2, iou_aware_factor=0.25)
_yolo("conf0,all-are-sure", 1, (3, 4), _ANCHORS, 2, conf_thresh=0.0)
_yolo("conf1,none-is-sure", 1, (3, 4), _ANCHORS, 2, conf_thresh=1.0)
_yolo("default-conf", 1, (3, 4), _ANCHORS, 2, conf_thresh=0.01)
_yolo("h13w13,a3,c4", 1, (13, 13), _ANCHORS, 4)
_yolo("n0,no-image", 0, (3, 4), _ANCHORS, 2)
yolo("scores-left-out", *_yolo_inputs(1, (3, 4), _ANCHORS, 2, 0), outputs=1, anchors=_ANCHORS, class_num=2)


@yolo.drawn
def draw_yolo(draw: Draw, dtype: DType) -> OpCase:
    anchors = tuple(draw(st.lists(st.sampled_from([(8, 16), (20, 12), (33, 31)]), min_size=1, max_size=3)))
    flat = tuple(side for pair in anchors for side in pair)
    classes, aware = draw(st.integers(1, 4)), draw(st.integers(0, 1))
    size = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    return yolo.case(
        *_yolo_inputs(draw(st.integers(1, 2)), size, flat, classes, aware),
        outputs=2,
        anchors=flat,
        class_num=classes,
        conf_thresh=draw(st.sampled_from([0.0, 0.4])),
        downsample_ratio=draw(st.sampled_from([8, 16, 32])),
        clip_bbox=draw(st.integers(0, 1)),
        scale_x_y=draw(st.sampled_from([1.0, 1.125])),
        iou_aware=aware,
    )


# **** MulticlassNms ****

multiclass = table("MulticlassNms", EXACT, domain="lite")
_EVERYTHING: dict[str, Any] = {"score_threshold": 0.1, "nms_top_k": -1, "keep_top_k": -1}


def _thresholds(attributes: dict[str, Any]) -> list[float]:
    """Return the overlap thresholds: several if ``nms_eta`` shrinks the threshold, else one."""
    found = [attributes.get("nms_threshold", 0.3)]
    while attributes.get("nms_eta", 1.0) < 1 and found[-1] > 0.5:
        found.append(found[-1] * attributes["nms_eta"])
    return found


def _nms_inputs(images: int, classes: int, many: int, attributes: dict[str, Any]) -> tuple[Tensor, Tensor]:
    offset = 0.0 if attributes.get("normalized", 1) else 1.0
    init = boxes(*_thresholds(attributes), offset=offset)
    return t(images, many, 4, init=init), t(images, classes, many, init=scores())


def _multiclass(label: str, images: int, classes: int, many: int, outputs: int = 3, **more: Any) -> None:
    attributes = {**_EVERYTHING, **more}
    multiclass(label, *_nms_inputs(images, classes, many, attributes), outputs=outputs, **attributes)


def _per_region(counts: list[int], classes: int, **more: Any) -> OpCase:
    """Return a case with a box for each class; ``counts`` has the number of regions of each image."""
    attributes = {**_EVERYTHING, **more}
    init = boxes(*_thresholds(attributes), offset=0.0 if attributes.get("normalized", 1) else 1.0, per_class=True)
    inputs = t(sum(counts), classes, 4, init=init), t(sum(counts), classes, init=scores())
    return multiclass.case(*inputs, values(np.array(counts, np.int64), "int32"), outputs=3, **attributes)


def _regions(label: str, counts: list[int], classes: int, **more: Any) -> None:
    case = _per_region(counts, classes, **more)
    multiclass(label, *case.inputs, outputs=3, **case.attributes)


#: Two 4 x 4 squares that share half their area: IoU 1/3, or 3/7 where the last pixel belongs to the boxes.
_half = values([[[0, 0, 4, 4], [0, 2, 4, 6]]])
_falling = values([[[0.75, 0.5]]])
_chain, _chain_scores = values([[[0, 0, 8, 4], [2, 0, 10, 4], [4, 0, 12, 4]]]), values([[[0.75, 0.5, 0.25]]])
_three, _three_scores = values([[[0, 0, 1, 1], [4, 4, 5, 5], [7, 7, 8, 8]]]), values([[[0.25, 0.75, 0.5]]])
_one_class: dict[str, Any] = {**_EVERYTHING, "background_label": -1}
_multiclass("n1c3m9", 1, 3, 9)
_multiclass("n2c4m20", 2, 4, 20)
_multiclass("n1c2m110,many", 1, 2, 110, nms_threshold=0.5)
_multiclass("n2c3m20,iou0.6", 2, 3, 20, nms_threshold=0.6)
_multiclass("n2c3m20,pixels", 2, 3, 20, normalized=0)
_multiclass("n2c3m12,no-background", 2, 3, 12, background_label=-1)
_multiclass("n2c3m12,background2", 2, 3, 12, background_label=2)
_multiclass("n2c3m20,top5", 2, 3, 20, nms_top_k=5)
_multiclass("n2c3m20,keep4", 2, 3, 20, keep_top_k=4, background_label=-1)
_multiclass("n2c3m20,top7,keep6", 2, 3, 20, nms_top_k=7, keep_top_k=6, background_label=-1)
_multiclass("n2c3m20,keep-more-than-there-are", 2, 3, 20, nms_top_k=99, keep_top_k=99)
_multiclass("n2c3m20,keep0", 2, 3, 20, keep_top_k=0)
_multiclass("n2c3m20,score0.6", 2, 3, 20, score_threshold=0.6)
_multiclass("n2c2m24,eta0.8", 2, 2, 24, nms_threshold=0.7, nms_eta=0.8)
_multiclass("n2c3m20,eta-below-half-is-nothing", 2, 3, 20, nms_threshold=0.4, nms_eta=0.5)
_multiclass("nothing-is-kept", 2, 3, 9, score_threshold=1.5)
_multiclass("only-background", 2, 1, 9)
_multiclass("m0,no-box", 2, 3, 0)
_multiclass("n0,no-image", 0, 3, 5)
_multiclass("1-output", 2, 3, 9, outputs=1)
_multiclass("2-outputs", 2, 3, 9, outputs=2)
multiclass("half-overlap,normalized", _half, _falling, outputs=3, **_one_class, nms_threshold=0.38)
multiclass("half-overlap,pixels", _half, _falling, outputs=3, **_one_class, nms_threshold=0.38, normalized=0)
multiclass("fallen-boxes-suppress-none", _chain, _chain_scores, outputs=3, **_one_class, nms_threshold=0.5)
multiclass("score-must-be-above", _three, _three_scores, outputs=3, **{**_one_class, "score_threshold": 0.5})
multiclass("constant-boxes", const(1, 9, 4, init=boxes(0.3)), t(1, 3, 9, init=scores()), outputs=3, **_EVERYTHING)
_regions("box-per-class,n2c3m15", [6, 9], 3)
_regions("box-per-class,n3c3m20,one-image-is-empty", [8, 0, 12], 3, background_label=-1)
_regions("box-per-class,n2c4m24,keep7", [11, 13], 4, keep_top_k=7, background_label=1)
_regions("box-per-class,n2c2m24,top6,pixels,iou0.5", [12, 12], 2, nms_top_k=6, normalized=0, nms_threshold=0.5)
_regions("box-per-class,nothing-is-kept", [3, 4], 3, score_threshold=1.5)


@multiclass.drawn
def draw_multiclass(draw: Draw, dtype: DType) -> OpCase:
    classes = draw(st.integers(1, 4))
    attributes = {
        "score_threshold": draw(st.sampled_from([0.1, 0.3, 0.7])),
        "nms_top_k": draw(st.sampled_from([-1, 3, 8])),
        "keep_top_k": draw(st.sampled_from([-1, 2, 5])),
        "background_label": draw(st.integers(-1, classes - 1)),
        "normalized": draw(st.integers(0, 1)),
        "nms_threshold": draw(st.sampled_from([0.3, 0.5, 0.8])),
        "nms_eta": draw(st.sampled_from([1.0, 0.75])),
    }
    if draw(st.booleans()):
        return _per_region(draw(st.lists(st.integers(0, 6), min_size=1, max_size=3)), classes, **attributes)
    inputs = _nms_inputs(draw(st.integers(0, 2)), classes, draw(st.integers(0, 12)), attributes)
    return multiclass.case(*inputs, outputs=3, **attributes)


# **** MatrixNms ****

#: Scores share their tensor with coordinates, which are only copied: tolerances relative to its maximum are too wide.
matrix = table("MatrixNms", replace(SCALED, name="decay", magnitude="one"), domain="lite")


def _matrix_case(seed: int, images: int, classes: int, many: int, outputs: int = 3, **more: Any) -> OpCase:
    """Return a case whose decayed scores differ from each other and from the threshold by 2 %: the order is clear."""
    attributes = {**_EVERYTHING, **more}
    shapes = (images, many, 4), (images, classes, many)

    def make() -> list[Array]:
        random = np.random.default_rng(seed)
        one = [_unambiguous_image(random, classes, many, attributes) for _ in range(images)]
        return [np.array([pair[i] for pair in one]) for i in (0, 1)]

    return matrix.case(*joint_tensors(make, *shapes), outputs=outputs, **attributes)


def _unambiguous_image(
    random: np.random.Generator, classes: int, many: int, attributes: dict[str, Any]
) -> tuple[Array, Array]:
    definition = ops.find("MatrixNms", "lite")
    assert definition is not None
    filled = {**{k: spec.default for k, spec in definition.attributes.items()}, **attributes, "keep_top_k": -1}
    limit = filled["post_threshold"]

    def attempt() -> tuple[Array, Array] | None:
        found = boxes(0.98)(random, (1, many, 4), DType.FLOAT64), scores()(random, (1, classes, many), DType.FLOAT64)
        rows, _, _ = definition.reference(*found, **{**filled, "post_threshold": 0.0})
        ordered = np.append(rows[:, 1], limit) if limit else rows[:, 1]
        ordered = np.sort(ordered)[::-1]
        is_clear = (ordered[1:] < ordered[:-1] * (1 - MARGIN / 2)).all()
        return (found[0][0], found[1][0]) if is_clear else None

    return first_accepted(attempt, "image whose scores are clearly ordered")


def _matrix(label: str, images: int, classes: int, many: int, outputs: int = 3, **more: Any) -> None:
    case = _matrix_case(len(label), images, classes, many, outputs, **more)
    matrix(label, *case.inputs, outputs=outputs, **case.attributes)


_matrix("n1c3m5", 1, 3, 5)
_matrix("n2c2m9", 2, 2, 9)
_matrix("n2c3m5,no-background", 2, 3, 5, background_label=-1)
_matrix("n2c2m7,background1", 2, 2, 7, background_label=1)
_matrix("n2c2m9,pixels", 2, 2, 9, normalized=0)
_matrix("n2c2m9,gaussian", 2, 2, 9, use_gaussian=1)
_matrix("n2c2m9,gaussian,sigma0.5", 2, 2, 9, use_gaussian=1, gaussian_sigma=0.5)
_matrix("n2c2m9,top4", 2, 2, 9, nms_top_k=4)
_matrix("n2c3m5,keep3", 2, 3, 5, keep_top_k=3, background_label=-1)
_matrix("n2c2m9,keep0", 2, 2, 9, keep_top_k=0)
_matrix("n2c2m9,post0.3", 2, 2, 9, post_threshold=0.3)
_matrix("n2c2m9,score0.4", 2, 2, 9, score_threshold=0.4)
_matrix("nothing-is-kept", 2, 2, 5, score_threshold=1.5)
_matrix("only-background", 2, 1, 5)
_matrix("m0,no-box", 2, 3, 0)
_matrix("n0,no-image", 0, 3, 5)
_matrix("1-output", 2, 2, 7, outputs=1)
_matrix("2-outputs", 2, 2, 7, outputs=2)
matrix("half-overlap", _half, _falling, outputs=3, **_one_class)
matrix("half-overlap,pixels", _half, _falling, outputs=3, **_one_class, normalized=0)
matrix("score-must-be-above", _three, _three_scores, outputs=3, **{**_one_class, "score_threshold": 0.5})
matrix("decayed-score-must-be-above", _three, _three_scores, outputs=3, **_one_class, post_threshold=0.5)
matrix("decay-is-compensated", _chain, _chain_scores, outputs=3, **_one_class)
matrix("decay-is-compensated,gaussian", _chain, _chain_scores, outputs=3, **_one_class, use_gaussian=1)


@matrix.drawn
def draw_matrix(draw: Draw, dtype: DType) -> OpCase:
    return _matrix_case(
        draw(st.integers(0, 999)),
        draw(st.integers(0, 2)),
        draw(st.integers(1, 2)),
        draw(st.integers(0, 5)),
        score_threshold=draw(st.sampled_from([0.1, 0.3])),
        nms_top_k=draw(st.sampled_from([-1, 3])),
        keep_top_k=draw(st.sampled_from([-1, 2])),
        background_label=draw(st.integers(-1, 1)),
        normalized=draw(st.integers(0, 1)),
        use_gaussian=draw(st.integers(0, 1)),
    )


# **** BipartiteMatch ****

match = table("BipartiteMatch", EXACT, domain="lite")
_PREDICTION: dict[str, Any] = {"match_type": "per_prediction"}
_some_zero = values([[0.0, 0.75, 0.0, 0.25], [0.0, 0.5, 0.0, 0.875], [0.0, 0.0, 0.0, 0.125]])
#: The second row takes the best column of the first row; a greedy match row by row would differ.
_contested = values([[0.75, 0.5, 0.25], [0.875, 0.125, 0.375]])
match("k4m9", t(4, 9, init=scores()), outputs=2)
match("k9m4", t(9, 4, init=scores()), outputs=2)
match("k7m7", t(7, 7, init=scores()), outputs=2)
match("k1m33", t(1, 33, init=scores()), outputs=2)
match("k33m1", t(33, 1, init=scores()), outputs=2)
match("k4m9,per-prediction", t(4, 9, init=scores()), outputs=2, **_PREDICTION)
match("k9m4,per-prediction", t(9, 4, init=scores()), outputs=2, **_PREDICTION)
match("k3m33,per-prediction,0.8", t(3, 33, init=scores()), outputs=2, **_PREDICTION, dist_threshold=0.8)
match("k3m33,per-prediction,0", t(3, 33, init=scores()), outputs=2, **_PREDICTION, dist_threshold=0.0)
match("threshold-belongs-to-it", values([[0.75, 0.5, 0.25, 0.375]]), outputs=2, **_PREDICTION)
match("threshold-of-bipartite-is-nothing", t(4, 9, init=scores()), outputs=2, dist_threshold=0.9)
match("zero-matches-nothing", _some_zero, outputs=2)
match("zero-matches-nothing,per-prediction", _some_zero, outputs=2, **_PREDICTION, dist_threshold=0.0)
match("greatest-first", _contested, outputs=2)
match("all-zero", values(np.zeros((3, 4))), outputs=2)
match("k0,no-row", t(0, 4), outputs=2)
match("m0,no-column", t(4, 0), outputs=2)
match("values-left-out", t(4, 9, init=scores()), outputs=1)


@match.drawn
def draw_match(draw: Draw, dtype: DType) -> OpCase:
    return match.case(
        t(draw(st.integers(0, 9)), draw(st.integers(0, 9)), init=scores()),
        outputs=2,
        match_type=draw(st.sampled_from(["bipartite", "per_prediction"])),
        dist_threshold=draw(st.sampled_from([0.3, 0.5, 0.9])),
    )
