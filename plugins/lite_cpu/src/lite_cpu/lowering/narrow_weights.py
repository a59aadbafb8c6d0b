"""Weights stored in 16 bits, where the session allows it (``precision="float16"`` or ``"bfloat16"``) and it pays.

A product of few rows reads its weights from memory about as fast as memory gives them: of half the size, they
come in half the time. With more rows the conversions cost more than the memory they save.

The sums stay in float32. A weight is rounded once, by at most ``u |w|`` with ``u = 2^-11`` for float16 and ``2^-8`` for
bfloat16, so ``|y' - y| <= u * sum |x| |w|`` on top of the rounding of the sum itself; float16 weights below ``2^-14``
in magnitude are rounded by at most ``2^-25`` instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import DType
from lite_cpu.lowering.context import Lowering

__all__ = ["stored_weights"]

Array = np.ndarray[Any, Any]

#: Rows up to which a product is bound by memory; measured.
_MOST_ROWS = 2
#: Weights of fewer bytes stay in the caches between runs.
_FEWEST_BYTES = 1 << 20


def stored_weights(lowering: Lowering, array: Array, rows: int, *, scale: float = 1.0) -> DType:
    """How to store the weights of a product with so many rows.

    Args:
        lowering: what the session and the machine allow.
        array: the weights, float32.
        rows: of the left operand.
        scale: multiplies the weights before they are stored.
    """
    wanted = DType(lowering.options.precision)
    if not wanted.is_half or rows > _MOST_ROWS or array.nbytes < _FEWEST_BYTES:
        return DType.FLOAT32
    if wanted is DType.FLOAT16:
        largest = abs(scale) * np.abs(array).max()
        if not lowering.machine.half or not largest <= np.finfo(np.float16).max:
            return DType.FLOAT32
    return wanted
