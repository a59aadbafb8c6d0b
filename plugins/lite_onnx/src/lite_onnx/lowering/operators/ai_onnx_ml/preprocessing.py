"""Preprocessing of features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number
from lite_onnx.lowering.operators.ai_onnx_ml.attributes import MACHINE_LEARNING, array, as_float32, as_rows, string
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable


@lowers("ArrayFeatureExtractor", domain=MACHINE_LEARNING)
def array_feature_extractor(node: SourceNode, context: Context) -> Sequence[Item]:
    """Select elements along the last axis; a vector is one row."""
    x = context.value(node, 0)
    indices = context.add("Reshape", [context.value(node, 1), context.ints(-1)])
    if context.rank(x) == 1:
        x = context.add("Unsqueeze", [x, context.ints(0)])
    return [context.add("Gather", [x, indices], {"axis": context.rank(x) - 1})]


@lowers("Binarizer", domain=MACHINE_LEARNING)
def binarizer(node: SourceNode, context: Context) -> Sequence[Item]:
    """Return 1 where an element is above the threshold, 0 elsewhere."""
    x = context.value(node, 0)
    is_above = context.add("Greater", [x, context.scalar_like(number(node, "threshold", 0.0), x)])
    return [context.add("Cast", [is_above], {"to": x.dtype})]


@lowers("Scaler", domain=MACHINE_LEARNING)
def scaler(node: SourceNode, context: Context) -> Sequence[Item]:
    """Compute ``(x - offset) * scale``."""
    x = as_float32(context.value(node, 0), context)
    offset, scale = (_row(node, name, x, context) for name in ("offset", "scale"))
    return [context.add("Mul", [context.add("Sub", [x, offset]), scale])]


@lowers("Normalizer", domain=MACHINE_LEARNING)
def normalizer(node: SourceNode, context: Context) -> Sequence[Item]:
    """Divide rows by their largest element, the sum of absolute values, or the root of the sum of squares."""
    x, kind = as_float32(context.value(node, 0), context), string(node, "norm", "MAX", "L1", "L2")
    op = {"MAX": "ReduceMax", "L1": "ReduceL1", "L2": "ReduceL2"}[kind]
    norm = context.add(op, [x, context.ints(-1)], {"keepdims": 1})
    zero, one = context.scalar_like(0, norm), context.scalar_like(1, norm)
    return [context.add("Div", [x, context.add("Where", [context.add("Equal", [norm, zero]), one, norm])])]


@lowers("Imputer", domain=MACHINE_LEARNING)
def imputer(node: SourceNode, context: Context) -> Sequence[Item]:
    """Replace one number, often NaN, by a number for each column or one for all."""
    x = context.value(node, 0)
    is_real = x.dtype in (DType.FLOAT32, DType.FLOAT64)
    names = (
        ("imputed_value_floats", "replaced_value_float")
        if is_real
        else ("imputed_value_int64s", "replaced_value_int64")
    )
    old = number(node, names[1], 0)
    is_old = context.add("IsNaN", [x]) if old != old else context.add("Equal", [x, context.scalar_like(old, x)])
    return [context.add("Where", [is_old, _row(node, names[0], x, context), x])]


@lowers("FeatureVectorizer", domain=MACHINE_LEARNING)
def feature_vectorizer(node: SourceNode, context: Context) -> Sequence[Item]:
    """Concatenate tensors, each truncated or zero-padded to its stated width."""
    widths = array(node, "inputdimensions", np.int64)
    parts = []
    for position in range(len(node.inputs)):
        x = as_rows(as_float32(context.value(node, position), context), context)
        parts.append(_with_width(x, int(widths[position]), context) if position < len(widths) else x)
    return [context.add("Concat", parts, {"axis": 1})]


def _with_width(x: Value, width: int, context: Context) -> Value:
    size = context.size(x, 1)
    if size > width:
        return context.add("Slice", [x, context.ints(0), context.ints(width), context.ints(1)])
    return x if size == width else context.add("Pad", [x, context.ints(0, 0, 0, width - size)])


@lowers("OneHotEncoder", domain=MACHINE_LEARNING)
def one_hot_encoder(node: SourceNode, context: Context) -> Sequence[Item]:
    """Return 1 at the index of an element among the categories, 0 elsewhere.

    NOTE: an element that is not a category results in zeros, even if ``zeros`` declares this an error.
    """
    x = context.value(node, 0)
    if "cats_strings" in node.attributes:
        names = array(node, "cats_strings", object)
        x = context.add("StringPosition", [x], {"strings": tuple(names.tolist())}, domain="lite")
        categories = np.arange(len(names))
    else:
        categories = array(node, "cats_int64s", np.int64)
        x = context.add("Cast", [x], {"to": DType.INT64})
    same = context.add("Equal", [context.add("Unsqueeze", [x, context.ints(-1)]), context.constant(categories)])
    return [context.add("Cast", [same], {"to": DType.FLOAT32})]


def _row(node: SourceNode, name: str, x: Value, context: Context) -> Value:
    """Return an attribute with a number for each column, or one for all, as a constant of the type of x."""
    found = array(node, name, x.dtype.numpy)
    if found.size != 1 and found.size != context.size(x, -1):
        raise Unlowerable(f"its attribute {name!r} has {found.size} elements for {context.size(x, -1)} columns")
    return context.constant(found)
