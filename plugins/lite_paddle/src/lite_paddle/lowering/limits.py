"""Limits of element types."""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType

__all__ = ["lowest_finite"]

#: float32 has the same exponent range and more fraction bits; NumPy lacks bfloat16.
_LOWEST_BFLOAT16 = -3.3895313892515355e38


def lowest_finite(dtype: DType) -> float:
    """Return the lowest finite number of a floating element type."""
    return _LOWEST_BFLOAT16 if dtype is DType.BFLOAT16 else float(np.finfo(dtype.numpy).min)
