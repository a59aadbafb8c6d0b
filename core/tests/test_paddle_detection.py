"""The detection operators of the domain ``lite`` compared with Paddle, from which they come, if it is installed."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from op_runner import run_op

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("paddle") is None, reason="paddlepaddle is not installed: nothing to compare with"
    ),
    pytest.mark.filterwarnings("ignore:No ccache found"),
]

Array = np.ndarray[Any, Any]


def run_paddle(name: str, *arguments: Any) -> list[Array]:
    """Return the outputs of a Paddle kernel on the CPU; lists of outputs are flattened."""
    import paddle  # takes seconds, which collecting the tests must not

    paddle.set_device("cpu")

    def tensor(argument: Any) -> Any:
        if isinstance(argument, list) and argument and isinstance(argument[0], np.ndarray):
            return [paddle.to_tensor(a) for a in argument]
        return paddle.to_tensor(argument) if isinstance(argument, np.ndarray) else argument

    results = getattr(paddle._C_ops, name)(*map(tensor, arguments))
    flat: list[Array] = []
    for result in results if isinstance(results, (tuple, list)) else [results]:
        flat += [t.numpy() for t in result] if isinstance(result, (tuple, list)) else [result.numpy()]
    return flat


def assert_same(ours: list[Array], expected: list[Array], tolerance: float = 1e-5) -> None:
    for index, (a, b) in enumerate(zip(ours, expected)):
        assert a.dtype == b.dtype, f"output {index}: {a.dtype}, expected {b.dtype}"
        assert a.shape == b.shape, f"output {index}: {a.shape}, expected {b.shape}"
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=f"output {index}")


def random_boxes(rng: np.random.Generator, *shape: int, size: float = 100.0) -> Array:
    """Return random boxes that overlap often enough to test suppression."""
    corner = rng.uniform(0, size * 0.6, (*shape, 2))
    extent = rng.uniform(size * 0.05, size * 0.4, (*shape, 2))
    return np.concatenate([corner, corner + extent], axis=-1).astype(np.float32)


@pytest.mark.parametrize("iou_aware", [0, 1])
@pytest.mark.parametrize(("clip", "scale"), [(1, 1.0), (0, 1.05)])
def test_yolo_box(iou_aware: int, clip: int, scale: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3 * (5 + 4 + iou_aware), 5, 7)).astype(np.float32)
    sizes = np.array([[320, 416], [200, 333]], np.int32)
    anchors = (10, 13, 16, 30, 33, 23)
    ours = run_op(
        "YoloBox", [x, sizes], 2, "lite", anchors=anchors, class_num=4, conf_thresh=0.4, downsample_ratio=32,
        clip_bbox=clip, scale_x_y=scale, iou_aware=iou_aware, iou_aware_factor=0.4,
    )  # fmt: skip
    expected = run_paddle("yolo_box", x, sizes, list(anchors), 4, 0.4, 32, bool(clip), scale, bool(iou_aware), 0.4)
    assert_same(ours, expected, 1e-4)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("flip", [0, 1])
@pytest.mark.parametrize(("clip", "step", "max_sizes"), [(1, 0.0, (60.0, 90.0)), (0, 16.0, ())])
def test_prior_box(order: int, flip: int, clip: int, step: float, max_sizes: tuple[float, ...]) -> None:
    feature, image = np.zeros((1, 2, 5, 6), np.float32), np.zeros((1, 3, 80, 100), np.float32)
    variances, ratios = (0.1, 0.1, 0.2, 0.3), (1.0, 2.0, 3.0, 2.0)
    ours = run_op(
        "PriorBox", [feature, image], 2, "lite", min_sizes=(30.0, 45.0), max_sizes=max_sizes,
        aspect_ratios=ratios, variances=variances, flip=flip, clip=clip, step_w=step, step_h=step, offset=0.5,
        min_max_aspect_ratios_order=order,
    )  # fmt: skip
    expected = run_paddle(
        "prior_box", feature, image, [30.0, 45.0], list(max_sizes), list(ratios), list(variances), bool(flip),
        bool(clip), step, step, 0.5, bool(order),
    )  # fmt: skip
    assert_same(ours, expected)


def test_anchor_generator() -> None:
    import paddle

    feature = np.zeros((1, 2, 3, 4), np.float32)
    ours = run_op(
        "AnchorGenerator", [feature], 2, "lite", anchor_sizes=(32.0, 64.0), aspect_ratios=(0.5, 1.0, 2.0),
        variances=(0.1, 0.1, 0.2, 0.2), stride=(16.0, 8.0), offset=0.5,
    )  # fmt: skip
    # NOTE: the operator's new entry, paddle._C_ops.anchor_generator, fails in Paddle 3.3.
    results = paddle._legacy_C_ops.anchor_generator(
        paddle.to_tensor(feature), "anchor_sizes", [32.0, 64.0], "aspect_ratios", [0.5, 1.0, 2.0],
        "variances", [0.1, 0.1, 0.2, 0.2], "stride", [16.0, 8.0], "offset", 0.5,
    )  # fmt: skip
    expected = [t.numpy() for t in results]
    assert_same(ours, expected)


@pytest.mark.parametrize("normalized", [0, 1])
@pytest.mark.parametrize("variances", ["tensor", "attribute", "none"])
@pytest.mark.parametrize("mode", ["encode", "decode 0", "decode 1"])
def test_box_coder(normalized: int, variances: str, mode: str) -> None:
    rng = np.random.default_rng(0)
    code, _, axis = mode.partition(" ")
    priors = random_boxes(rng, 5)
    target = random_boxes(rng, 4) if code == "encode" else rng.normal(size=(4, 5, 4)).astype(np.float32)
    if axis == "1":
        target = target.swapaxes(0, 1).copy()
    tensor = rng.uniform(0.1, 0.3, (5, 4)).astype(np.float32) if variances == "tensor" else None
    listed = (0.1, 0.1, 0.2, 0.25) if variances == "attribute" else ()
    ours = run_op(
        "BoxCoder", [priors, tensor, target], 1, "lite", code_type=f"{code}_center_size",
        box_normalized=normalized, axis=int(axis or 0), variance=listed,
    )  # fmt: skip
    expected = run_paddle(
        "box_coder",
        priors,
        tensor,
        target,
        f"{code}_center_size",
        bool(normalized),
        int(axis or 0),
        list(listed),
    )
    assert_same(ours, expected, 1e-4)


@pytest.mark.parametrize(("top", "keep"), [(-1, -1), (10, 7), (0, 5), (1000, 0)])
@pytest.mark.parametrize(
    ("normalized", "threshold", "eta", "background"), [(1, 0.3, 1.0, 0), (0, 0.3, 1.0, 0), (1, 0.7, 0.8, -1)]
)
def test_multiclass_nms(normalized: int, threshold: float, eta: float, background: int, top: int, keep: int) -> None:
    rng = np.random.default_rng(0)
    boxes, scores = random_boxes(rng, 2, 30), rng.random((2, 3, 30), np.float32)
    ours = run_op(
        "MulticlassNms", [boxes, scores], 3, "lite", score_threshold=0.2, nms_top_k=top, keep_top_k=keep,
        nms_threshold=threshold, normalized=normalized, nms_eta=eta, background_label=background,
    )  # fmt: skip
    expected = run_paddle(
        "multiclass_nms3", boxes, scores, None, 0.2, top, keep, threshold, bool(normalized), eta, background
    )
    assert_same(ours, expected)


@pytest.mark.parametrize("keep", [-1, 9])
def test_multiclass_nms_with_boxes_for_each_class(keep: int) -> None:
    rng = np.random.default_rng(0)
    boxes, scores = random_boxes(rng, 40, 3), rng.random((40, 3), np.float32)
    counts = np.array([15, 25], np.int32)
    ours = run_op(
        "MulticlassNms", [boxes, scores, counts], 3, "lite", score_threshold=0.2, nms_top_k=20,
        keep_top_k=keep, nms_threshold=0.3, background_label=0,
    )  # fmt: skip
    expected = run_paddle("multiclass_nms3", boxes, scores, counts, 0.2, 20, keep, 0.3, True, 1.0, 0)
    assert_same(ours, expected)


def test_multiclass_nms_that_keeps_nothing() -> None:
    rng = np.random.default_rng(0)
    boxes, scores = random_boxes(rng, 2, 5), np.zeros((2, 3, 5), np.float32)
    ours = run_op("MulticlassNms", [boxes, scores], 3, "lite", score_threshold=0.1, nms_top_k=5, keep_top_k=5)
    assert_same(ours, run_paddle("multiclass_nms3", boxes, scores, None, 0.1, 5, 5, 0.3, True, 1.0, 0))


@pytest.mark.parametrize("gaussian", [0, 1])
@pytest.mark.parametrize("normalized", [0, 1])
@pytest.mark.parametrize(("top", "keep", "post"), [(-1, -1, 0.0), (10, 7, 0.1)])
def test_matrix_nms(gaussian: int, normalized: int, top: int, keep: int, post: float) -> None:
    rng = np.random.default_rng(0)
    boxes, scores = random_boxes(rng, 2, 30), rng.random((2, 3, 30), np.float32)
    ours = run_op(
        "MatrixNms", [boxes, scores], 3, "lite", score_threshold=0.2, nms_top_k=top, keep_top_k=keep,
        post_threshold=post, use_gaussian=gaussian, gaussian_sigma=2.0, background_label=0,
        normalized=normalized,
    )  # fmt: skip
    expected = run_paddle("matrix_nms", boxes, scores, 0.2, top, keep, post, bool(gaussian), 2.0, 0, bool(normalized))
    assert_same(ours, expected)


@pytest.mark.parametrize("kind", ["bipartite", "per_prediction"])
@pytest.mark.parametrize("shape", [(4, 9), (9, 4), (140, 20)])
def test_bipartite_match(kind: str, shape: tuple[int, int]) -> None:
    distances = np.random.default_rng(0).random(shape, np.float32)
    distances[distances < 0.2] = 0
    ours = run_op("BipartiteMatch", [distances], 2, "lite", match_type=kind, dist_threshold=0.6)
    assert_same(ours, run_paddle("bipartite_match", distances, kind, 0.6))


def random_regions(rng: np.random.Generator) -> tuple[Array, Array]:
    """Return regions of two images, some partly outside a map of 12 x 10 at scale 1/8."""
    boxes = random_boxes(rng, 7, size=90.0) - np.float32(10.0)
    boxes[0] = [20, 20, 20.5, 20.5]
    return boxes, np.array([3, 4], np.int32)


def test_roi_pool() -> None:
    rng = np.random.default_rng(0)
    x, (boxes, counts) = rng.normal(size=(2, 3, 12, 10)).astype(np.float32), random_regions(rng)
    ours = run_op("RoiPool", [x, boxes, counts], 1, "lite", pooled_height=3, pooled_width=2, spatial_scale=0.125)
    assert_same(ours, run_paddle("roi_pool", x, boxes, counts, 3, 2, 0.125)[:1])


def test_psroi_pool() -> None:
    rng = np.random.default_rng(0)
    x, (boxes, counts) = rng.normal(size=(2, 12, 12, 10)).astype(np.float32), random_regions(rng)
    ours = run_op(
        "PsRoiPool", [x, boxes, counts], 1, "lite", pooled_height=3, pooled_width=2, output_channels=2,
        spatial_scale=0.125,
    )  # fmt: skip
    assert_same(ours, run_paddle("psroi_pool", x, boxes, counts, 3, 2, 2, 0.125))


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("sampling", [-1, 2])
def test_roi_align_of_onnx_equals_paddle(aligned: bool, sampling: int) -> None:
    rng = np.random.default_rng(0)
    x, (boxes, counts) = rng.normal(size=(2, 3, 12, 10)).astype(np.float32), random_regions(rng)
    images = np.repeat(np.arange(2), counts).astype(np.int64)
    ours = run_op(
        "RoiAlign", [x, boxes, images], output_height=3, output_width=2, spatial_scale=0.125,
        sampling_ratio=max(sampling, 0),
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
    )  # fmt: skip
    assert_same(ours, run_paddle("roi_align", x, boxes, counts, 3, 2, 0.125, sampling, aligned), 1e-4)


@pytest.mark.parametrize("pixel_offset", [0, 1])
@pytest.mark.parametrize(("pre", "post", "eta", "min_size"), [(0, 0, 1.0, 0.0), (40, 10, 0.9, 8.0), (40, 10, 1.0, 1e4)])
def test_generate_proposals(pixel_offset: int, pre: int, post: int, eta: float, min_size: float) -> None:
    rng = np.random.default_rng(0)
    scores = rng.random((2, 3, 4, 5), np.float32)
    deltas = rng.normal(scale=0.5, size=(2, 12, 4, 5)).astype(np.float32)
    sizes = np.array([[60, 80], [50, 70]], np.float32)
    anchors = random_boxes(rng, 4, 5, 3, size=80.0)
    variances = rng.uniform(0.5, 1, (4, 5, 3, 4)).astype(np.float32)
    ours = run_op(
        "GenerateProposals", [scores, deltas, sizes, anchors, variances], 3, "lite", pre_nms_top_n=pre,
        post_nms_top_n=post, nms_thresh=0.6, min_size=min_size, eta=eta, pixel_offset=pixel_offset,
    )  # fmt: skip
    expected = run_paddle(
        "generate_proposals", scores, deltas, sizes, anchors, variances, pre, post, 0.6, min_size, eta,
        bool(pixel_offset),
    )  # fmt: skip
    assert_same(ours, expected, 1e-4)


@pytest.mark.parametrize("pixel_offset", [0, 1])
def test_distribute_fpn_proposals(pixel_offset: int) -> None:
    rng = np.random.default_rng(0)
    rois, counts = random_boxes(rng, 30, size=1500.0), np.array([12, 18], np.int32)
    ours = run_op(
        "DistributeFpnProposals", [rois, counts], 9, "lite", min_level=2, max_level=5, refer_level=4,
        refer_scale=224, pixel_offset=pixel_offset,
    )  # fmt: skip
    expected = run_paddle("distribute_fpn_proposals", rois, counts, 2, 5, 4, 224, bool(pixel_offset))
    assert_same(ours, [expected[-1], *expected[:-1]])


@pytest.mark.parametrize("top", [12, 100])
def test_collect_fpn_proposals(top: int) -> None:
    rng = np.random.default_rng(0)
    rois = [random_boxes(rng, n) for n in (9, 14)]
    scores = [rng.random((n, 1), np.float32) for n in (9, 14)]
    counts = [np.array(c, np.int32) for c in ((4, 5), (8, 6))]
    ours = run_op("CollectFpnProposals", [*rois, *scores, *counts], 2, "lite", post_nms_top_n=top)
    assert_same(ours, run_paddle("collect_fpn_proposals", rois, scores, counts, top))
