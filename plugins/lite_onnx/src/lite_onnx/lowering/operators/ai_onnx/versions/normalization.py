"""Normalization and softmax: over which elements, and with which scales."""

from __future__ import annotations

from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators.ai_onnx.versions.taking import take_float, take_int
from lite_onnx.lowering.registry import adapts
from lite_onnx.lowering.unlowerable import Unlowerable


@adapts("BatchNormalization", until=8)
def statistics_of_each_element(node: SourceNode, context: Context) -> list[Item] | None:
    """``spatial=0``: scale, bias and statistics were those of each element of a sample, not of each channel."""
    if take_int(node, "spatial", 1):
        return None
    data, scale, bias, mean, variance = (context.value(node, position) for position in range(5))
    if context.rank(data) <= 2:
        return None
    if len(node.outputs) > 1:
        raise Unlowerable("it is written for training", "export the model for inference")
    if context.rank(scale) != context.rank(data) - 1:
        raise Unlowerable(f"with spatial=0 its scale must have the shape of a sample, it is {scale.type}")
    steadied = context.add("Add", [variance, context.scalar_like(take_float(node, "epsilon", 1e-5), variance)])
    normal = context.add("Div", [context.add("Sub", [data, mean]), context.add("Sqrt", [steadied])])
    return [context.add("Add", [context.add("Mul", [normal, scale]), bias])]


@adapts("GroupNormalization", until=20)
def scale_of_each_channel(node: SourceNode, context: Context) -> None:
    """Scale and bias were those of each group; every channel gets that of its group."""
    groups = take_int(node, "num_groups")
    node.attributes["num_groups"] = groups
    channels = context.add("Shape", [context.value(node, 0)], {"start": 1, "end": 2})
    of_group = context.add("Div", [channels, context.ints(groups)])
    shape = context.add("Concat", [context.ints(groups), of_group], {"axis": 0})
    for position in (1, 2):
        column = context.add("Unsqueeze", [context.value(node, position), context.ints(1)])
        node.inputs[position] = context.add("Reshape", [context.add("Expand", [column, shape]), context.ints(-1)])


@adapts("MeanVarianceNormalization", until=8)
def statistics_by_flags(node: SourceNode, context: Context) -> list[Item] | None:
    """Of each channel, or with ``across_channels`` of all; with ``normalize_variance=0`` only the mean was taken off.

    As an experimental operator; its statistics are those of the whole batch, as they are now.
    """
    axes = (0, 1, 2, 3) if take_int(node, "across_channels", 0) else (0, 2, 3)
    if take_int(node, "normalize_variance", 1):
        node.attributes["axes"] = list(axes)
        return None
    data = context.value(node, 0)
    return [context.add("Sub", [data, context.add("ReduceMean", [data, context.ints(*axes)])])]


@adapts("Softmax", "LogSoftmax", "Hardmax", until=12)
def over_all_axes_from_one_on(node: SourceNode, context: Context) -> list[Item] | None:
    """They went over all axes from ``axis`` on together, as if the input were a matrix."""
    data, axis = context.value(node, 0), take_int(node, "axis", 1)
    if data.type.shape is not None:
        rank = len(data.type.shape)
        start = axis if axis >= 0 else axis + rank
        wide = [position for position in range(start, rank) if data.type.shape[position] != 1]
        if start < rank and len(wide) <= 1:
            node.attributes["axis"] = wide[0] if wide else start
            return None
    matrix = context.add("Flatten", [data], {"axis": axis})
    result = context.add(node.op, [matrix], {"axis": -1})
    # Without allowzero a size of 0 in the shape would be taken from the matrix.
    return [context.add("Reshape", [result, context.add("Shape", [data])], {"allowzero": 1})]
