"""Operators on 8-bit integers: inputs are dequantized, results are quantized again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number, present_attributes
from lite_onnx.lowering.operators.com_microsoft.fused_activations import MICROSOFT
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable

_POOL = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
_LSTM = ("activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size", "input_forget")


@lowers("QuantizeLinear", "DequantizeLinear", domain=MICROSOFT)
def quantize(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower to ONNX's operators of the same names."""
    return [context.add(node.op, context.values(node), {"axis": node.attributes.get("axis")})]


def _dequantized(node: SourceNode, position: int, context: Context) -> Value:
    """Dequantize the input at a position; its scale and zero point are the next inputs."""
    x, scale, zero = (
        context.value(node, position),
        context.value(node, position + 1),
        context.optional(node, position + 2),
    )
    return context.add("DequantizeLinear", [x, scale, zero])


def _quantized(result: Value, node: SourceNode, position: int, like: Value, context: Context) -> Sequence[Item]:
    """Quantize a result by the scale and zero point at a position; without a zero point, to the type of ``like``."""
    scale, zero = context.value(node, position), context.optional(node, position + 1)
    if zero is None:
        zero = context.constant(np.zeros((), like.dtype.numpy))
    return [context.add("QuantizeLinear", [result, scale, zero])]


@lowers("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def qlinear_binary(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower a quantized sum or product."""
    result = context.add(
        node.op.removeprefix("QLinear"), [_dequantized(node, 0, context), _dequantized(node, 3, context)]
    )
    return _quantized(result, node, 6, context.value(node, 0), context)


@lowers("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "QLinearAveragePool", "QLinearGlobalAveragePool",
        "QLinearReduceMean", domain=MICROSOFT)  # fmt: skip
def qlinear_unary(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower quantized operators of one tensor."""
    x = _dequantized(node, 0, context)
    result = _UNARY[node.op](x, node, context)
    return _quantized(result, node, 3, context.value(node, 0), context)


def _softmax(x: Value, node: SourceNode, context: Context) -> Value:
    axis = int(number(node, "axis", -1))
    if number(node, "opset", 13) >= 13 or axis in (-1, context.rank(x) - 1):
        return context.add("Softmax", [x], {"axis": axis})
    rows = context.add("Softmax", [context.add("Flatten", [x], {"axis": axis})], {"axis": 1})
    return context.add("Reshape", [rows, context.add("Shape", [x])])


def _average_pool(x: Value, node: SourceNode, context: Context) -> Value:
    def pool(planes: Value) -> Value:
        return context.add("AveragePool", [planes], present_attributes(node, _POOL))

    return _channels_first(x, node, context, pool)


def _global_average_pool(x: Value, node: SourceNode, context: Context) -> Value:
    return _channels_first(x, node, context, lambda planes: context.add("GlobalAveragePool", [planes]))


def _channels_first(x: Value, node: SourceNode, context: Context, pool: Callable[[Value], Value]) -> Value:
    if not number(node, "channels_last", 0):
        return pool(x)
    last = context.rank(x) - 1
    forth, back = (0, last, *range(1, last)), (0, *range(2, last + 1), 1)
    return context.add("Transpose", [pool(context.add("Transpose", [x], {"perm": forth}))], {"perm": back})


def _reduce_mean(x: Value, node: SourceNode, context: Context) -> Value:
    axes = node.attributes.get("axes")
    inputs = [x, context.ints(*axes)] if isinstance(axes, list) else [x]
    return context.add("ReduceMean", inputs, {"keepdims": number(node, "keepdims", 1)})


_UNARY: dict[str, Callable[[Value, SourceNode, Context], Value]] = {
    "QLinearSigmoid": lambda x, node, context: context.add("Sigmoid", [x]),
    "QLinearLeakyRelu": lambda x, node, context: context.add("LeakyRelu", [x], {"alpha": number(node, "alpha", 0.01)}),
    "QLinearSoftmax": _softmax,
    "QLinearAveragePool": _average_pool,
    "QLinearGlobalAveragePool": _global_average_pool,
    "QLinearReduceMean": _reduce_mean,
}


@lowers("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower concatenation of tensors with different scales."""
    parts = [_dequantized(node, position, context) for position in range(2, len(node.inputs), 3)]
    result = context.add("Concat", parts, {"axis": number(node, "axis", 0)})
    return _quantized(result, node, 0, context.value(node, 2), context)


@lowers("QLinearWhere", domain=MICROSOFT)
def qlinear_where(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower selection between elements of two quantized tensors."""
    result = context.add(
        "Where", [context.value(node, 0), _dequantized(node, 1, context), _dequantized(node, 4, context)]
    )
    return _quantized(result, node, 7, context.value(node, 1), context)


@lowers("QGemm", domain=MICROSOFT)
def qgemm(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower Gemm with an addend in units of the product of both scales; without an output scale the result is float."""
    a, b = (
        _dequantized(node, 0, context),
        _dequantized_columns(node, 3, -1 if not number(node, "transB", 0) else 0, context),
    )
    attributes = {name: node.attributes.get(name) for name in ("transA", "transB")}
    result = context.add("Gemm", [a, b], attributes)
    alpha, addend = number(node, "alpha", 1.0), context.optional(node, 6)
    if alpha != 1:
        result = context.add("Mul", [result, context.scalar_like(alpha, result)])
    if addend is not None:
        unit = context.add("Mul", [context.value(node, 1), context.value(node, 4)])
        unit = unit if alpha == 1 else context.add("Mul", [unit, context.scalar_like(alpha, unit)])
        real = context.add("Cast", [addend], {"to": result.dtype})
        result = context.add("Add", [result, context.add("Mul", [real, unit])])
    return _quantized(result, node, 7, context.value(node, 0), context) if node.has(7) else [result]


def _dequantized_columns(node: SourceNode, position: int, axis: int, context: Context) -> Value:
    """Dequantize the matrix at a position, which may have a scale for each column."""
    x, scale, zero = (
        context.value(node, position),
        context.value(node, position + 1),
        context.optional(node, position + 2),
    )
    return context.add("DequantizeLinear", [x, scale, zero], {"axis": axis} if context.rank(scale) else None)


@lowers("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_integer_to_float(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower a product of integers times both scales, plus a bias."""
    a, b, a_scale, b_scale = (context.value(node, i) for i in range(4))
    product = context.add("MatMulInteger", [a, b, context.optional(node, 4), context.optional(node, 5)])
    return [_scaled(product, a_scale, b_scale, context.optional(node, 6), context)]


@lowers("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantize_matmul(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower MatMulIntegerToFloat with a left operand that is quantized to 8 bits at run time, by its range."""
    a, a_scale, a_zero = context.add_node("DynamicQuantizeLinear", [context.value(node, 0)], outputs=3)
    b, b_scale = context.value(node, 1), context.value(node, 2)
    product = context.add("MatMulInteger", [a, b, a_zero, context.optional(node, 3)])
    return [_scaled(product, a_scale, b_scale, context.optional(node, 4), context)]


def _scaled(product: Value, a_scale: Value, b_scale: Value, bias: Value | None, context: Context) -> Value:
    real = context.add("Cast", [product], {"to": a_scale.dtype})
    result = context.add("Mul", [real, context.add("Mul", [a_scale, b_scale])])
    return result if bias is None else context.add("Add", [result, bias])


@lowers("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_quantize_lstm(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower to a product of 8-bit integers for all steps, and QuantizedLSTM for the recurrence.

    The inputs of all steps are quantized by their common range, the state in every step. ONNX Runtime takes
    the range of several sequences together if it computes them together, QuantizedLSTM that of each.
    """
    w, w_scale, w_zero, r, r_scale, r_zero = (context.must_know(node, i, "weights") for i in (1, 8, 9, 2, 10, 11))
    directions, inputs, columns = w.shape
    if columns % 4 or r.shape != (directions, columns // 4, columns):
        raise Unlowerable(f"W {list(w.shape)} and R {list(r.shape)} must be [directions, inputs, 4 * hidden]")
    matrix = context.constant(np.ascontiguousarray(w.transpose(1, 0, 2).reshape(inputs, -1)))
    # One for all columns, or one for each; the product of integers takes zero points of all columns as a vector.
    scales, zeros = (
        np.broadcast_to(a.reshape(directions, -1), (directions, columns)).reshape(-1) for a in (w_scale, w_zero)
    )
    point = context.constant(zeros if (zeros != zeros[0]).any() else zeros[0]) if zeros.any() else None
    x, unit, zero = context.add_node("DynamicQuantizeLinear", [context.value(node, 0)], outputs=3)
    projected = _scaled(
        context.add("MatMulInteger", [x, matrix, zero, point]), unit, context.constant(scales), None, context
    )
    bias = context.optional(node, 3)
    if bias is not None:
        halves = context.add("Reshape", [bias, context.constant(np.array([directions, 2, columns]))])
        bias = context.add("ReduceSum", [halves, context.constant(np.array([1]))], {"keepdims": 0})
    recurrent = context.constant(np.ascontiguousarray(r.transpose(0, 2, 1)))
    rest = [context.optional(node, i) for i in (4, 5, 6, 7)]
    points = context.constant(r_zero) if r_zero.any() else None
    operands = [projected, context.constant(r_scale), recurrent, bias, *rest, points]
    return context.add_node(
        "QuantizedLSTM", operands, present_attributes(node, _LSTM), outputs=len(node.outputs), domain="lite"
    )


@lowers("QLinearConv", domain=MICROSOFT)
def qlinear_conv(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower to QLinearConv. With ``channels_last`` the input is [N, H, W, C]; filters always are [M, C, kernel]."""
    names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    others = context.values(node)[1:]
    return [
        _channels_first(
            context.value(node, 0),
            node,
            context,
            lambda planes: context.add("QLinearConv", [planes, *others], present_attributes(node, names)),
        )
    ]


@lowers("NhwcMaxPool", domain=MICROSOFT)
def nhwc_max_pool(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower MaxPool of [N, H, W, C]."""
    x = context.value(node, 0)
    if x.dtype not in (DType.INT8, DType.UINT8):
        raise Unlowerable(f"it takes 8-bit integers, not {x.dtype}")
    names = ("auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides")
    planes = context.add("Transpose", [x], {"perm": (0, 3, 1, 2)})
    pooled = context.add("MaxPool", [planes], present_attributes(node, names))
    return [context.add("Transpose", [pooled], {"perm": (0, 2, 3, 1)})]
