"""Detection operators against Paddle and, for old files, against results computed by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import graph_of, run
from paddle_cases import Case, check, parametrize_cases

from lite_core.errors import UnsupportedOperatorError

RNG = np.random.default_rng(5)
HEAD = RNG.standard_normal((2, 2 * 8, 4, 5)).astype(np.float32)
SIZES = np.array([[120, 160], [64, 80]], np.int32)
IMAGE = RNG.standard_normal((2, 3, 32, 40)).astype(np.float32)
FEATURE = RNG.standard_normal((2, 8, 8, 10)).astype(np.float32)
PIR = ("pir",)  # Paddle 3 can no longer export these as legacy files


def _boxes(count: int, size: float = 40.0) -> Any:
    corners = RNG.uniform(0, size / 2, (count, 2))
    return np.concatenate([corners, corners + RNG.uniform(2, size / 2, (count, 2))], axis=1).astype(np.float32)


ROIS, NUMBERS = _boxes(5), np.array([2, 3], np.int32)
SCORES = RNG.uniform(0, 1, (2, 3, 20)).astype(np.float32)
CANDIDATES = np.stack([_boxes(20), _boxes(20)])


def _ops(name: str, *arguments: Any, **options: Any) -> Callable[[Any], Any]:
    """Return a case's function: one of paddle.vision.ops with two tensors before its other arguments."""

    def build(p: Any) -> Any:
        function = getattr(p.vision.ops, name)
        return lambda x, y: function(x, y, *arguments, **options)

    return build


def _rois(name: str, *arguments: Any, **options: Any) -> Callable[[Any], Any]:
    def build(p: Any) -> Any:
        function = getattr(p.vision.ops, name)
        return lambda x, rois, number: function(x, rois, number, *arguments, **options)

    return build


def _proposals(p: Any) -> Any:
    def function(scores: Any, deltas: Any) -> Any:
        anchors = p.reshape(p.to_tensor(ANCHORS), [3, 4, 2, 4])
        size = p.to_tensor(np.array([[60.0, 70.0]], np.float32))
        rois, probabilities, number = p.vision.ops.generate_proposals(
            scores, deltas, size, anchors, p.ones_like(anchors), 20, 8, 0.5, 2.0, return_rois_num=True
        )
        return rois, probabilities, number

    return function


ANCHORS = _boxes(24, 60.0)


def _distribute(p: Any) -> Any:
    def function(rois: Any, number: Any) -> Any:
        levels, restore, counts = p.vision.ops.distribute_fpn_proposals(rois, 2, 4, 3, 20, rois_num=number)
        return [*levels, restore, *counts]

    return function


YOLO = {"anchors": [10, 13, 16, 30], "class_num": 3, "conf_thresh": 0.3, "downsample_ratio": 32}
NMS = {"score_threshold": 0.3, "nms_top_k": 10, "keep_top_k": 8, "nms_threshold": 0.4, "background_label": 0}


def _multiclass(p: Any) -> Any:
    def function(boxes: Any, scores: Any) -> Any:
        return p._C_ops.multiclass_nms3(boxes, scores, None, 0.3, 10, 8, 0.4, True, 1.0, 0)

    return function


def _matrix(p: Any) -> Any:
    function = p.vision.ops.matrix_nms
    return lambda b, s: function(b, s, 0.3, 0.1, 10, 8, return_index=True, return_rois_num=True)


CASES = [
    Case("yolo_box", _ops("yolo_box", **YOLO), [HEAD[:, :16], SIZES], kinds=PIR),
    Case("yolo_box_scaled", _ops("yolo_box", **YOLO, clip_bbox=False, scale_x_y=1.2), [HEAD, SIZES], kinds=PIR),
    Case("prior_box", _ops("prior_box", [8.0, 16.0], [16.0, 24.0], [2.0], flip=True), [FEATURE, IMAGE], kinds=PIR),
    Case(
        "box_decode",
        lambda p: lambda b, v, t: p.vision.ops.box_coder(b, v, t, "decode_center_size", False, axis=1),
        [_boxes(5), _boxes(5) * 0.01, RNG.standard_normal((5, 4, 4)).astype(np.float32)],
        kinds=PIR,
    ),
    Case(
        "box_encode",
        lambda p: lambda b, t: p.vision.ops.box_coder(b, [0.1, 0.1, 0.2, 0.2], t),
        [_boxes(5), _boxes(4)],
        kinds=PIR,
    ),
    Case("multiclass_nms3", _multiclass, [CANDIDATES, SCORES], kinds=PIR),
    Case("matrix_nms", _matrix, [CANDIDATES, SCORES], kinds=PIR),
    Case("nms", lambda p: lambda b: p.vision.ops.nms(b, 0.3), [_boxes(30)], kinds=PIR),
    *[
        Case(
            f"roi_align_{aligned}_{ratio}_{kind}",
            _rois("roi_align", (3, 4), 0.25, ratio, aligned),
            inputs,
            shapes=shapes,
            kinds=PIR,
        )
        for aligned in (True, False)
        for ratio in (-1, 2)
        for kind, inputs, shapes in (
            ("fixed", [FEATURE, ROIS, NUMBERS], None),
            ("open", [FEATURE, ROIS, NUMBERS], [(None, 8, None, None), (None, 4), (None,)]),
        )
    ],
    Case("roi_pool", _rois("roi_pool", (3, 4), 0.25), [FEATURE, ROIS, NUMBERS], kinds=PIR),
    Case("psroi_pool", _rois("psroi_pool", (2, 2), 0.25), [FEATURE, ROIS, NUMBERS], kinds=PIR),
    Case(
        "generate_proposals",
        _proposals,
        [RNG.uniform(0, 1, (1, 2, 3, 4)).astype(np.float32), RNG.standard_normal((1, 8, 3, 4)).astype(np.float32)],
        kinds=PIR,
    ),
    Case("distribute", _distribute, [_boxes(9, 100.0), np.array([4, 5], np.int32)], kinds=PIR),
]


@parametrize_cases(CASES)
def test_matches_paddle(case: Case, kind: str, paddle_models: Callable[[str], Path]) -> None:
    check(case, paddle_models(kind), kind)


# **** old files, made by hand ****


def test_empty_detections_of_paddle_1() -> None:
    attrs = {**NMS, "score_threshold": 2.0}
    inputs = {"BBoxes": CANDIDATES[:1], "Scores": SCORES[:1]}
    (out,) = run("multiclass_nms", inputs, attrs, version=1_008_005)
    np.testing.assert_array_equal(out, np.array([[-1]], np.float32))
    out, index = run("multiclass_nms2", inputs, attrs, version=1_008_005, outputs=("Out", "Index"))
    assert out.shape == (0, 6)
    assert index.shape == (0, 1)


def test_detections_of_paddle_1() -> None:
    inputs = {"BBoxes": CANDIDATES[:1], "Scores": SCORES[:1]}
    (old,) = run("multiclass_nms", inputs, NMS, version=1_008_005)
    new, _, count = run("multiclass_nms3", inputs, NMS, outputs=("Out", "Index", "NmsRoisNum"))
    np.testing.assert_array_equal(old, new)
    assert len(old) == count[0] > 0


def test_box_clip_and_similarity() -> None:
    info = np.array([[20.0, 30.0, 1.0]], np.float32)
    (clipped,) = run("box_clip", {"Input": ROIS[None], "ImInfo": info}, outputs=("Output",))
    np.testing.assert_array_equal(clipped[0], np.clip(ROIS, 0, [29, 19, 29, 19]))
    (similarity,) = run("iou_similarity", {"X": ROIS, "Y": ROIS})
    np.testing.assert_allclose(np.diag(similarity), 1)
    indices, values = run(
        "bipartite_match", {"DistMat": similarity}, outputs=("ColToRowMatchIndices", "ColToRowMatchDist")
    )
    np.testing.assert_array_equal(indices, [[0, 1, 2, 3, 4]])
    np.testing.assert_allclose(values, np.ones((1, 5)))


def test_priors() -> None:
    attrs = {"fixed_sizes": [8.0], "fixed_ratios": [1.0], "densities": [2], "variances": [0.1, 0.1, 0.2, 0.2]}
    inputs = {"Input": FEATURE, "Image": IMAGE}
    boxes, variances = run("density_prior_box", inputs, attrs, outputs=("Boxes", "Variances"))
    assert boxes.shape == variances.shape == (8, 10, 4, 4)
    sizes = {"anchor_sizes": [32.0], "aspect_ratios": [1.0], "variances": [0.1, 0.1, 0.2, 0.2]}
    anchors, _ = run("anchor_generator", {"Input": FEATURE}, sizes, outputs=("Anchors", "Variances"))
    np.testing.assert_allclose(anchors[0, 0, 0], [-8, -8, 23, 23])


def test_proposals_of_paddle_1() -> None:
    scores = RNG.uniform(0, 1, (1, 2, 3, 4)).astype(np.float32)
    deltas = RNG.standard_normal((1, 8, 3, 4)).astype(np.float32)
    anchors = ANCHORS.reshape(3, 4, 2, 4)
    shared = {"Scores": scores, "BboxDeltas": deltas, "Anchors": anchors, "Variances": np.ones_like(anchors)}
    attrs = {"pre_nms_topN": 20, "post_nms_topN": 8, "nms_thresh": 0.5, "min_size": 0.0, "eta": 1.0}
    slots = ("RpnRois", "RpnRoiProbs")
    info = {"ImInfo": np.array([[60.0, 70.0, 2.0]], np.float32)}
    old = run("generate_proposals", {**shared, **info}, attrs, outputs=slots)
    new = run("generate_proposals_v2", {**shared, "ImShape": info["ImInfo"][:, :2]}, attrs, outputs=slots)
    for a, b in zip(old, new):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(UnsupportedOperatorError, match="original image"):
        graph_of("generate_proposals", {**shared, **info}, {**attrs, "min_size": 16.0}, outputs=slots)


def test_collect_without_counts_is_one_image() -> None:
    scores = [RNG.uniform(0, 1, (3, 1)).astype(np.float32), RNG.uniform(0, 1, (2, 1)).astype(np.float32)]
    inputs = {"MultiLevelRois": [ROIS[:3], ROIS[3:]], "MultiLevelScores": scores}
    (found,) = run("collect_fpn_proposals", inputs, {"post_nms_topN": 2}, outputs=("FpnRois",))
    best = np.argsort(-np.concatenate(scores)[:, 0])[:2]
    np.testing.assert_array_equal(found, ROIS[best])


def test_regions_of_several_images_need_counts() -> None:
    with pytest.raises(UnsupportedOperatorError, match="sequence offsets"):
        graph_of("roi_align", {"X": FEATURE, "ROIs": ROIS})
    (one,) = run("roi_align", {"X": FEATURE[:1], "ROIs": ROIS}, {"pooled_height": 2, "pooled_width": 2})
    assert one.shape == (5, 8, 2, 2)


@pytest.mark.parametrize("op_type", ["roi_align", "roi_pool", "psroi_pool"])
def test_open_batch_without_counts_must_be_one_image(op_type: str) -> None:
    attrs = {"pooled_height": 2, "pooled_width": 2, "output_channels": 2}
    options: dict[str, Any] = {"shapes": {"X": (-1, 8, 8, 10)}}
    (open_batch,) = run(op_type, {"X": FEATURE[:1], "ROIs": ROIS}, attrs, **options)
    (one,) = run(op_type, {"X": FEATURE[:1], "ROIs": ROIS}, attrs)
    np.testing.assert_array_equal(open_batch, one)
    with pytest.raises(Exception, match="[Rr]eshape"):
        run(op_type, {"X": FEATURE, "ROIs": ROIS}, attrs, **options)
