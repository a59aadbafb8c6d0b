"""Gelu and what is like it."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators.com_microsoft.naming import MICROSOFT
from lite_onnx.lowering.reading import number
from lite_onnx.lowering.registry import lowers


@lowers("Gelu", domain=MICROSOFT)
def gelu(node: SourceNode, context: Context) -> Sequence[Item]:
    """As ONNX's of opset 20."""
    return [context.add("Gelu", [context.value(node, 0)])]


@lowers("BiasGelu", domain=MICROSOFT)
def bias_gelu(node: SourceNode, context: Context) -> Sequence[Item]:
    """Gelu of a sum."""
    return [context.add("Gelu", [context.add("Add", [context.value(node, 0), context.value(node, 1)])])]


@lowers("FastGelu", domain=MICROSOFT)
def fast_gelu(node: SourceNode, context: Context) -> Sequence[Item]:
    """Gelu by its approximation with tanh, of a sum if there is a bias."""
    return [context.add("Gelu", [_with_bias(node, context)], {"approximate": "tanh"})]


@lowers("QuickGelu", domain=MICROSOFT)
def quick_gelu(node: SourceNode, context: Context) -> Sequence[Item]:
    """``x * sigmoid(alpha * x)``."""
    return [context.add("Swish", [context.value(node, 0)], {"beta": number(node, "alpha", 1.702)}, domain="lite")]


@lowers("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(node: SourceNode, context: Context) -> Sequence[Item]:
    """The first half of the last axis times Gelu of the second, after a bias is added."""
    total = context.add("Add", [context.value(node, 0), context.value(node, 1)])
    left, right = context.add_node("Split", [total], {"axis": -1, "num_outputs": 2}, outputs=2)
    return [context.add("Mul", [left, context.add("Gelu", [right])])]


@lowers("BiasAdd", domain=MICROSOFT)
def bias_add(node: SourceNode, context: Context) -> Sequence[Item]:
    """The sum of a tensor, a bias and what skips the layer."""
    total = context.add("Add", [context.value(node, 0), context.value(node, 1)])
    return [context.add("Add", [total, context.value(node, 2)])]


@lowers("BiasSoftmax", domain=MICROSOFT)
def bias_softmax(node: SourceNode, context: Context) -> Sequence[Item]:
    """Softmax, over all axes from one on, of a sum.

    NOTE: ``is_inner_broadcast`` tells ONNX Runtime which axes the bias is the same along. Their sizes tell that, too:
    the operator stands for an Add whose operands broadcast as usual.
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
