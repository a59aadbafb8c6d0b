"""Conversion to 8-bit floats and 4-bit integers, as ONNX's Cast defines it."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import DType

__all__ = ["integer_limits", "to_narrow"]

Array = np.ndarray[Any, Any]

# The largest finite numbers of 8-bit floats: Micikevicius et al., "FP8 Formats for Deep Learning", 2022, table 1, and
# for the types without a negative zero Noune et al., "8-bit Numerical Formats for Deep Neural Networks", 2022.
_LARGEST = {
    DType.FLOAT8E4M3FN: 448.0,
    DType.FLOAT8E4M3FNUZ: 240.0,
    DType.FLOAT8E5M2: 57344.0,
    DType.FLOAT8E5M2FNUZ: 57344.0,
}


def to_narrow(x: Array, to: DType, saturate: bool) -> Array:
    """Convert elements to a narrow type, rounded to the nearest number, halves to even.

    Args:
        x: of any element type.
        to: a narrow type. 4-bit integers are always saturated.
        saturate: if True, infinities and floats beyond the largest number of an 8-bit type become that number.
            Otherwise they become infinity (E5M2) or NaN (other types). NaN stays NaN in any case.
    """
    real = x.astype(np.float32)
    if to.is_integer:
        low, high = integer_limits(to.numpy)
        return np.clip(np.rint(np.nan_to_num(real, nan=0.0)), low, high).astype(np.int8).astype(to.numpy)
    if saturate:
        most = _LARGEST[to]
        real = np.clip(real, -most, most)  # leaves NaN as it is
    with np.errstate(all="ignore"):
        narrow: Array = real.astype(to.numpy)
    if to is DType.FLOAT8E5M2:  # the type has several NaN patterns; ONNX's test data has 0x7F
        narrow = np.where(np.isnan(real), np.uint8(0x7F), narrow.view(np.uint8)).view(to.numpy)
    return narrow


def integer_limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the smallest and the largest number of an integer type, which may be a 4-bit type."""
    if dtype.kind in "iu":
        found = np.iinfo(dtype)
        return int(found.min), int(found.max)
    return (0, 15) if DType.of(dtype) is DType.UINT4 else (-8, 7)
