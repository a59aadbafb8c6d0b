"""Quantization of real numbers to small integers, and dequantization."""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType
from lite_cpu import vector_math
from lite_cpu.emitter import Val
from lite_cpu.scalar_ops.definition import Call

__all__ = ["dequantize", "quantize", "quantize_and_dequantize"]


def quantize(call: Call) -> Val:
    """``saturate(round(x / scale) + zero_point)``; NaN gives the zero point.

    Without a scale ``x`` is not divided, and is never NaN.
    """
    zero_point, rounded = call.optional(2), vector_math.round_to_int32(_saturated(call))
    if zero_point is not None:
        rounded = rounded + zero_point.to(DType.INT32)
    return rounded.to(call.output)


def quantize_and_dequantize(call: Call, scale: Val) -> Val:
    """``(quantize(call) - zero_point) * scale``, without the steps to the integer and back."""
    return vector_math.round_half_even(_saturated(call)).to(DType.FLOAT32) * scale


def _saturated(call: Call) -> Val:
    """Return ``x / scale``, limited to the numbers that are quantized without saturation; 0 for NaN."""
    x, scale, zero_point = call[0], call.optional(1), call.optional(2)
    if not x.dtype.is_floating:
        x = x.to(DType.FLOAT64)
    if scale is not None:
        x = x / scale.to(x.dtype)
    k, limits = call.k, np.iinfo(call.output.numpy)
    # The limits are integers, so saturating before rounding gives the same. They do not depend on ``x``, so that
    # kernels compute them once, and adding the zero point as an integer is exact.
    lowest, highest = (k.constant(float(n), x.dtype, x.lanes) for n in (limits.min, limits.max))
    if zero_point is not None:
        offset = zero_point.to(x.dtype)
        lowest, highest = lowest - offset, highest - offset
    saturated = k.minimum(k.maximum(x, lowest), highest)
    return saturated if scale is None else x.is_nan().select(0.0, saturated)


def dequantize(call: Call) -> Val:
    """``(x - zero_point) * scale``."""
    x, scale, zero_point = call[0], call[1], call.optional(2)
    # The difference of two int32 may need 33 bits; that of narrower integers fits into an int32.
    wide = DType.INT64 if x.dtype is DType.INT32 and zero_point is not None else DType.INT32
    difference = x.to(wide)
    if zero_point is not None:
        difference = difference - zero_point.to(wide)
    return difference.to(DType.FLOAT32) * scale
