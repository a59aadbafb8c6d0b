"""The largest of 16-bit floats, found by their bits: without conversions, and twice as many to a vector as of float32.

Floats without NaN have the order of their bits as integers, if the bits of negative ones are inverted except for the
sign.
"""

from __future__ import annotations

from math import inf

import numpy as np

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Val

__all__ = ["LargestHalf"]

I16 = DType.INT16


class LargestHalf:
    """The largest number so far of each lane; NaN after a NaN.

    Args:
        k: the emitter.
        dtype: float16 or bfloat16.
        lanes: the number of lanes.
    """

    def __init__(self, k: Emitter, dtype: DType, lanes: int) -> None:
        self._infinity = int(np.array(inf).astype(dtype.numpy).view(np.int16))
        self._most = k.variable(k.constant(-1 - self._infinity, I16, lanes))  # the order of -Inf
        self._magnitude = k.variable(k.constant(0, I16, lanes))

    def take(self, bits: Val) -> None:
        """Compare with numbers, given by their bits as int16."""
        k = bits.k
        self._most.set(k.maximum(self._most.get(), _in_order(bits)))
        self._magnitude.set(k.maximum(self._magnitude.get(), bits & 0x7FFF))

    def bits(self) -> Val:
        """Return the bits of the largest numbers as int16."""
        magnitude = self._magnitude.get()
        return (magnitude > self._infinity).select(magnitude, _in_order(self._most.get()))


def _in_order(bits: Val) -> Val:
    """Return integers in the order of the numbers with these bits; the function is its own inverse."""
    return bits ^ ((bits >> 15) & 0x7FFF)
