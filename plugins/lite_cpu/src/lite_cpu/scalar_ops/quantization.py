"""Quantization of real numbers to small integers, and dequantization."""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType
from lite_cpu import vector_math
from lite_cpu.emitter import Val
from lite_cpu.scalar_ops.definition import Call

__all__ = ["dequantize", "quantize"]


def quantize(call: Call) -> Val:
    """``saturate(round(x / scale) + zero_point)``; NaN gives the zero point. Without a scale ``x`` is not divided."""
    x, scale, zero_point = call[0], call.optional(1), call.optional(2)
    if not x.dtype.is_floating:
        x = x.to(DType.FLOAT64)
    if scale is not None:
        x = x / scale.to(x.dtype)
    rounded = vector_math.round_half_even(x)
    rounded = rounded.is_nan().select(0.0, rounded)
    if zero_point is not None:
        rounded = rounded + zero_point.to(rounded.dtype)
    limits = np.iinfo(call.output.numpy)
    k = call.k
    saturated = k.minimum(k.maximum(rounded, float(limits.min)), float(limits.max))
    return saturated.to(DType.INT32).to(call.output)


def dequantize(call: Call) -> Val:
    """``(x - zero_point) * scale``."""
    x, scale, zero_point = call[0], call[1], call.optional(2)
    # The difference of two int32 may need 33 bits; that of narrower integers fits into an int32.
    wide = DType.INT64 if x.dtype is DType.INT32 and zero_point is not None else DType.INT32
    difference = x.to(wide)
    if zero_point is not None:
        difference = difference - zero_point.to(wide)
    return difference.to(DType.FLOAT32) * scale
