"""Experimental operators that ONNX had until opset 9, which exporters of that time wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators.ai_onnx.versions.checked_attributes import take_float, take_int, take_ints
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable
from lite_onnx.reader.element_types import element_type

_TO_END = np.iinfo(np.int64).max


@lowers("Affine")
def affine(node: SourceNode, context: Context) -> list[Item]:
    """Lower ``alpha * x + beta``."""
    x = context.value(node, 0)
    scaled = context.add("Mul", [x, context.scalar_like(take_float(node, "alpha", 1.0), x)])
    return [context.add("Add", [scaled, context.scalar_like(take_float(node, "beta", 0.0), x)])]


@lowers("Scale")
def scale(node: SourceNode, context: Context) -> list[Item]:
    """Lower ``scale * x``."""
    x = context.value(node, 0)
    return [context.add("Mul", [x, context.scalar_like(take_float(node, "scale", 1.0), x)])]


@lowers("ImageScaler")
def image_scaler(node: SourceNode, context: Context) -> list[Item]:
    """Lower ``scale * x + bias`` with a bias for each channel of ``x[N, C, H, W]``."""
    x, bias = context.value(node, 0), node.attributes.pop("bias", [])
    factor = take_float(node, "scale", 1.0)
    scaled = x if factor == 1 else context.add("Mul", [x, context.scalar_like(factor, x)])
    if not bias:
        return [scaled]
    return [context.add("Add", [scaled, context.constant(np.reshape(np.array(bias), (-1, 1, 1)), x.dtype)])]


@lowers("ScaledTanh")
def scaled_tanh(node: SourceNode, context: Context) -> list[Item]:
    """Lower ``alpha * tanh(beta * x)``."""
    return [_scaled("Tanh", node, context)]


@lowers("ParametricSoftplus")
def parametric_softplus(node: SourceNode, context: Context) -> list[Item]:
    """Lower ``alpha * log(1 + exp(beta * x))``."""
    return [_scaled("Softplus", node, context)]


@lowers("Crop")
def crop(node: SourceNode, context: Context) -> list[Item]:
    """Crop ``x[N, C, H, W]`` by left, top, right and bottom borders, or to a height and a width."""
    border, size = take_ints(node, "border") or [0, 0, 0, 0], take_ints(node, "scale")
    if len(border) != 4 or (size is not None and len(size) != 2):
        raise Unlowerable(f"its border must be four numbers and its scale two, but they are {border} and {size}")
    left, top, right, bottom = border
    ends = [-bottom or _TO_END, -right or _TO_END] if size is None else [top + size[0], left + size[1]]
    ranges = [context.ints(top, left), context.ints(*ends), context.ints(2, 3)]
    return [context.add("Slice", [context.value(node, 0), *ranges])]


@lowers("DynamicSlice")
def dynamic_slice(node: SourceNode, context: Context) -> list[Item]:
    """Lower to Slice, which now has its ranges as inputs, too."""
    return [context.add("Slice", context.values(node))]


@lowers("ConstantFill")
def constant_fill(node: SourceNode, context: Context) -> list[Item]:
    """Lower to a tensor of one repeated number."""
    dtype = element_type(take_int(node, "dtype", TensorProto.FLOAT))
    content = np.array([take_float(node, "value", 0.0)]).astype(dtype.numpy)
    return [context.add("ConstantOfShape", [_wanted_shape(node, context)], {"value": content})]


@lowers("GivenTensorFill")
def given_tensor_fill(node: SourceNode, context: Context) -> list[Item]:
    """Lower to a constant with the numbers of the attribute ``values``."""
    numbers: Any = node.attributes.get("values", [])
    content = context.constant(np.array(numbers, np.float32))
    return [context.add("Reshape", [content, _wanted_shape(node, context)])]


def _scaled(op: str, node: SourceNode, context: Context) -> Value:
    x = context.value(node, 0)
    inside = context.add("Mul", [x, context.scalar_like(take_float(node, "beta"), x)])
    return context.add("Mul", [context.add(op, [inside]), context.scalar_like(take_float(node, "alpha"), x)])


def _wanted_shape(node: SourceNode, context: Context) -> Value:
    """Return the shape: the attribute ``shape``, or the input's shape or elements, followed by ``extra_shape``."""
    like = context.optional(node, 0)
    if like is None:
        return context.ints(*(take_ints(node, "shape") or []))
    by_elements = take_int(node, "input_as_shape", 0)
    shape = context.add("Cast", [like], {"to": DType.INT64}) if by_elements else context.add("Shape", [like])
    extra = take_ints(node, "extra_shape")
    return context.add("Concat", [shape, context.ints(*extra)], {"axis": 0}) if extra else shape
