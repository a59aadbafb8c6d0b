"""Detection operators of domain ``lite``: small cases computed by hand, inference and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_runner import infer_op, run_op

from lite_core.errors import GraphError
from lite_core.ir import DType, SymbolicDim, TensorType

Array = np.ndarray[Any, Any]


def floats(*shape: Any) -> TensorType:
    return TensorType(DType.FLOAT32, tuple(SymbolicDim.named(d) if isinstance(d, str) else d for d in shape))


def f32(rows: Any) -> Array:
    return np.array(rows, dtype=np.float32)


def close(result: Array, expected: Any) -> None:
    np.testing.assert_allclose(result, np.array(expected), rtol=1e-5, atol=1e-5)


# **** YoloBox ****

YOLO = {"anchors": (8, 16), "class_num": 1, "downsample_ratio": 32}


@pytest.mark.parametrize("clip", [0, 1])
def test_yolo_box(clip: int) -> None:
    x = np.zeros((1, 6, 1, 2), np.float32)
    x[0, 2:4] = np.log(8.0)  # the left box is larger than the image
    x[0, 2:4, :, 1] = 0.0
    x[0, 4, 0, 1] = -5.0  # the right box has a low confidence
    boxes, scores = run_op(
        "YoloBox", [x, np.array([[32, 64]], np.int32)], 2, "lite", **YOLO, conf_thresh=0.1, clip_bbox=clip
    )
    # centre (16, 16), size 8 * 8 by 16 * 8
    close(boxes, [[[0, 0, 48, 31] if clip else [-16, -48, 48, 80], [0, 0, 0, 0]]])
    close(scores, [[[0.25], [0]]])


def test_yolo_box_iou_aware_weighs_the_confidence() -> None:
    x = np.zeros((1, 7, 1, 1), np.float32)
    x[0, 0] = np.log(4.0)  # iou 0.8, confidence 0.5
    _, scores = run_op(
        "YoloBox", [x, np.array([[32, 32]], np.int32)], 2, "lite", **YOLO, iou_aware=1, iou_aware_factor=0.4
    )
    close(scores, [[[0.5**0.6 * 0.8**0.4 * 0.5]]])


def test_yolo_box_inference() -> None:
    x, sizes = floats("n", 18, "h", "w"), TensorType(DType.INT32, (SymbolicDim.named("n"), 2))
    types = infer_op("YoloBox", [x, sizes], 2, "lite", anchors=(1, 2, 3, 4, 5, 6), class_num=1)
    assert types == ["float32[n, 3*h*w, 4]", "float32[n, 3*h*w, 1]"]
    with pytest.raises(GraphError, match=r"x .*18 .*axis 1.*\[1, 17, 2, 2\]"):
        infer_op("YoloBox", [floats(1, 17, 2, 2), sizes], 2, "lite", anchors=(1, 2, 3, 4, 5, 6), class_num=1)


# **** priors ****


def test_prior_box_orders() -> None:
    inputs = [np.zeros((1, 1, 1, 1), np.float32), np.zeros((1, 3, 100, 100), np.float32)]
    sizes = {"min_sizes": (16.0,), "max_sizes": (64.0,), "aspect_ratios": (4.0,), "flip": 0}
    boxes, variances = run_op("PriorBox", inputs, 2, "lite", **sizes)
    ratio_one, ratio_four, square = (
        [0.42, 0.42, 0.58, 0.58],
        [0.34, 0.46, 0.66, 0.54],
        [0.34, 0.34, 0.66, 0.66],
    )
    close(boxes[0, 0], [ratio_one, ratio_four, square])
    close(variances[0, 0], [[0.1, 0.1, 0.2, 0.2]] * 3)
    boxes, _ = run_op("PriorBox", inputs, 2, "lite", **sizes, min_max_aspect_ratios_order=1)
    close(boxes[0, 0], [ratio_one, square, ratio_four])


def test_prior_box_clips() -> None:
    inputs = [np.zeros((1, 1, 1, 1), np.float32), np.zeros((1, 3, 10, 20), np.float32)]
    for clip, expected in ((1, [0, 0, 1, 1]), (0, [-0.5, -1.5, 1.5, 2.5])):
        boxes, _ = run_op("PriorBox", inputs, 2, "lite", min_sizes=(40.0,), clip=clip)
        close(boxes[0, 0], [expected])


def test_prior_inference() -> None:
    feature, image = floats("n", 8, "h", "w"), floats("n", 3, "H", "W")
    types = infer_op(
        "PriorBox",
        [feature, image],
        2,
        "lite",
        min_sizes=(1.0, 2.0),
        max_sizes=(3.0, 4.0),
        aspect_ratios=(2.0, 0.5),
    )
    # the ratios 1, 2 and 1/2 (0.5 is a duplicate) for each of two sizes, and two squares
    assert types == ["float32[h, w, 8, 4]"] * 2
    density = {"fixed_sizes": (1.0, 2.0), "fixed_ratios": (1.0,), "densities": (2, 3)}
    assert infer_op("DensityPriorBox", [feature, image], 2, "lite", **density) == ["float32[h, w, 13, 4]"] * 2
    flat = infer_op("DensityPriorBox", [feature, image], 2, "lite", **density, flatten_to_2d=1)
    assert flat == ["float32[13*h*w, 4]"] * 2
    anchors = {"anchor_sizes": (32.0, 64.0), "aspect_ratios": (0.5, 1.0, 2.0)}
    assert infer_op("AnchorGenerator", [feature], 2, "lite", **anchors) == ["float32[h, w, 6, 4]"] * 2
    with pytest.raises(GraphError, match="max_sizes .*min_sizes, 1;.* 2 "):
        infer_op("PriorBox", [feature, image], 2, "lite", min_sizes=(1.0,), max_sizes=(3.0, 4.0))
    with pytest.raises(GraphError, match="variances .*4 entries.* 1"):
        infer_op("AnchorGenerator", [feature], 2, "lite", **anchors, variances=(0.1,))


def test_density_prior_box() -> None:
    inputs = [np.zeros((1, 1, 1, 1), np.float32), np.zeros((1, 3, 40, 40), np.float32)]
    boxes, _ = run_op(
        "DensityPriorBox", inputs, 2, "lite", fixed_sizes=(20.0,), fixed_ratios=(1.0,), densities=(2,), clip=0
    )
    # centres 10 and 30 of 40, size 20: x runs faster
    close(boxes[0, 0], [[0, 0, 0.5, 0.5], [0.5, 0, 1, 0.5], [0, 0.5, 0.5, 1], [0.5, 0.5, 1, 1]])


def test_density_prior_box_is_clipped_even_without_clip() -> None:
    inputs = [np.zeros((1, 1, 1, 1), np.float32), np.zeros((1, 3, 40, 40), np.float32)]
    boxes, _ = run_op(
        "DensityPriorBox", inputs, 2, "lite", fixed_sizes=(80.0,), fixed_ratios=(1.0,), densities=(1,), clip=0
    )
    close(boxes[0, 0], [[0, 0, 1, 1]])


def test_anchor_generator() -> None:
    anchors, variances = run_op(
        "AnchorGenerator", [np.zeros((1, 1, 1, 2), np.float32)], 2, "lite",
        anchor_sizes=(32.0, 64.0), aspect_ratios=(0.5,), stride=(16.0, 8.0),
    )  # fmt: skip
    # sqrt(128 / 0.5) = 16 by 8 at (7.5, 3.5), scaled by 2 and 4 (width), 4 and 8 (height)
    close(anchors[0, 0], [[-8, -12, 23, 19], [-24, -28, 39, 35]])
    close(anchors[0, 1], [[8, -12, 39, 19], [-8, -28, 55, 35]])
    assert variances.shape == anchors.shape


# **** boxes ****


@pytest.mark.parametrize("normalized", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
def test_box_coder_round_trip(normalized: int, axis: int) -> None:
    priors, target = f32([[0, 0, 9, 9], [4, 4, 12, 20]]), f32([[1, 2, 7, 8]])
    attributes = {"box_normalized": normalized, "variance": (0.1, 0.1, 0.2, 0.2)}
    (codes,) = run_op("BoxCoder", [priors, None, target], 1, "lite", **attributes)
    if axis:
        codes = codes.swapaxes(0, 1)
    (decoded,) = run_op(
        "BoxCoder", [priors, None, codes], 1, "lite", **attributes, code_type="decode_center_size", axis=axis
    )
    # whole pixels: the prior's centre lies half a pixel further than the target's
    expected = np.broadcast_to(target if normalized else target - 0.5, (2, 4)).reshape(decoded.shape)
    close(decoded, expected)


def test_box_coder_encodes() -> None:
    variances = f32([[1, 1, 1, 1], [0.5, 0.5, 0.5, 0.5]])
    (codes,) = run_op("BoxCoder", [f32([[0, 0, 4, 2]] * 2), variances, f32([[2, 0, 4, 4]])], 1, "lite")
    close(codes, [[[0.25, 0.5, np.log(0.5), np.log(2)], [0.5, 1, 2 * np.log(0.5), 2 * np.log(2)]]])


def test_box_coder_inference() -> None:
    priors, codes = floats("m", 4), floats("n", "m", 4)
    assert infer_op("BoxCoder", [priors, None, floats("n", 4)], 1, "lite") == ["float32[n, m, 4]"]
    decode = {"code_type": "decode_center_size"}
    assert infer_op("BoxCoder", [priors, None, codes], 1, "lite", **decode) == ["float32[n, m, 4]"]
    with pytest.raises(GraphError, match=r"target_box .*3 .*axis 1.*\[2, 5, 4\]"):
        infer_op("BoxCoder", [floats(3, 4), None, floats(2, 5, 4)], 1, "lite", **decode)
    with pytest.raises(GraphError, match="prior_box_var .*variance"):
        infer_op("BoxCoder", [priors, priors, codes], 1, "lite", **decode, variance=(1.0, 1.0, 1.0, 1.0))


def test_box_clip() -> None:
    boxes = f32([[[-5, 3, 70, 90], [1, 2, 3, 4]], [[9, 9, 40, 40], [-1, -1, -1, -1]]])
    info = f32([[100, 120, 2], [20, 31, 1]])
    (clipped,) = run_op("BoxClip", [boxes, info], 1, "lite")
    close(clipped, [[[0, 3, 59, 49], [1, 2, 3, 4]], [[9, 9, 30, 19], [0, 0, 0, 0]]])
    close(run_op("BoxClip", [boxes[0], info[:1]], 1, "lite")[0], clipped[0])


@pytest.mark.parametrize(("normalized", "expected"), [(1, [[1 / 7, 0.0]]), (0, [[4 / 14, 1 / 17]])])
def test_iou_similarity(normalized: int, expected: list[list[float]]) -> None:
    x, y = f32([[0, 0, 2, 2]]), f32([[1, 1, 3, 3], [2.0, 2.0, 4.0, 4.0]])
    close(run_op("IouSimilarity", [x, y], 1, "lite", box_normalized=normalized)[0], expected)


# **** suppression ****

BOXES = f32([[[0, 0, 10, 10], [0, 0, 10, 9], [20, 20, 30, 30], [0, 0, 4, 4]]])
SCORES = f32([[[0.9, 0.9, 0.9, 0.9], [0.5, 0.6, 0.3, 0.05], [0.1, 0.2, 0.7, 0.4]]])
NMS = {"score_threshold": 0.08, "nms_top_k": -1, "keep_top_k": -1}


def test_multiclass_nms() -> None:
    out, index, counts = run_op("MulticlassNms", [BOXES, SCORES], 3, "lite", **NMS)
    # class 0 is the background; box 1 suppresses box 0
    expected = [[1, 0.6, 0, 0, 10, 9], [1, 0.3, 20, 20, 30, 30],
                [2, 0.7, 20, 20, 30, 30], [2, 0.4, 0, 0, 4, 4], [2, 0.2, 0, 0, 10, 9]]  # fmt: skip
    close(out, expected)
    assert index.tolist() == [[1], [2], [2], [3], [1]]
    assert counts.tolist() == [5]


def test_multiclass_nms_keeps_the_best_of_all_classes() -> None:
    out, _, _ = run_op("MulticlassNms", [BOXES, SCORES], 3, "lite", **{**NMS, "keep_top_k": 2})
    close(out[:, :2], [[1, 0.6], [2, 0.7]])
    out, _, _ = run_op("MulticlassNms", [BOXES, SCORES], 3, "lite", **{**NMS, "nms_top_k": 1})
    close(out[:, :2], [[1, 0.6], [2, 0.7]])


def test_multiclass_nms_numbers_boxes_over_the_batch() -> None:
    boxes, scores = np.concatenate([BOXES] * 2), np.concatenate([SCORES] * 2)
    scores[0] = 0
    out, index, counts = run_op("MulticlassNms", [boxes, scores], 3, "lite", **NMS)
    assert (len(out), index.min(), counts.tolist()) == (5, 5, [0, 5])


def test_multiclass_nms_adaptive_threshold() -> None:
    boxes = f32([[[0, 0, 10, 10], [20, 0, 30, 10], [20, 0, 30, 6.5]]])  # the last two overlap by 0.65
    scores = f32([[[0.9, 0.8, 0.7]]])
    for eta, kept in ((1.0, 3), (0.9, 2)):
        out, _, _ = run_op(
            "MulticlassNms",
            [boxes, scores],
            3,
            "lite",
            **NMS,
            background_label=-1,
            nms_threshold=0.7,
            nms_eta=eta,
        )
        assert len(out) == kept


def test_multiclass_nms_with_boxes_for_each_class() -> None:
    boxes = np.stack([BOXES[0], BOXES[0] + 1], axis=1)
    scores = f32([[0, 0.5], [0, 0.6], [0, 0.3], [0, 0.05]])
    counts = np.array([1, 3], np.int32)
    out, index, kept = run_op("MulticlassNms", [boxes, scores, counts], 3, "lite", **NMS)
    close(out, [[1, 0.5, 1, 1, 11, 11], [1, 0.6, 1, 1, 11, 10], [1, 0.3, 21, 21, 31, 31]])
    assert index.tolist() == [[1], [3], [5]]  # box * classes + class
    assert kept.tolist() == [1, 2]
    with pytest.raises(GraphError, match="rois_num .*3 .* 4"):
        run_op("MulticlassNms", [boxes, scores, counts - np.array([1, 0], np.int32)], 3, "lite", **NMS)
    with pytest.raises(GraphError, match=r"scores \[M, C\] .*rois_num"):
        run_op("MulticlassNms", [boxes, scores], 3, "lite", **NMS)


@pytest.mark.parametrize("op", ["MulticlassNms", "MatrixNms"])
@pytest.mark.parametrize("shape", [(1, 4), (1, 0), (0, 4)])
def test_nms_of_empty_inputs(op: str, shape: tuple[int, int]) -> None:
    images, boxes = shape
    inputs = [np.zeros((images, boxes, 4), np.float32), np.zeros((images, 3, boxes), np.float32)]
    out, index, counts = run_op(op, inputs, 3, "lite", **NMS)
    assert (out.shape, index.shape, counts.tolist()) == ((0, 6), (0, 1), [0] * images)


def test_nms_inference() -> None:
    kept, index, counts = infer_op("MulticlassNms", [floats("n", "m", 4), floats("n", 80, "m")], 3, "lite", **NMS)
    assert counts == "int32[n]"
    symbol = kept.removeprefix("float32[").removesuffix(", 6]")
    assert symbol.startswith("detections?")
    assert index == f"int32[{symbol}, 1]"
    with pytest.raises(GraphError, match=r"scores .*5 .*axis 2.*\[1, 2, 6\]"):
        infer_op("MulticlassNms", [floats(1, 5, 4), floats(1, 2, 6)], 3, "lite", **NMS)
    with pytest.raises(GraphError, match=r"bboxes .*4 .*axis 2.*\[1, 5, 8\]"):
        infer_op("MatrixNms", [floats(1, 5, 8), floats(1, 2, 5)], 3, "lite", **NMS)


@pytest.mark.parametrize(("gaussian", "decay"), [(0, 0.1), (1, float(np.exp(-0.81 * 2)))])
def test_matrix_nms(gaussian: int, decay: float) -> None:
    out, index, counts = run_op(
        "MatrixNms", [BOXES, SCORES[:, :2]], 3, "lite", **NMS, use_gaussian=gaussian, gaussian_sigma=2.0
    )
    # box 0 overlaps the better box 1 by 0.9
    assert index.tolist() == [[1], [2], [0]]
    close(out[:, 1], [0.6, 0.3, 0.5 * decay])
    assert counts.tolist() == [3]
    out, _, _ = run_op("MatrixNms", [BOXES, SCORES[:, :2]], 3, "lite", **NMS, post_threshold=0.2)
    close(out[:, 1], [0.6, 0.3])


def test_bipartite_match() -> None:
    distances = f32([[0.9, 0.8, 0.6, 0.0], [0.7, 0.75, 0.1, 0.0]])
    indices, values = run_op("BipartiteMatch", [distances], 2, "lite")
    assert indices.tolist() == [[0, 1, -1, -1]]
    close(values, [[0.9, 0.75, 0, 0]])
    indices, values = run_op("BipartiteMatch", [distances], 2, "lite", match_type="per_prediction")
    assert indices.tolist() == [[0, 1, 0, -1]]
    close(values, [[0.9, 0.75, 0.6, 0]])
    assert infer_op("BipartiteMatch", [floats("k", "m")], 2, "lite") == ["int32[1, m]", "float32[1, m]"]


# **** regions ****

MAP = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)


def test_roi_pool() -> None:
    boxes = f32([[0, 0, 6, 6], [2.9, 2.9, 3.1, 3.1], [20, 20, 30, 30]])  # at scale 1/2: all, 1 to 2, outside
    (out,) = run_op("RoiPool", [MAP, boxes], 1, "lite", pooled_height=2, pooled_width=2, spatial_scale=0.5)
    close(out[:, 0], [[[5, 7], [13, 15]], [[5, 6], [9, 10]], [[0, 0], [0, 0]]])


def test_roi_pool_takes_the_image_of_each_region() -> None:
    maps = np.stack([MAP[0], MAP[0] + 100])
    inputs = [maps, f32([[0, 0, 3, 3]] * 3), np.array([1, 2], np.int32)]
    close(run_op("RoiPool", inputs, 1, "lite")[0].reshape(-1), [15, 115, 115])
    with pytest.raises(GraphError, match="rois_num .*2 .* 3"):
        run_op("RoiPool", [maps, inputs[1], np.array([1, 1], np.int32)], 1, "lite")


def test_psroi_pool() -> None:
    maps = np.concatenate([MAP + 100 * i for i in range(4)], axis=1)
    attributes = {"pooled_height": 2, "pooled_width": 2, "output_channels": 1}
    (out,) = run_op("PsRoiPool", [maps, f32([[0, 0, 3, 3]])], 1, "lite", **attributes)
    close(out, [[[[2.5, 104.5], [210.5, 312.5]]]])
    with pytest.raises(GraphError, match=r"x .*4 .*axis 1.*\[1, 5, 4, 4\]"):
        infer_op("PsRoiPool", [floats(1, 5, 4, 4), floats("k", 4)], 1, "lite", **attributes)
    types = infer_op("PsRoiPool", [floats(1, 4, "h", "w"), floats("k", 4)], 1, "lite", **attributes)
    assert types == ["float32[k, 1, 2, 2]"]


PROPOSALS = {"pre_nms_top_n": 10, "post_nms_top_n": 10, "nms_thresh": 0.5, "min_size": 2.0, "pixel_offset": 0}


def test_generate_proposals() -> None:
    anchors = f32([[0, 0, 10, 10], [1, 1, 11, 11], [30, 30, 50, 50], [4, 4, 5, 5]]).reshape(1, 2, 2, 4)
    scores = f32([0.5, 0.9, 0.7, 0.8]).reshape(1, 1, 2, 2).transpose(0, 3, 1, 2)  # anchors of a cell are adjacent
    deltas = np.zeros((1, 8, 1, 2), np.float32)
    deltas[0, 0, 0, 1] = 0.5  # the third anchor moves right by half its width
    inputs = [scores, deltas, f32([[40, 55]]), anchors, np.ones_like(anchors)]
    rois, probabilities, counts = run_op("GenerateProposals", inputs, 3, "lite", **PROPOSALS)
    close(rois, [[1, 1, 11, 11], [40, 30, 55, 40]])  # the first is suppressed, the last too small
    close(probabilities, [[0.9], [0.7]])
    assert counts.tolist() == [2]
    rois, _, counts = run_op("GenerateProposals", inputs, 3, "lite", **{**PROPOSALS, "min_size": 99.0})
    assert (rois.tolist(), counts.tolist()) == ([[0, 0, 0, 0]], [1])


def test_distribute_and_collect() -> None:
    rois = f32([[0, 0, 224, 224], [0, 0, 20, 20], [0, 0, 448, 448], [0, 0, 223, 223]])
    levels = {"min_level": 3, "max_level": 5, "refer_level": 4, "refer_scale": 224, "pixel_offset": 0}
    counts = np.array([2, 2], np.int32)
    restore, *rest = run_op("DistributeFpnProposals", [rois, counts], 7, "lite", **levels)
    assert [len(r) for r in rest[:3]] == [2, 1, 1]
    assert [c.tolist() for c in rest[3:]] == [[1, 1], [1, 0], [0, 1]]
    close(np.concatenate(rest[:3])[restore[:, 0]], rois)
    scores = [f32([[0.2], [0.9]]), f32([[0.5]]), f32([[0.3]])]
    best, kept = run_op("CollectFpnProposals", [*rest[:3], *scores, *rest[3:]], 2, "lite", post_nms_top_n=3)
    close(best[:, 2], [224, 223, 448])
    assert kept.tolist() == [1, 2]


def test_distribute_inference() -> None:
    levels = {"min_level": 3, "max_level": 4, "refer_level": 4, "refer_scale": 224}
    types = infer_op("DistributeFpnProposals", [floats("k", 4), TensorType(DType.INT32, (2,))], 5, "lite", **levels)
    assert types[0] == "int32[k, 1]"
    assert types[3:] == ["int32[2]", "int32[2]"]
    with pytest.raises(GraphError, match=r"levels 3 to 4 .*3 outputs .* 5 .* 4"):
        infer_op("DistributeFpnProposals", [floats("k", 4)], 4, "lite", **levels)
