"""Lowering of GenerateProposals, with bounded results (:mod:`lite_cpu.bounded`)."""

from __future__ import annotations

import numpy as np

from lite_compiler.fusion import Group
from lite_core.ir import DType, Node
from lite_core.ops import attributes_of
from lite_cpu.emitter import float_bits
from lite_cpu.kernels.proposals import CollectProposals, DecodeProposals, ProposalSizes, scratch_bytes
from lite_cpu.kernels.suppression import Suppress, scratch_bytes_of_class
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import required_input, reshaped

__all__ = ["generate_proposals"]

F32, F64, I32, I64 = DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64


def _refuse(node: Node) -> str | None:
    if attributes_of(node)["nms_thresh"] <= 0:
        return "GenerateProposals without suppression (nms_thresh 0)"
    dtype = required_input(node).dtype
    return None if dtype is F32 else f"{node.op} has kernels for float32 only, not for {dtype}"


@lowers("lite.GenerateProposals", refuse=_refuse)
def generate_proposals(lowering: Lowering, group: Group) -> None:
    """Emit the decoding of the best boxes of each image, their suppression, and a step that collects the regions."""
    node, attributes = group.head, attributes_of(group.head)
    scores, deltas, sizes_of_images, anchors, variances = (lowering.tensor(required_input(node, i)) for i in range(5))
    images, per_cell, height, width = scores.shape
    deltas = reshaped(lowering, deltas, (images, per_cell, 4, height, width)).permute((0, 3, 4, 1, 2))
    sources = [scores.permute((0, 2, 3, 1)), deltas, sizes_of_images, anchors, variances]
    count = per_cell * height * width
    most = min(attributes["pre_nms_top_n"], count) if attributes["pre_nms_top_n"] > 0 else count
    sizes = ProposalSizes(per_cell, height * width, most)
    offset = float_bits(1.0 if attributes["pixel_offset"] else 0.0)
    boxes, values, order = (lowering.allocate(shape, F32) for shape in ((images, most, 4), *[(images, most)] * 2))
    lowering.step(
        DecodeProposals(),
        [*map(lowering.dense, sources), boxes, values, order],
        [*sizes, float_bits(max(attributes["min_size"], 1.0)), offset],
        images,
        scratch_bytes=scratch_bytes(sizes),
    )
    kept, found = lowering.allocate((images, most), I32), lowering.allocate((images, most), F32)
    counts, nothing = lowering.allocate((images,), I64), lowering.constant(np.zeros(1, np.float32))
    limit = attributes["post_nms_top_n"] if attributes["post_nms_top_n"] > 0 else most
    limits = np.array([attributes["nms_thresh"]], np.float64), np.array([limit], np.int64)
    lowering.step(
        Suppress(),
        [boxes, order, nothing, kept, found, counts, counts, *map(lowering.constant, limits)],
        [1, most, most, most, -1, offset, float_bits(attributes["eta"], F64)],
        images,
        scratch_bytes=scratch_bytes_of_class(most),
    )
    results = []
    for value in node.outputs:
        assert value is not None, "bounded nodes have all outputs"
        results.append(lowering.target(value))
    lowering.step(CollectProposals(), [boxes, values, kept, counts, *results], [images, most], 1)
