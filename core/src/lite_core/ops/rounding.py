"""Conversion of quantized results from real numbers to integers: rounding, saturation, wrap-around."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ops.narrow_types import integer_limits

__all__ = ["round_to", "wrap_to_int32"]

Array = np.ndarray[Any, Any]


def round_to(scaled: Array, zero_point: Array, dtype: np.dtype[Any]) -> Array:
    """Compute ``saturate(round(scaled) + zero_point)``; halves round to even, NaN becomes the zero point.

    Args:
        scaled: real numbers, already divided by the scale.
        zero_point: broadcasts against ``scaled``.
        dtype: an integer type of at most 16 bits.
    """
    low, high = integer_limits(dtype)
    rounded = np.rint(scaled)
    # NOTE: the result of casting NaN differs between machines.
    rounded = np.where(np.isnan(rounded), 0, rounded) + zero_point.astype(rounded.dtype)
    saturated: Array = np.clip(rounded, low, high)
    return saturated.astype(np.int64).astype(dtype)


def wrap_to_int32(sums: Array) -> Array:
    """Convert exact integers stored as float64 to int32 with wrap-around."""
    return sums.astype(np.int64).astype(np.int32)
