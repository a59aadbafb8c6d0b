"""Broadcasting of operands: before opset 7, attributes aligned their axes."""

from __future__ import annotations

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import SourceNode
from lite_onnx.lowering.operators.ai_onnx.versions.checked_attributes import take_int
from lite_onnx.lowering.registry import adapts
from lite_onnx.lowering.unlowerable import Unlowerable

_BINARY = ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")


@adapts(*_BINARY, until=6)
def broadcast_second_operand_along_axis(node: SourceNode, context: Context) -> None:
    """Align the second operand with the first one's axes from ``axis`` on; without ``axis``, with the last axes."""
    is_broadcast = take_int(node, "broadcast", 0)
    first, second = context.value(node, 0), context.value(node, 1)
    if not is_broadcast or "axis" not in node.attributes:
        node.attributes.pop("axis", None)
        return
    axis = take_int(node, "axis")
    start = axis if axis >= 0 else axis + context.rank(first)
    if not 0 <= start <= context.rank(first):
        raise Unlowerable(f"its axis {axis} does not exist in an operand with {context.rank(first)} dimensions")
    node.inputs[1] = _with_trailing_axes(second, context.rank(first) - start - context.rank(second), context)


@adapts("PRelu", until=6)
def slope_per_channel(node: SourceNode, context: Context) -> None:
    """Align a vector of slopes with the channels, axis 1."""
    slope = context.value(node, 1)
    if context.rank(slope) == 1:
        node.inputs[1] = _with_trailing_axes(slope, context.rank(context.value(node, 0)) - 2, context)


@adapts("Gemm", until=6)
def drop_broadcast_flag(node: SourceNode, context: Context) -> None:
    """Drop the flag that enabled broadcasting of C, which is now always enabled."""
    node.attributes.pop("broadcast", None)


def _with_trailing_axes(value: Value, count: int, context: Context) -> Value:
    rank = context.rank(value)
    return context.add("Unsqueeze", [value, context.ints(*range(rank, rank + count))]) if count > 0 else value
