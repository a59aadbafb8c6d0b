"""Interpolation weights shared by Resize and GridSample."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import DType

__all__ = ["cubic_kernel", "linear_kernel", "to_element_type"]

Array = np.ndarray[Any, Any]


def linear_kernel(distance: Array) -> Array:
    """Return the weight of an element at a distance: a triangle of width 2."""
    return np.asarray(np.maximum(1 - np.abs(distance), 0))


def cubic_kernel(distance: Array, a: float) -> Array:
    """Return the weight of an element at a distance: Keys' cubic convolution of width 4.

    Equation (4) of R. Keys, "Cubic convolution interpolation for digital image processing", 1981.
    """
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def to_element_type(values: Array, dtype: DType) -> Array:
    """Convert interpolated values to an element type; integers are truncated and clipped to their range."""
    if not dtype.is_integer:
        return values
    limits = np.iinfo(dtype.numpy)
    largest = float(limits.max)
    if largest > limits.max:  # 64-bit types: the float nearest to the maximum is above it
        largest = float(np.nextafter(largest, 0))
    # NOTE: weights add up to 1 only up to rounding errors: without np.round a constant 3 may become 2.
    return np.clip(np.round(values, 9), float(limits.min), largest).astype(dtype.numpy)
