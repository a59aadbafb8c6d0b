"""Weights stored in 16 bits, if the session allows it (``precision="float16"`` or ``"bfloat16"``) and it is faster.

A product with few rows is limited by the bandwidth of reading its weights, so weights of half the size take half the
time. With more rows the conversions cost more than they save.

Sums are computed in float32. Each weight is rounded once, by at most ``u |w|`` with ``u = 2^-11`` for float16 and
``2^-8`` for bfloat16, so ``|y' - y| <= u * sum |x| |w|`` in addition to the rounding of the sum. float16 weights below
``2^-14`` in magnitude are rounded by at most ``2^-25`` instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import DType
from lite_cpu.lowering.context import Lowering
from lite_cpu.precisions import MAX_ROWS

__all__ = ["stored_weights"]

Array = np.ndarray[Any, Any]

#: Smaller weights stay in the caches between runs.
_FEWEST_BYTES = 1 << 20


def stored_weights(lowering: Lowering, array: Array, rows: int, *, scale: float = 1.0) -> DType:
    """Return the element type in which the weights of a product are stored.

    Args:
        lowering: the lowering context, with the options of the session and the machine.
        array: the weights, float32 or 16-bit floats.
        rows: the number of rows of the left operand.
        scale: a factor that multiplies the weights before they are stored.
    """
    wanted = DType(lowering.options.precision)
    if not wanted.is_half or rows > MAX_ROWS or 4 * array.size < _FEWEST_BYTES:
        return DType.FLOAT32
    if wanted is DType.FLOAT16:
        largest = abs(scale) * np.abs(array).max()
        if not lowering.machine.half or not largest <= np.finfo(np.float16).max:
            return DType.FLOAT32
    return wanted
