"""Lowering of DistributeFpnProposals and CollectFpnProposals, with bounded results (:mod:`lite_cpu.bounded`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_compiler.fusion import Group
from lite_core.ir import DType, Node
from lite_core.ops import attributes_of
from lite_cpu.emitter import float_bits
from lite_cpu.kernels.pyramid import CollectFromLevels, DistributeToLevels, collecting_bytes, distributing_bytes
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import input_of, required_input
from lite_cpu.tensors import Tensor

__all__ = ["collect", "distribute", "level_limits"]

Array = np.ndarray[Any, Any]
F32, F64 = DType.FLOAT32, DType.FLOAT64

#: A limit is searched among so many numbers on each side of the power of two: logarithms are rounded.
_NEIGHBOURS = 99


def level_limits(dtype: DType, min_level: int, max_level: int, refer_level: int) -> Array:
    """Return the smallest quotient of sizes on each level but the first, as the reference rounds logarithms; then 0."""
    limits = np.zeros(max_level - min_level + 1, dtype.numpy)
    with np.errstate(all="ignore"):
        for number, level in enumerate(range(min_level + 1, max_level + 1)):
            power = np.exp2(np.array(level - refer_level, dtype.numpy))
            bits = power.view(np.int32 if dtype is F32 else np.int64)
            near = (bits + np.arange(-_NEIGHBOURS, _NEIGHBOURS + 1)).astype(bits.dtype).view(dtype.numpy)
            limits[number] = near[np.argmax(np.floor(np.log2(near) + refer_level) >= level)]
    return limits


def _refuse_collect(node: Node) -> str | None:
    dtype = required_input(node).dtype
    if attributes_of(node)["post_nms_top_n"] < 0:
        return f"{node.op} with a negative post_nms_top_n"
    return None if dtype is F32 else f"{node.op} has kernels for float32 only, not for {dtype}"


def _refuse_distribute(node: Node) -> str | None:
    dtype = required_input(node).dtype
    return None if dtype in (F32, F64) else f"{node.op} has no kernel for {dtype}"


def _targets(lowering: Lowering, node: Node) -> list[Tensor]:
    targets = []
    for value in node.outputs:
        assert value is not None, "bounded nodes have all outputs"
        targets.append(lowering.target(value))
    return targets


@lowers("lite.DistributeFpnProposals", refuse=_refuse_distribute)
def distribute(lowering: Lowering, group: Group) -> None:
    """Emit the step that assigns regions to levels."""
    node, attributes = group.head, attributes_of(group.head)
    regions = lowering.dense(lowering.tensor(required_input(node)))
    rois_num, dtype, many = input_of(node, 1), regions.dtype, regions.shape[0]
    counts = None if rois_num is None else lowering.dense(lowering.tensor(rois_num))
    low, high = attributes["min_level"], attributes["max_level"]
    levels = high - low + 1
    restore, *results, rows = _targets(lowering, node)
    limits = lowering.constant(level_limits(dtype, low, high, attributes["refer_level"]))
    about = lowering.text(lambda: f"{node.describe()}: rois_num counts {{}} regions, there are {many}")
    fault, number = lowering.fault(about)
    numbers = (attributes["refer_scale"], 1.0 if attributes["pixel_offset"] else 0.0)
    lowering.step(
        DistributeToLevels(dtype, counts is not None),
        [regions, limits if counts is None else counts, limits, restore, rows, fault, *results],
        [many, 1 if counts is None else counts.shape[0], levels, *(float_bits(n, dtype) for n in numbers), number],
        1,
        scratch_bytes=distributing_bytes(many, levels),
    )


@lowers("lite.CollectFpnProposals", refuse=_refuse_collect)
def collect(lowering: Lowering, group: Group) -> None:
    """Emit the step that chooses the best regions of all levels."""
    node = group.head
    tensors = [lowering.dense(lowering.tensor(required_input(node, i))) for i in range(len(node.inputs))]
    levels = len(tensors) // 3
    many, images = [tensor.shape[0] for tensor in tensors[:levels]], tensors[-1].shape[0]
    regions, counts, rows = _targets(lowering, node)
    params = [levels, images, regions.shape[0], sum(many)]
    for level, size in enumerate(many):
        fault, number = lowering.fault(_about_counts(lowering, node, level, size))
        params += [size, number]
    lowering.step(
        CollectFromLevels(), [regions, counts, rows, fault, *tensors], params, 1,
        scratch_bytes=collecting_bytes(sum(many), images),
    )  # fmt: skip


def _about_counts(lowering: Lowering, node: Node, level: int, size: int) -> str:
    return lowering.text(lambda: f"{node.describe()}: rois_num of level {level} counts {{}} regions, there are {size}")
