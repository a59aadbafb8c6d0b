"""Quantization of models in Paddle's "ONNX format": quantize_linear and dequantize_linear.

Paddle keeps quantized numbers in float32 and scales by ``n = 2 ** (bit_length - 1) - 1``; 8-bit ones become
ONNX's pair of operators with an actual int8 tensor between them, which backends can compute with.
"""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Array, Context
from lite_paddle.lowering.operators.unary import round_half_away
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

__all__ = ["along_axis", "integral_weights", "levels", "rounded", "whole_numbers"]

# Smaller scales are replaced by this one, to avoid dividing by them.
_TINY = 1e-6


def levels(bits: int) -> int:
    """Return the largest quantized number: 127 for 8 bits."""
    return (1 << (bits - 1)) - 1


def rounded(context: Context, x: Value, round_type: int) -> Value:
    """Round to the nearest integer; ``round_type`` 0 rounds halves to even, 1 away from zero."""
    return context.node("Round", [x]) if round_type == 0 else round_half_away(context, x)


def along_axis(context: Context, scale: Value, x: Value, axis: int) -> Value:
    """Reshape a single scale to a scalar, or scales per channel to a shape that broadcasts along ``axis``."""
    if scale.type.rank == 0:
        return scale
    if scale.shape == (1,) or axis < 0:
        return context.reshape(scale, [])
    rank = context.rank(x, "it has one scale for each channel")
    return context.reshape(scale, [-1] + [1] * (rank - 1 - axis % rank))


def whole_numbers(context: Context, small: Value) -> Value:
    """Return the numbers of an int8 tensor as float32, and note that they are its numbers."""
    one = context.builder.constant(np.array(1, np.float32))
    wide = context.node("DequantizeLinear", [small, one])
    context.quantized[wide] = small
    return wide


def integral_weights(context: Context, x: Value, weights: Value) -> Value:
    """Return the weights that are multiplied by ``x``; as dequantized int8 if both hold small whole numbers.

    The older format of quantized models multiplies integers as floats, and dequantizes the products.
    """
    small = _as_int8(context, weights) if x in context.quantized and weights.dtype is DType.FLOAT32 else None
    return weights if small is None else whole_numbers(context, small)


def _known_scale(context: Context, op: SourceOp) -> Array | None:
    return context.floats(context.input(op, "Scale"))


def _is_per_channel(op: SourceOp, scale: Array) -> bool:
    return int(op.attrs["quant_axis"]) >= 0 and scale.size > 1


def _check_zero_point(op: SourceOp, context: Context) -> None:
    zero = context.known(context.optional(op, "ZeroPoint"))
    if zero is not None and zero.dtype != object and np.any(zero != 0):
        raise Unlowerable("its zero point is not 0", "quantize the model symmetrically")


def _onnx_quantization(context: Context, op: SourceOp) -> tuple[Value, Value, dict[str, int]] | None:
    """Return step size, zero point and attributes for ONNX's operators; None if they cannot express it."""
    scale = _known_scale(context, op)
    if scale is None or int(op.attrs["bit_length"]) != 8:
        return None
    per_channel = _is_per_channel(op, scale)
    vector = scale.reshape(-1) if per_channel else scale.reshape(-1)[0]
    if np.any(vector <= 0):
        return None
    step = np.asarray(np.maximum(vector, _TINY) / np.float32(127), np.float32)
    zero = context.builder.constant(np.zeros(step.shape, np.int8))
    attributes = {"axis": int(op.attrs["quant_axis"])} if per_channel else {}
    return context.builder.constant(step), zero, attributes


@lowers("quantize_linear")
def quantize_linear(op: SourceOp, context: Context) -> None:
    """Compute ``clip(round(x * n / scale), -n - 1, n)``, still as floats; ``round_type`` 1 clips to -n."""
    _check_zero_point(op, context)
    x = context.input(op, "X")
    if op.attrs["only_observer"]:
        context.bind(op, "Y", x)
        return
    round_type = int(op.attrs["round_type"])
    found = _onnx_quantization(context, op) if round_type == 0 else None
    if found is not None:
        step, zero, attributes = found
        small = context.node("QuantizeLinear", [x, step, zero], attributes)
        context.bind(op, "Y", whole_numbers(context, small))
        return
    n = levels(int(op.attrs["bit_length"]))
    scale = along_axis(context, context.input(op, "Scale"), x, int(op.attrs["quant_axis"]))
    scaled = context.node("Div", [context.node("Mul", [x, context.scalar(n, x)]), scale])
    bounds = [context.scalar(b, x) for b in (-n - (round_type == 0), n)]
    context.emit(op, "Clip", [rounded(context, scaled, round_type), *bounds], slot="Y")


@lowers("dequantize_linear")
def dequantize_linear(op: SourceOp, context: Context) -> None:
    """Compute ``x * scale / n``, of integers or of floats that hold integers."""
    _check_zero_point(op, context)
    x = context.input(op, "X")
    if op.attrs["only_observer"]:
        context.bind(op, "Y", x)
        return
    found = _onnx_quantization(context, op)
    small = _as_int8(context, x) if found is not None else None
    if found is not None and small is not None:
        step, zero, attributes = found
        context.emit(op, "DequantizeLinear", [small, step, zero], attributes, slot="Y")
        return
    scale = context.input(op, "Scale")
    x = context.cast(x, scale.dtype)
    factor = along_axis(context, scale, x, int(op.attrs["quant_axis"]))
    n = context.scalar(levels(int(op.attrs["bit_length"])), x)
    context.emit(op, "Div", [context.node("Mul", [x, factor]), n], slot="Y")


def _as_int8(context: Context, x: Value) -> Value | None:
    """Return the int8 tensor that holds the same numbers as a value, or None."""
    if x.dtype is DType.INT8:
        return x
    if x in context.quantized:
        return context.quantized[x]
    known = context.floats(x)
    if known is None or known.size == 0:
        return None
    small = np.clip(known, -128, 127).astype(np.int8)
    return context.builder.constant(small) if np.array_equal(small, known) else None
