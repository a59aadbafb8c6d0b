"""Adapters for normalization and softmax, whose axes and scales changed."""

from __future__ import annotations

from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators.ai_onnx.versions.checked_attributes import take_float, take_int
from lite_onnx.lowering.registry import adapts
from lite_onnx.lowering.unlowerable import Unlowerable


@adapts("BatchNormalization", until=8)
def statistics_per_element(node: SourceNode, context: Context) -> list[Item] | None:
    """Lower ``spatial=0``: scale, bias and statistics for each element of a sample, not for each channel."""
    if take_int(node, "spatial", 1):
        return None
    data, scale, bias, mean, variance = (context.value(node, position) for position in range(5))
    if context.rank(data) <= 2:
        return None
    if len(node.outputs) > 1:
        raise Unlowerable("it is for training", "export the model for inference")
    if context.rank(scale) != context.rank(data) - 1:
        raise Unlowerable(f"with spatial=0 its scale must have the shape of a sample, but is {scale.type}")
    stabilized = context.add("Add", [variance, context.scalar_like(take_float(node, "epsilon", 1e-5), variance)])
    normal = context.add("Div", [context.add("Sub", [data, mean]), context.add("Sqrt", [stabilized])])
    return [context.add("Add", [context.add("Mul", [normal, scale]), bias])]


@adapts("GroupNormalization", until=20)
def scale_per_channel(node: SourceNode, context: Context) -> None:
    """Repeat scale and bias of each group for all its channels."""
    groups = take_int(node, "num_groups")
    node.attributes["num_groups"] = groups
    channels = context.add("Shape", [context.value(node, 0)], {"start": 1, "end": 2})
    of_group = context.add("Div", [channels, context.ints(groups)])
    shape = context.add("Concat", [context.ints(groups), of_group], {"axis": 0})
    for position in (1, 2):
        column = context.add("Unsqueeze", [context.value(node, position), context.ints(1)])
        node.inputs[position] = context.add("Reshape", [context.add("Expand", [column, shape]), context.ints(-1)])


@adapts("MeanVarianceNormalization", until=8)
def axes_from_flags(node: SourceNode, context: Context) -> list[Item] | None:
    """Convert ``across_channels`` to axes, and lower ``normalize_variance=0``, which only subtracts the mean.

    This is the experimental operator. Its statistics are those of the whole batch, like today's.
    """
    axes = (0, 1, 2, 3) if take_int(node, "across_channels", 0) else (0, 2, 3)
    if take_int(node, "normalize_variance", 1):
        node.attributes["axes"] = list(axes)
        return None
    data = context.value(node, 0)
    return [context.add("Sub", [data, context.add("ReduceMean", [data, context.ints(*axes)])])]


@adapts("Softmax", "LogSoftmax", "Hardmax", until=12)
def flatten_from_axis(node: SourceNode, context: Context) -> list[Item] | None:
    """Flatten all axes from ``axis`` on, which these operators treated as one axis of a matrix."""
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
    # Without allowzero a size of 0 in the shape would be copied from the matrix.
    return [context.add("Reshape", [result, context.add("Shape", [data])], {"allowzero": 1})]
