"""Adapters for attributes that became inputs."""

from __future__ import annotations

import math

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import SourceNode
from lite_onnx.lowering.operators.ai_onnx.versions.checked_attributes import take_float, take_int, take_ints
from lite_onnx.lowering.registry import adapts
from lite_onnx.lowering.unlowerable import Unlowerable

_REDUCTIONS = ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
               "ReduceProd", "ReduceSumSquare")  # fmt: skip


@adapts("Squeeze", "Unsqueeze", "ReduceSum", until=12)
@adapts(*_REDUCTIONS, until=17)
def axes_as_input(node: SourceNode, context: Context) -> None:
    """Convert the attribute ``axes`` to an input."""
    axes = take_ints(node, "axes")
    if axes is not None:
        node.inputs = [context.value(node, 0), context.ints(*axes)]


@adapts("Clip", until=10)
def limits_as_inputs(node: SourceNode, context: Context) -> None:
    """Convert ``min`` and ``max`` to inputs. Their defaults, the largest finite numbers, mean no limit."""
    data = context.value(node, 0)
    largest = float(np.finfo(data.dtype.numpy).max) if data.dtype.is_floating else math.inf
    limits: list[Value | None] = []
    for name, default in (("min", -math.inf), ("max", math.inf)):
        limit = take_float(node, name, default)
        limits.append(context.scalar_like(limit, data) if abs(limit) < largest else None)
    node.inputs = [data, *limits]


@adapts("Pad", until=1)
def rename_paddings(node: SourceNode, context: Context) -> None:
    """Rename ``paddings`` to ``pads``."""
    pads = take_ints(node, "paddings")
    if pads is not None:
        node.attributes["pads"] = pads


@adapts("Pad", until=10)
def pads_as_inputs(node: SourceNode, context: Context) -> None:
    """Convert the attributes ``pads`` and ``value`` to inputs."""
    data, pad_value = context.value(node, 0), take_float(node, "value", 0.0)
    node.inputs = [data, _vector(node, "pads", context), context.scalar_like(pad_value, data) if pad_value else None]


@adapts("Reshape", until=4)
def shape_as_input(node: SourceNode, context: Context) -> None:
    """Convert the attribute ``shape`` to an input."""
    node.inputs = [context.value(node, 0), context.ints(*(take_ints(node, "shape") or []))]


@adapts("Slice", until=9)
def ranges_as_inputs(node: SourceNode, context: Context) -> None:
    """Convert the attributes ``starts``, ``ends`` and ``axes`` to inputs."""
    starts, ends = _vector(node, "starts", context), _vector(node, "ends", context)
    axes = take_ints(node, "axes")
    node.inputs = [context.value(node, 0), starts, ends, None if axes is None else context.ints(*axes)]


@adapts("Split", until=1)
def sizes_as_integers(node: SourceNode, context: Context) -> None:
    """Cast the sizes to int64: the first version had an input for sizes, too, but of the data's element type."""
    sizes = context.optional(node, 1)
    if sizes is not None:
        node.inputs[1] = context.add("Cast", [sizes], {"to": DType.INT64})


@adapts("Split", until=12)
def sizes_as_input(node: SourceNode, context: Context) -> None:
    """Convert the attribute ``split`` to an input."""
    sizes = take_ints(node, "split")
    if sizes is not None:
        node.inputs = [context.value(node, 0), context.ints(*sizes)]


@adapts("Tile", until=5)
def repeats_for_all_axes(node: SourceNode, context: Context) -> None:
    """Convert ``tiles`` and ``axis``, two inputs of the data's element type, to repeats of all axes."""
    data, tiles = context.value(node, 0), context.value(node, 1)
    axis = int(context.must_know(node, 2, "axis").reshape(()))
    rank = context.rank(data)
    if not -rank <= axis < rank:
        raise Unlowerable(f"its axis {axis} does not exist in an input with {rank} dimensions")
    along = context.add("Reshape", [context.add("Cast", [tiles], {"to": DType.INT64}), context.ints(1)])
    before, after = context.ints(*[1] * (axis % rank)), context.ints(*[1] * (rank - 1 - axis % rank))
    node.inputs = [data, context.add("Concat", [before, along, after], {"axis": 0})]


@adapts("TopK", until=9)
def count_as_input(node: SourceNode, context: Context) -> None:
    """Convert the attribute ``k`` to an input."""
    node.inputs = [context.value(node, 0), context.ints(take_int(node, "k"))]


@adapts("DFT", until=19)
def dft_axis_as_input(node: SourceNode, context: Context) -> None:
    """Convert ``axis`` to an input. Its default was the axis after the batch; now it is the signal's last axis."""
    axis = context.constant(np.array(take_int(node, "axis", 1), np.int64))
    node.inputs = [context.value(node, 0), context.optional(node, 1), axis]


@adapts("Upsample", until=6)
def scales_for_all_axes(node: SourceNode, context: Context) -> None:
    """Convert ``height_scale`` and ``width_scale`` to ``scales`` of all axes: only images could be resized."""
    node.attributes["scales"] = [1.0, 1.0, take_float(node, "height_scale"), take_float(node, "width_scale")]


@adapts("Upsample", until=8)
def scales_as_input(node: SourceNode, context: Context) -> None:
    """Convert the attribute ``scales`` to an input."""
    scales = node.attributes.pop("scales", None)
    if not isinstance(scales, list):
        raise Unlowerable("its attribute 'scales' is missing")
    node.inputs = [context.value(node, 0), context.constant(np.array(scales, np.float32))]


def _vector(node: SourceNode, name: str, context: Context) -> Value:
    """Convert a required attribute to an input."""
    numbers = take_ints(node, name)
    if numbers is None:
        raise Unlowerable(f"its attribute {name!r} is missing")
    return context.ints(*numbers)
