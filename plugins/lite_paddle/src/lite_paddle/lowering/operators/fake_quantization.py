"""Operators of the older format of quantized models, which simulate quantization with floats.

Where a scale is known and has 8 bits, an int8 tensor is made, and dequantized at once: backends can then compute with
integers. Numbers half way between two integers are then rounded to even, by Paddle away from zero.
"""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.operators.quantization import along_axis, levels, rounded, whole_numbers
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

# Files without the attribute come from versions that rounded halves away from zero.
_HALF_AWAY = 1
# Since then, rounding of halves to even reaches down to -128 of 8 bits.
_FIRST_WITH_LOWEST = 3_000_000


def _reaches_lowest(op: SourceOp, context: Context) -> bool:
    """Return True if numbers below the range become -n - 1, not -n, where n is the largest quantized number."""
    return context.version >= _FIRST_WITH_LOWEST and int(op.attrs.get("round_type", _HALF_AWAY)) == 0


def _pair(op: SourceOp, context: Context, x: Value, scale: Value, axis: int, both: bool) -> Value | None:
    """Quantize to int8 and dequantize, to whole numbers unless ``both``; None if the scale is unknown or has no sense.

    ``scale`` has the shape in which it broadcasts to ``x``; several scales are along ``axis``.
    """
    known = context.floats(scale)
    if known is None or x.dtype is not DType.FLOAT32 or not np.all(known > 0):
        return None
    if int(op.attrs.get("bit_length", 8)) != 8:
        return None
    vector = known.reshape(-1) if known.size > 1 else known.reshape(())
    step, attributes = np.asarray(vector / np.float32(127), np.float32), {"axis": axis} if known.size > 1 else {}
    zero, steps = context.builder.constant(np.zeros(step.shape, np.int8)), context.builder.constant(step)
    array, lowest = context.floats(x), -128 if _reaches_lowest(op, context) else -127
    if array is not None:
        whole = np.clip(np.round(array / (known / np.float32(127))), lowest, 127)
        small = context.builder.constant(whole.astype(np.int8))
    else:
        # Quantization alone gives -128 for numbers below the range.
        limited = x if lowest == -128 else context.node("Max", [x, context.node("Neg", [scale])])
        small = context.node("QuantizeLinear", [limited, steps, zero], attributes)
    if both:
        return context.node("DequantizeLinear", [small, steps, zero], attributes)
    return whole_numbers(context, small)


def _quantized(op: SourceOp, context: Context, x: Value, scale: Value) -> Value:
    """Compute ``round(clip(x, -scale, scale) * n / scale)`` or ``clip(round(x * n / scale), -n - 1, n)``, as floats."""
    largest = levels(int(op.attrs.get("bit_length", 8)))
    n = context.scalar(largest, x)
    if _reaches_lowest(op, context):
        whole = context.node("Round", [context.node("Div", [context.node("Mul", [x, n]), scale])])
        return context.node("Clip", [whole, context.scalar(-largest - 1, x), n])
    clipped = context.node("Max", [context.node("Min", [x, scale]), context.node("Neg", [scale])])
    scaled = context.node("Div", [context.node("Mul", [clipped, n]), scale])
    return rounded(context, scaled, int(op.attrs.get("round_type", _HALF_AWAY)))


def _dequantized(op: SourceOp, context: Context, x: Value, scale: Value) -> Value:
    n = context.scalar(levels(int(op.attrs.get("bit_length", 8))), x)
    return context.node("Div", [context.node("Mul", [x, scale]), n])


def _finish(op: SourceOp, context: Context, x: Value, scale: Value, factor: Value, axis: int = 0) -> None:
    both = "dequantize" in op.type
    result = _pair(op, context, x, factor, axis, both)
    if result is None:
        result = _quantized(op, context, x, factor)
        result = _dequantized(op, context, result, factor) if both else result
    for slot, value in zip(("Out", "OutScale", "0", "1"), (result, scale) * 2):
        context.bind(op, slot, value)


@lowers(
    "fake_quantize_moving_average_abs_max",
    "fake_quantize_dequantize_moving_average_abs_max",
    "fake_quantize_range_abs_max",
)
def quantize_by_stored_scale(op: SourceOp, context: Context) -> None:
    """Quantize with the scale found in training."""
    x, scale = context.any_input(op, "X", "0"), context.any_input(op, "InScale", "1")
    factor = context.reshape(context.cast(scale, x.dtype), [])
    _finish(op, context, x, scale, factor)


def _greatest(context: Context, x: Value, axes: list[int] | None) -> Value:
    """Return the largest absolute element, as a scalar; with ``axes`` along them, which then have size 1."""
    array = context.floats(x)
    if array is not None and array.size:
        return context.builder.constant(np.abs(array).max(None if axes is None else tuple(axes), keepdims=bool(axes)))
    size = context.node("Abs", [x])
    if axes is None:
        return context.node("ReduceMax", [size], {"keepdims": 0})
    return context.node("ReduceMax", [size, context.builder.ints(*axes)])


@lowers("fake_quantize_abs_max", "fake_quantize_dequantize_abs_max")
def quantize_by_maximum(op: SourceOp, context: Context) -> None:
    """Quantize with the largest absolute element as the scale."""
    x = context.any_input(op, "X", "0")
    scale = _greatest(context, x, None)
    _finish(op, context, x, context.reshape(scale, [1]), scale)


@lowers("fake_channel_wise_quantize_abs_max", "fake_channel_wise_quantize_dequantize_abs_max")
def quantize_by_channel_maximum(op: SourceOp, context: Context) -> None:
    x = context.any_input(op, "X", "0")
    rank, axis = context.rank(x, "it has one scale for each channel"), int(op.attrs.get("quant_axis", 0))
    factor = _greatest(context, x, [a for a in range(rank) if a != axis % rank])
    _finish(op, context, x, context.reshape(factor, [-1]), factor, axis)


@lowers("moving_average_abs_max_scale")
def observer(op: SourceOp, context: Context) -> None:
    """Pass the input through: the operator only records statistics in training."""
    context.bind(op, "Out", context.any_input(op, "X", "0"))
    context.bind(op, "0", context.any_input(op, "X", "0"))


@lowers("dequantize_log")
def dequantize_log(op: SourceOp, context: Context) -> None:
    """Look numbers up in a table of 128; a negative index counts from -128, and its number is negated."""
    x = context.cast(context.input(op, "X"), DType.INT64)
    is_negative = context.node("Less", [x, context.scalar(0, x)])
    index = context.node("Where", [is_negative, context.node("Add", [x, context.scalar(128, x)]), x])
    found = context.node("Gather", [context.input(op, "Dict"), index], {"axis": 0})
    context.emit(op, "Where", [is_negative, context.node("Neg", [found]), found])


@lowers("fake_dequantize_max_abs", "dequantize_abs_max")
def dequantize_by_maximum(op: SourceOp, context: Context) -> None:
    """Compute ``x * Scale / max_range``."""
    scale = context.any_input(op, "Scale", "1")
    x = context.cast(context.any_input(op, "X", "0"), scale.dtype)
    product = context.node("Mul", [x, context.reshape(scale, [])])
    result = context.node("Div", [product, context.scalar(float(context.attribute(op, "max_range")), x)])
    context.bind(op, "Out", result)
    context.bind(op, "0", result)


@lowers("fake_channel_wise_dequantize_max_abs")
def dequantize_channels(op: SourceOp, context: Context) -> None:
    """Compute ``x * S0[channel] / n0``; a second tensor of scales, for the activations, adds ``* S1 / n1``."""
    scales, bits = context.inputs(op, "Scales") or context.inputs(op, "1"), list(op.attrs["quant_bits"])
    if not 1 <= len(scales) <= 2 or len(bits) < len(scales):
        raise Unlowerable(f"it has {len(scales)} tensors of scales and quant_bits {bits}, expected one or two")
    x = context.cast(context.any_input(op, "X", "0"), scales[0].dtype)
    if len(scales) == 1:
        axis = int(op.attrs["quant_axis"])
    else:  # the channels are axis 1 of a convolution, or the columns after x_num_col_dims axes of a product
        axis = int(op.attrs["x_num_col_dims"])
    divisor = float(np.prod([levels(int(b)) for b in bits[: len(scales)]]))
    known = [context.floats(scale) for scale in scales]
    if all(scale is not None for scale in known):
        # One factor, which backends can apply to sums of integers.
        factor = np.prod([np.asarray(scale, np.float64) for scale in known[1:]]) / divisor * known[0]
        steps = context.builder.constant(np.asarray(factor, np.float32))
        context.emit(op, "Mul", [x, along_axis(context, steps, x, axis)])
        return
    product = context.node("Mul", [x, along_axis(context, scales[0], x, axis)])
    if len(scales) == 2:
        product = context.node("Mul", [product, context.reshape(scales[1], [])])
    context.emit(op, "Div", [product, context.scalar(divisor, x)])
