"""Lowering of NonMaxSuppression, MulticlassNms and MatrixNms, with bounded results (:mod:`lite_cpu.bounded`)."""

from __future__ import annotations

import numpy as np

from lite_compiler.fusion import Group
from lite_core.ir import DType, Node, Value
from lite_core.ops import attributes_of
from lite_cpu.emitter import float_bits
from lite_cpu.kernels.box_overlaps import Corners
from lite_cpu.kernels.detections import CollectDetections, CollectSelected
from lite_cpu.kernels.matrix_decay import MatrixDecay
from lite_cpu.kernels.ranking import COUNTER_BYTES
from lite_cpu.kernels.suppression import Suppress, scratch_bytes_of_class
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import input_of, required_input
from lite_cpu.tensors import Tensor

__all__ = ["class_suppression", "selection"]

F32, F64, I32, I64 = DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64

#: More than any number of boxes.
_ALL = 2**31


def _target(lowering: Lowering, node: Node, number: int) -> Tensor:
    value = node.outputs[number]
    assert value is not None, "bounded nodes have all outputs"
    return lowering.target(value)


def _limit(number: int) -> int:
    return number if number >= 0 else _ALL


@lowers("NonMaxSuppression")
def selection(lowering: Lowering, group: Group) -> None:
    """Emit the suppression of each image and class, then a step that collects the rows."""
    node = group.head
    boxes, scores = (lowering.dense(lowering.tensor(required_input(node, i))) for i in (0, 1))
    images, classes, many = scores.shape
    rows, total = (_target(lowering, node, i) for i in range(2))

    def scalar(value: Value | None, dtype: DType) -> Tensor:
        return lowering.constant(np.zeros(1, dtype.numpy)) if value is None else lowering.tensor(value)

    limit, overlap, least = (scalar(input_of(node, i), t) for i, t in ((2, I64), (3, F32), (4, F32)))
    kept = lowering.allocate((images, classes, many), I32)
    found = lowering.allocate(kept.shape, F32)
    counts = lowering.allocate((images, classes), I64)
    center = attributes_of(node)["center_point_box"]
    kernel = Suppress(
        has_threshold=input_of(node, 4) is not None,
        corners=Corners.CENTER if center else Corners.ANY,
        keeps_degenerate=True,
        threshold=F32,
    )
    lowering.step(
        kernel,
        [boxes, scores, least, kept, found, counts, counts, overlap, limit],
        [classes, many, many, _ALL, -1, float_bits(0.0), float_bits(1.0, F64)],
        images * classes,
        scratch_bytes=scratch_bytes_of_class(many),
    )
    lowering.step(CollectSelected(), [kept, counts, rows, total], [images, classes, many], 1)


def _refuse(node: Node) -> str | None:
    dtype = required_input(node).dtype
    return None if dtype is F32 else f"{node.op} has kernels for float32 only, not for {dtype}"


@lowers("lite.MulticlassNms", "lite.MatrixNms", refuse=_refuse)
def class_suppression(lowering: Lowering, group: Group) -> None:
    """Emit the suppression, or the decay, of each image and class, then a step that collects the rows."""
    node = group.head
    attributes = attributes_of(node)
    boxes, scores = (lowering.dense(lowering.tensor(required_input(node, i))) for i in (0, 1))
    counts_of_images = input_of(node, 2) if scores.rank == 2 else None
    in_regions = counts_of_images is not None
    regions = [lowering.dense(lowering.tensor(counts_of_images))] if counts_of_images is not None else []
    if in_regions:
        images, (many, classes) = regions[0].shape[0], scores.shape
        scores = lowering.dense(scores.permute((1, 0)))
    else:
        images, classes, many = scores.shape
    kept = lowering.allocate((1 if in_regions else images, classes, many), I32)
    found, counts = lowering.allocate(kept.shape, F32), lowering.allocate((images, classes), I64)
    least = lowering.constant(np.array([attributes["score_threshold"]], np.float32))
    offset = float_bits(0.0 if attributes["normalized"] else 1.0)
    params = [classes, many, many, _limit(attributes["nms_top_k"]), attributes["background_label"], offset]
    pointers = [boxes, scores, least, kept, found, counts, *(regions or [counts])]
    scratch_bytes = scratch_bytes_of_class(many)
    is_matrix = node.op == "MatrixNms"
    if is_matrix:
        post, sigma = (float_bits(attributes[name]) for name in ("post_threshold", "gaussian_sigma"))
        decay = MatrixDecay(gaussian=bool(attributes["use_gaussian"]))
        lowering.step(decay, pointers, [*params, post, sigma], images * classes, scratch_bytes=scratch_bytes)
    else:
        overlap = lowering.constant(np.array([attributes["nms_threshold"]], np.float64))
        limit = lowering.constant(np.array([_ALL], np.int64))
        lowering.step(
            Suppress(in_regions=in_regions, by_number=in_regions),
            [*pointers, overlap, limit],
            [*params, float_bits(attributes["nms_eta"], F64)],
            images * classes,
            scratch_bytes=scratch_bytes,
        )
    rows, indices, of_images, total = (_target(lowering, node, i) for i in range(4))
    length = classes * many + 1
    entries = lowering.allocate((2, length), DType.UINT64)
    params = [images, classes, many, many, _limit(attributes["keep_top_k"]), length]
    tensors = [boxes, kept, found, counts, entries, rows, indices, of_images, total]
    if in_regions:
        message = lowering.text(lambda: f"{node.describe()}: rois_num counts {{}} boxes, there are {many}")
        fault, number = lowering.fault(message)
        tensors, params = [*tensors, regions[0], fault], [*params, number]
    lowering.step(CollectDetections(is_matrix, in_regions), tensors, params, 1, scratch_bytes=COUNTER_BYTES)
