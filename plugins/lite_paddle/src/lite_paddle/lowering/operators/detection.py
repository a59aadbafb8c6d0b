"""Detection operators. Lite's own domain has Paddle's operators, so lowering mostly translates names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.sequences import Rows
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

_Attributes = dict[str, Any]


def _attributes(op: SourceOp, **kinds: str) -> _Attributes:
    """Return the present attributes, converted: ``int`` (also for flags), ``float``, ``ints``, ``floats``."""
    convert: dict[str, Callable[[Any], Any]] = {
        "int": int,
        "float": float,
        "ints": lambda a: [int(i) for i in a],
        "floats": lambda a: [float(i) for i in a],
    }
    return {name: convert[kind](op.attrs[name]) for name, kind in kinds.items() if op.attrs.get(name) is not None}


def _emit(
    op: SourceOp,
    context: Context,
    type_: str,
    inputs: list[Value | None],
    attributes: _Attributes,
    *slots: str,
) -> None:
    for slot, value in zip(slots, context.nodes(type_, inputs, attributes, outputs=len(slots), domain="lite")):
        context.bind(op, slot, value)


def _number_of_regions(op: SourceOp, context: Context) -> Value | None:
    given = context.optional(op, "RoisNum")
    if given is None and (sequences := _sequences(op, context)) is not None:
        given = sequences.lengths()
    return None if given is None else context.cast(given, DType.INT32)


# **** boxes ****


@lowers("yolo_box")
def yolo_box(op: SourceOp, context: Context) -> None:
    attributes = _attributes(
        op,
        anchors="ints",
        class_num="int",
        conf_thresh="float",
        downsample_ratio="int",
        clip_bbox="int",
        scale_x_y="float",
        iou_aware="int",
        iou_aware_factor="float",
    )
    inputs: list[Value | None] = [context.input(op, "X"), context.cast(context.input(op, "ImgSize"), DType.INT32)]
    _emit(op, context, "YoloBox", inputs, attributes, "Boxes", "Scores")


@lowers("prior_box")
def prior_box(op: SourceOp, context: Context) -> None:
    attributes = _attributes(
        op,
        min_sizes="floats",
        max_sizes="floats",
        aspect_ratios="floats",
        variances="floats",
        flip="int",
        clip="int",
        step_w="float",
        step_h="float",
        offset="float",
        min_max_aspect_ratios_order="int",
    )
    _emit_priors(op, context, "PriorBox", attributes)


@lowers("density_prior_box")
def density_prior_box(op: SourceOp, context: Context) -> None:
    attributes = _attributes(
        op,
        fixed_sizes="floats",
        fixed_ratios="floats",
        densities="ints",
        variances="floats",
        clip="int",
        flatten_to_2d="int",
        step_w="float",
        step_h="float",
        offset="float",
    )
    _emit_priors(op, context, "DensityPriorBox", attributes)


def _emit_priors(op: SourceOp, context: Context, type_: str, attributes: _Attributes) -> None:
    if not attributes.get("variances"):
        attributes.pop("variances", None)
    inputs: list[Value | None] = [context.input(op, "Input"), context.input(op, "Image")]
    _emit(op, context, type_, inputs, attributes, "Boxes", "Variances")


@lowers("anchor_generator")
def anchor_generator(op: SourceOp, context: Context) -> None:
    attributes = _attributes(
        op, anchor_sizes="floats", aspect_ratios="floats", variances="floats", stride="floats", offset="float"
    )
    _emit(op, context, "AnchorGenerator", [context.input(op, "Input")], attributes, "Anchors", "Variances")


@lowers("box_coder")
def box_coder(op: SourceOp, context: Context) -> None:
    attributes = _attributes(op, box_normalized="int", axis="int", variance="floats")
    attributes["code_type"] = str(op.attrs["code_type"]).lower()
    inputs = [context.input(op, "PriorBox"), context.optional(op, "PriorBoxVar"), context.input(op, "TargetBox")]
    _emit(op, context, "BoxCoder", inputs, attributes, "OutputBox")


@lowers("box_clip")
def box_clip(op: SourceOp, context: Context) -> None:
    inputs: list[Value | None] = [context.input(op, "Input"), context.input(op, "ImInfo")]
    _emit(op, context, "BoxClip", inputs, {}, "Output")


@lowers("iou_similarity")
def iou_similarity(op: SourceOp, context: Context) -> None:
    inputs: list[Value | None] = [context.input(op, "X"), context.input(op, "Y")]
    _emit(op, context, "IouSimilarity", inputs, _attributes(op, box_normalized="int"), "Out")


@lowers("bipartite_match")
def bipartite_match(op: SourceOp, context: Context) -> None:
    attributes = _attributes(op, dist_threshold="float")
    attributes["match_type"] = str(op.attrs["match_type"])
    pir = "0" in op.inputs
    slots = ("0", "1") if pir else ("ColToRowMatchIndices", "ColToRowMatchDist")
    _emit(op, context, "BipartiteMatch", [context.any_input(op, "DistMat", "0")], attributes, *slots)


# **** suppression ****


@lowers("multiclass_nms", "multiclass_nms2", "multiclass_nms3")
def multiclass_nms(op: SourceOp, context: Context) -> None:
    attributes = _attributes(
        op,
        score_threshold="float",
        nms_top_k="int",
        keep_top_k="int",
        nms_threshold="float",
        nms_eta="float",
        normalized="int",
        background_label="int",
    )
    inputs = [context.input(op, "BBoxes"), context.input(op, "Scores"), _number_of_regions(op, context)]
    out, index, counts = context.nodes("MulticlassNms", inputs, attributes, outputs=3, domain="lite")
    context.bind(op, "Out", minus_one_when_empty(context, out) if op.type == "multiclass_nms" else out)
    context.bind(op, "Index", index)
    context.bind(op, "NmsRoisNum", counts)


def minus_one_when_empty(context: Context, rows: Value) -> Value:
    """Return the rows, or [[-1]] when there are none, as Paddle 1 does."""
    none = context.node("Equal", [context.node("Size", [rows]), context.scalar(0, DType.INT64)])
    branches = {}
    for name in ("then_branch", "else_branch"):
        inner = context.inner(name)
        source = inner.builder.constant(np.full((1, 1), -1).astype(rows.dtype.numpy))
        inner.builder.output(inner.node("Identity", [source if name == "then_branch" else rows]))
        branches[name] = inner.builder.build()
    return context.node("If", [none], branches)


@lowers("matrix_nms")
def matrix_nms(op: SourceOp, context: Context) -> None:
    attributes = _attributes(
        op,
        score_threshold="float",
        nms_top_k="int",
        keep_top_k="int",
        post_threshold="float",
        use_gaussian="int",
        gaussian_sigma="float",
        normalized="int",
        background_label="int",
    )
    inputs: list[Value | None] = [context.input(op, "BBoxes"), context.input(op, "Scores")]
    _emit(op, context, "MatrixNms", inputs, attributes, "Out", "Index", "RoisNum")


@lowers("nms")
def nms(op: SourceOp, context: Context) -> None:
    """Lower to NonMaxSuppression with made-up falling scores: the boxes are sorted already, best first."""
    boxes = context.input(op, "Boxes")
    count = context.node("Shape", [boxes], {"start": 0, "end": 1})
    falling = [context.reshape(count, []), context.scalar(0, DType.INT64), context.scalar(-1, DType.INT64)]
    scores = context.cast(context.node("Range", falling), DType.FLOAT32)
    ints = context.builder.ints
    inputs = [
        context.node("Unsqueeze", [context.cast(boxes, DType.FLOAT32), ints(0)]),
        context.node("Unsqueeze", [scores, ints(0, 1)]),
        count,
        context.scalar(float(op.attrs["iou_threshold"]), DType.FLOAT32),
    ]
    rows = context.node("NonMaxSuppression", inputs)
    context.emit(op, "Gather", [rows, context.scalar(2, DType.INT64)], {"axis": 1}, slot="KeepBoxesIdxs")


# **** regions of interest ****


def images_with_regions(op: SourceOp, context: Context) -> Value:
    """Return the input X. Raises Unlowerable if it has several images, and nothing says which regions are whose.

    NOTE: a batch of unknown size is reshaped to one image, which fails at run time if there are more; without
    that, the regions of every image would silently be taken from the first.
    """
    x = context.input(op, "X")
    if op.inputs.get("RoisNum") or _sequences(op, context) is not None:
        return x
    batch = x.shape[0] if x.type.rank else None
    if batch == 1:
        return x
    if isinstance(batch, int):
        raise Unlowerable(
            f"the regions of a batch of {batch} images are assigned by sequence offsets (LoD), which are not inputs",
            "read the model with the reader's option lod, or export it for one image, or with the input RoisNum",
        )
    rest = context.node("Shape", [x], {"start": 1})
    one_image = context.node("Concat", [context.builder.ints(1), rest], {"axis": 0})
    return context.node("Reshape", [x, one_image], {"allowzero": 1})


def _sequences(op: SourceOp, context: Context) -> Rows | None:
    """Return the regions, if they are a sequence with known offsets for each image."""
    source = op.inputs["ROIs"][0] if op.inputs.get("ROIs") else None
    found = None if source is None else context.sequences(source)
    return None if source is None or found is None or found.is_one else Rows(context, context.value(source), found)


@lowers("roi_align")
def roi_align(op: SourceOp, context: Context) -> None:
    x, regions = images_with_regions(op, context), context.input(op, "ROIs")
    attributes: _Attributes = {
        "output_height": int(op.attrs["pooled_height"]),
        "output_width": int(op.attrs["pooled_width"]),
        "spatial_scale": float(op.attrs["spatial_scale"]),
        "sampling_ratio": max(int(op.attrs["sampling_ratio"]), 0),
        "coordinate_transformation_mode": "half_pixel" if op.attrs["aligned"] else "output_half_pixel",
    }
    context.emit(op, "RoiAlign", [x, regions, image_of_each_region(op, context, regions)], attributes)


def image_of_each_region(op: SourceOp, context: Context, regions: Value) -> Value:
    """Return the image index of each region: the number of images whose last region comes before it."""
    sequences = None if op.inputs.get("RoisNum") else _sequences(op, context)
    if sequences is not None:
        return sequences.tables().sequence
    count = context.node("Shape", [regions], {"start": 0, "end": 1})
    numbers = context.optional(op, "RoisNum")
    if numbers is None:
        return context.node("ConstantOfShape", [count], {"value": np.zeros(1, np.int64)})
    zero, one = (context.scalar(n, DType.INT64) for n in (0, 1))
    positions = context.node("Range", [zero, context.reshape(count, []), one])
    ends = context.node("CumSum", [context.cast(numbers, DType.INT64), zero])
    column = context.node("Unsqueeze", [positions, context.builder.ints(1)])
    behind = context.cast(context.node("GreaterOrEqual", [column, ends]), DType.INT64)
    return context.node("ReduceSum", [behind, context.builder.ints(1)], {"keepdims": 0})


@lowers("roi_pool", "psroi_pool")
def roi_pool(op: SourceOp, context: Context) -> None:
    x = images_with_regions(op, context)
    attributes = _attributes(op, pooled_height="int", pooled_width="int", spatial_scale="float")
    if op.type == "psroi_pool":
        attributes["output_channels"] = int(op.attrs["output_channels"])
    inputs = [x, context.input(op, "ROIs"), _number_of_regions(op, context)]
    _emit(op, context, "RoiPool" if op.type == "roi_pool" else "PsRoiPool", inputs, attributes, "Out")


@lowers("generate_proposals", "generate_proposals_v2")
def generate_proposals(op: SourceOp, context: Context) -> None:
    attributes = {
        "pre_nms_top_n": int(context.attribute(op, "pre_nms_topN")),
        "post_nms_top_n": int(context.attribute(op, "post_nms_topN")),
        **_attributes(op, nms_thresh="float", min_size="float", eta="float", pixel_offset="int"),
    }
    if op.type == "generate_proposals_v2":
        size = context.input(op, "ImShape")
    else:
        if attributes["min_size"] > 1:
            raise Unlowerable(
                f"min_size {attributes['min_size']} is measured in the original image, whose size Lite's operator "
                "does not know",
                "export the model with generate_proposals_v2",
            )
        info, ints = context.input(op, "ImInfo"), context.builder.ints
        size = context.node("Slice", [info, ints(0), ints(2), ints(1)])
    inputs: list[Value | None] = [context.input(op, "Scores"), context.input(op, "BboxDeltas"), size]
    inputs += [context.input(op, "Anchors"), context.input(op, "Variances")]
    _emit(op, context, "GenerateProposals", inputs, attributes, "RpnRois", "RpnRoiProbs", "RpnRoisNum")


@lowers("distribute_fpn_proposals")
def distribute_fpn_proposals(op: SourceOp, context: Context) -> None:
    attributes = _attributes(
        op, min_level="int", max_level="int", refer_level="int", refer_scale="int", pixel_offset="int"
    )
    levels = attributes["max_level"] - attributes["min_level"] + 1
    inputs = [context.input(op, "FpnRois"), _number_of_regions(op, context)]
    found = context.nodes("DistributeFpnProposals", inputs, attributes, outputs=1 + 2 * levels, domain="lite")
    context.bind(op, "RestoreIndex", found[0])
    context.bind(op, "MultiFpnRois", *found[1 : 1 + levels])
    context.bind(op, "MultiLevelRoIsNum", *found[1 + levels :])


@lowers("collect_fpn_proposals")
def collect_fpn_proposals(op: SourceOp, context: Context) -> None:
    pir = "0" in op.inputs
    slots = ("0", "1", "2") if pir else ("MultiLevelRois", "MultiLevelScores", "MultiLevelRoIsNum")
    regions, scores, counts = (context.inputs(op, slot) for slot in slots)
    if not counts:  # one image, to which all regions belong
        counts = [context.node("Shape", [level], {"start": 0, "end": 1}) for level in regions]
    inputs: list[Value | None] = [*regions, *scores, *(context.cast(c, DType.INT32) for c in counts)]
    attributes = {"post_nms_top_n": int(context.attribute(op, "post_nms_topN", "post_nms_topn"))}
    outputs = ("0", "1") if pir else ("FpnRois", "RoisNum")
    _emit(op, context, "CollectFpnProposals", inputs, attributes, *outputs)
