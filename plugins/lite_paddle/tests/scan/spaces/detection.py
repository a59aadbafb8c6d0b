"""Spaces of operators on boxes, anchors and regions."""

from __future__ import annotations

from typing import Any

import numpy as np

from scan.drawing import Array, Case, Draw, space


def _boxes(draw: Draw, count: int, size: float = 20.0, shape: tuple[int, ...] = ()) -> Array:
    """Return boxes with distinct corners: left, top, right, bottom."""
    first = draw.floats([*shape, count, 2], 0, size / 2)
    return np.concatenate([first, first + draw.floats([*shape, count, 2], 1, size / 2)], -1).astype("float32")


@space("prior_box")
def prior_box(draw: Draw) -> Case:
    small = [draw.real(2, 5)]
    attrs = {
        "min_sizes": small, "max_sizes": draw.one([], [small[0] + 3.0]), "aspect_ratios": draw.one([1.0], [1.0,
        2.0], [2.0, 3.0]),
        "variances": [0.1, 0.1, 0.2, 0.2], "flip": draw.chance(), "clip": draw.chance(), "step_w": draw.one(0.0, 4.0),
        "step_h": draw.one(0.0, 4.0), "offset": draw.one(0.5, 0.0), "min_max_aspect_ratios_order": draw.chance(),
    }  # fmt: skip
    sizes = draw.integers_of(2, 1, 3)
    inputs = {"Input": draw.floats([1, 2, *sizes]), "Image": draw.floats([1, 3, 12, 16])}
    return draw.case(inputs, attrs, ["Boxes", "Variances"])


@space("density_prior_box")
def density_prior_box(draw: Draw) -> Case:
    attrs = {
        "fixed_sizes": [4.0, 8.0], "fixed_ratios": draw.one([1.0], [1.0, 2.0]), "densities": draw.one([1, 2], [2, 1]),
        "variances": [0.1, 0.1, 0.2, 0.2], "clip": draw.chance(), "step_w": draw.one(0.0, 4.0),
        "step_h": draw.one(0.0, 4.0),
        "offset": 0.5, "flatten_to_2d": draw.chance(),
    }  # fmt: skip
    inputs = {"Input": draw.floats([1, 2, *draw.integers_of(2, 1, 3)]), "Image": draw.floats([1, 3, 12, 16])}
    return draw.case(inputs, attrs, ["Boxes", "Variances"])


@space("anchor_generator")
def anchor_generator(draw: Draw) -> Case:
    attrs = {
        "anchor_sizes": draw.one([16.0], [8.0, 32.0]), "aspect_ratios": draw.one([1.0], [0.5, 1.0, 2.0]),
        "variances": [0.1, 0.1, 0.2, 0.2], "stride": draw.one([16.0, 16.0], [8.0, 4.0]), "offset": draw.one(0.5, 0.0),
    }  # fmt: skip
    return draw.case({"Input": draw.floats([1, 2, *draw.integers_of(2, 1, 3)])}, attrs, ["Anchors", "Variances"])


@space("box_coder")
def box_coder(draw: Draw) -> Case:
    code, count, targets = draw.one("encode_center_size", "decode_center_size"), draw.integer(1, 4), draw.integer(1, 3)
    axis = draw.integer(0, 1) if code.startswith("decode") else 0
    target = _boxes(draw, targets)
    if code.startswith("decode"):
        target = draw.floats([targets, count, 4] if axis == 0 else [count, targets, 4], -1, 1)
    inputs: dict[str, Any] = {"PriorBox": _boxes(draw, count), "TargetBox": target}
    attrs: dict[str, Any] = {"code_type": code, "box_normalized": draw.chance(), "axis": axis}
    how = draw.one("tensor", "attribute", "none")
    if how == "tensor":
        inputs["PriorBoxVar"] = draw.floats([count, 4], 0.1, 1)
    attrs["variance"] = [0.1, 0.1, 0.2, 0.2] if how == "attribute" else []
    return draw.case(inputs, attrs, ["OutputBox"])


@space("box_clip")
def box_clip(draw: Draw) -> Case:
    count = draw.integer(1, 4)
    inputs = {"Input": _boxes(draw, count, 40.0), "ImInfo": np.array([[12, 16, draw.one(1.0, 2.0)]], "float32")}
    return draw.case(inputs, outputs=["Output"], lod={"Input": [[0, count]], "ImInfo": [[0, 1]]})


@space("iou_similarity")
def iou_similarity(draw: Draw) -> Case:
    inputs = {"X": _boxes(draw, draw.integer(1, 4)), "Y": _boxes(draw, draw.integer(1, 4))}
    return draw.case(inputs, {"box_normalized": draw.chance()})


@space("yolo_box")
def yolo_box(draw: Draw) -> Case:
    classes, aware = draw.integer(1, 3), draw.chance(0.3)
    anchors = draw.one([10, 13], [10, 13, 16, 30])
    count = len(anchors) // 2
    channels = count * (5 + classes) + (count if aware else 0)
    attrs = {
        "anchors": anchors, "class_num": classes, "conf_thresh": draw.one(0.01, 0.5),
        "downsample_ratio": draw.one(32, 16),
        "clip_bbox": draw.chance(), "scale_x_y": draw.one(1.0, 1.2), "iou_aware": aware, "iou_aware_factor": 0.4,
    }  # fmt: skip
    inputs = {
        "X": draw.floats([2, channels, *draw.integers_of(2, 1, 3)]),
        "ImgSize": draw.integers([2, 2], 30, 90, "int32"),
    }
    return draw.case(inputs, attrs, ["Boxes", "Scores"])


def _nms_attributes(draw: Draw, background: tuple[int, ...] = (-1, 0)) -> dict[str, Any]:
    return {
        "background_label": draw.one(*background), "score_threshold": draw.real(0.05, 0.4),
        "nms_top_k": draw.one(-1, 4),
        "keep_top_k": draw.one(-1, 3, 6), "normalized": draw.chance(),
    }  # fmt: skip


@space("multiclass_nms", "multiclass_nms2", "multiclass_nms3", "matrix_nms", "locality_aware_nms")
def nms(draw: Draw) -> Case:
    images, count, classes = draw.integer(1, 2), draw.integer(2, 6), draw.integer(2, 3)
    images = 1 if draw.op == "locality_aware_nms" else images
    boxes = np.concatenate([_boxes(draw, count, 12.0, (1,)) for _ in range(images)])
    scores = (draw.distinct([images, classes, count]) + 2) / 4
    attrs = _nms_attributes(draw)
    if draw.op == "matrix_nms":
        attrs |= {"post_threshold": draw.real(0, 0.2), "use_gaussian": draw.chance(), "gaussian_sigma": 2.0}
        outputs = ["Out", "Index", "RoisNum"]
    else:
        attrs |= {"nms_threshold": draw.real(0.2, 0.6), "nms_eta": draw.one(1.0, 1.0, 0.9)}
        outputs = {"multiclass_nms2": ["Out", "Index"], "multiclass_nms3": ["Out", "Index", "NmsRoisNum"]}.get(
            draw.op, ["Out"]
        )
    return draw.case({"BBoxes": boxes, "Scores": scores.astype("float32")}, attrs, outputs)


@space("nms", "bipartite_match")
def matching(draw: Draw) -> Case:
    if draw.op == "nms":
        return draw.case(
            {"Boxes": _boxes(draw, draw.integer(1, 6), 12.0)}, {"iou_threshold": draw.real(0.2, 0.7)}, ["KeepBoxesIdxs"]
        )
    attrs = {"match_type": draw.one("bipartite", "per_prediction"), "dist_threshold": 0.3}
    array = (draw.distinct(draw.shape(2, 2)) + 2) / 4
    return draw.case({"DistMat": array.astype("float32")}, attrs, ["ColToRowMatchIndices", "ColToRowMatchDist"])


@space("generate_proposals", "generate_proposals_v2")
def proposals(draw: Draw) -> Case:
    anchors, h, w = draw.integer(1, 2), *draw.integers_of(2, 1, 3)
    inputs: dict[str, Any] = {
        "Scores": ((draw.distinct([1, anchors, h, w]) + 2) / 4).astype("float32"),
        "BboxDeltas": draw.floats([1, 4 * anchors, h, w], -0.3, 0.3),
        "Anchors": _boxes(draw, anchors, 20.0, (h, w)),
        "Variances": draw.floats([h, w, anchors, 4], 0.5, 1),
    }
    attrs = {
        "pre_nms_topN": draw.one(100, 4),
        "post_nms_topN": draw.one(100, 3),
        "nms_thresh": 0.5,
        "min_size": 0.5,
        "eta": 1.0,
    }
    if draw.op == "generate_proposals":
        inputs["ImInfo"] = np.array([[16, 18, 1.0]], "float32")
    else:
        inputs["ImShape"] = np.array([[16, 18]], "float32")
        attrs["pixel_offset"] = draw.chance()
    return draw.case(inputs, attrs, ["RpnRois", "RpnRoiProbs", "RpnRoisNum"])


@space("roi_align", "roi_pool", "psroi_pool")
def regions(draw: Draw) -> Case:
    images, count = draw.integer(1, 2), draw.integer(1, 3)
    h, w = draw.integers_of(2, 1, 3)
    channels = 2 * h * w if draw.op == "psroi_pool" else 2
    inputs = {
        "X": draw.floats([images, channels, 6, 7]), "ROIs": _boxes(draw, count * images, 10.0),
        "RoisNum": np.full([images], count, "int32"),
    }  # fmt: skip
    attrs: dict[str, Any] = {"pooled_height": h, "pooled_width": w, "spatial_scale": draw.one(1.0, 0.5)}
    if draw.op == "roi_align":
        attrs |= {"sampling_ratio": draw.one(-1, 2, 1), "aligned": draw.chance()}
    if draw.op == "psroi_pool":
        attrs["output_channels"] = 2
    return draw.case(inputs, attrs)


@space("distribute_fpn_proposals")
def distribute(draw: Draw) -> Case:
    count, low = draw.integer(1, 5), draw.integer(2, 3)
    attrs = {
        "min_level": low,
        "max_level": low + 2,
        "refer_level": low + 1,
        "refer_scale": 8,
        "pixel_offset": draw.chance(),
    }
    inputs = {"FpnRois": _boxes(draw, count, 30.0), "RoisNum": np.array([count], "int32")}
    return draw.case(inputs, attrs, {"MultiFpnRois": 3, "RestoreIndex": 1, "MultiLevelRoIsNum": 3})


@space("collect_fpn_proposals")
def collect(draw: Draw) -> Case:
    counts = draw.integers_of(2, 1, 3)
    scores = (draw.distinct([sum(counts), 1]) + 2).astype("float32")
    inputs = {
        "MultiLevelRois": [_boxes(draw, n) for n in counts], "MultiLevelScores": [scores[: counts[0]],
        scores[counts[0] :]],
        "MultiLevelRoIsNum": [np.array([n], "int32") for n in counts],
    }  # fmt: skip
    return draw.case(inputs, {"post_nms_topN": draw.integer(1, 6)}, ["FpnRois", "RoisNum"])


@space("polygon_box_transform")
def polygon(draw: Draw) -> Case:
    return draw.case({"Input": draw.floats([1, 8, *draw.integers_of(2, 1, 3)])}, outputs=["Output"])


@space("retinanet_detection_output")
def retinanet(draw: Draw) -> Case:
    counts, classes = draw.integers_of(2, 1, 3), 2
    inputs = {
        "BBoxes": [draw.floats([1, n, 4], -0.2, 0.2) for n in counts],
        "Scores": [((draw.distinct([1, n, classes]) + 2) / 4).astype("float32") for n in counts],
        "Anchors": [_boxes(draw, n) for n in counts],
        "ImInfo": np.array([[40, 50, 1.0]], "float32"),
    }
    attrs = {"score_threshold": 0.05, "nms_top_k": 100, "nms_threshold": 0.3, "nms_eta": 1.0, "keep_top_k": 10}
    return draw.case(inputs, attrs)
