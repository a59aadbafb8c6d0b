"""From real numbers to integers: how quantized results are rounded, saturated and wrapped."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ops.narrow_types import integer_limits

__all__ = ["round_to", "wrap_to_int32"]

Array = np.ndarray[Any, Any]


def round_to(scaled: Array, zero_point: Array, dtype: np.dtype[Any]) -> Array:
    """``saturate(round(scaled) + zero_point)``: halves go to the even neighbour, NaN to the zero point.

    Args:
        scaled: real numbers, already divided by the scale.
        zero_point: broadcasts against ``scaled``.
        dtype: an integer type of at most 16 bits.
    """
    low, high = integer_limits(dtype)
    rounded = np.rint(scaled)
    # NOTE: what a cast makes of NaN differs between machines.
    rounded = np.where(np.isnan(rounded), 0, rounded) + zero_point.astype(rounded.dtype)
    saturated: Array = np.clip(rounded, low, high)
    return saturated.astype(np.int64).astype(dtype)


def wrap_to_int32(sums: Array) -> Array:
    """Exact integers held as float64, as 32-bit ones that wrap around."""
    return sums.astype(np.int64).astype(np.int32)
