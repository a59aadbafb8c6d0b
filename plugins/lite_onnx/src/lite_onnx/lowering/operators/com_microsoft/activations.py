"""Gelu and its variants, and operators fused with a bias."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number
from lite_onnx.lowering.operators.com_microsoft.fused_activations import MICROSOFT
from lite_onnx.lowering.registry import lowers


@lowers("Gelu", domain=MICROSOFT)
def gelu(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower to ONNX's Gelu of opset 20."""
    return [context.add("Gelu", [context.value(node, 0)])]


@lowers("BiasGelu", domain=MICROSOFT)
def bias_gelu(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower Gelu of a sum."""
    return [context.add("Gelu", [context.add("Add", [context.value(node, 0), context.value(node, 1)])])]


@lowers("FastGelu", domain=MICROSOFT)
def fast_gelu(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower the tanh approximation of Gelu, of a sum if there is a bias."""
    return [context.add("Gelu", [_with_bias(node, context)], {"approximate": "tanh"})]


@lowers("QuickGelu", domain=MICROSOFT)
def quick_gelu(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower ``x * sigmoid(alpha * x)``."""
    return [context.add("Swish", [context.value(node, 0)], {"beta": number(node, "alpha", 1.702)}, domain="lite")]


@lowers("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(node: SourceNode, context: Context) -> Sequence[Item]:
    """Add a bias, then multiply the first half of the last axis by Gelu of the second half."""
    total = context.add("Add", [context.value(node, 0), context.value(node, 1)])
    left, right = context.add_node("Split", [total], {"axis": -1, "num_outputs": 2}, outputs=2)
    return [context.add("Mul", [left, context.add("Gelu", [right])])]


@lowers("BiasAdd", domain=MICROSOFT)
def bias_add(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower the sum of a tensor, a bias and a skip connection."""
    total = context.add("Add", [context.value(node, 0), context.value(node, 1)])
    return [context.add("Add", [total, context.value(node, 2)])]


@lowers("BiasSoftmax", domain=MICROSOFT)
def bias_softmax(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower softmax of a sum, over all axes from ``axis`` on.

    NOTE: ``is_inner_broadcast`` tells ONNX Runtime along which axes the bias is broadcast. It is not needed here: the
    sizes of the axes determine the broadcast, as for an ordinary Add.
    """
    x, bias = context.value(node, 0), context.value(node, 1)
    rank, axis = context.rank(x), int(number(node, "axis", 1))
    return [_softmax(context.add("Add", [x, bias]), axis + rank if axis < 0 else axis, context)]


def _softmax(x: Value, axis: int, context: Context) -> Value:
    rank = context.rank(x)
    if axis == rank - 1:
        return context.add("Softmax", [x], {"axis": axis})
    rows = context.add("Flatten", [x], {"axis": axis})
    return context.add("Reshape", [context.add("Softmax", [rows], {"axis": 1}), context.add("Shape", [x])])


def _with_bias(node: SourceNode, context: Context) -> Value:
    x, bias = context.value(node, 0), context.optional(node, 1)
    return x if bias is None else context.add("Add", [x, bias])
