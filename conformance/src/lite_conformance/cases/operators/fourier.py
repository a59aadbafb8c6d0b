"""Cases of DFT."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.tensors import Array, normal, t, values
from lite_conformance.judge.tolerances import SCALED
from lite_core.ir import DType


def _with_nan(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return complex numbers with one whose parts are NaN, which makes each sum of its row NaN."""
    numbers = normal(random, shape, dtype)
    numbers[1, 3] = np.array(np.nan, dtype.numpy)
    return numbers


dft = table("DFT", SCALED)
dft("1x8x1", t(1, 8, 1))
dft("1x8x2", t(1, 8, 2))
dft("2x3x400x1,onesided", t(2, 3, 400, 1), onesided=1)
dft("3x7x1,onesided,odd", t(3, 7, 1), onesided=1)
dft("2x12x2,inverse", t(2, 12, 2), inverse=1)
dft("2x12x1,inverse", t(2, 12, 1), inverse=1)
dft("1x1x1,one-element", t(1, 1, 1), onesided=1)
dft("0x16x1,empty", t(0, 16, 1))
dft("2x1500x1,onesided,two-stages", t(2, 1500, 1), onesided=1)
dft("1x1250x2,inverse,two-stages", t(1, 1250, 2), inverse=1)
dft("1x1031x1,prime", t(1, 1031, 1), onesided=1)
dft("2x10x1,padded", t(2, 10, 1), values(16, "int64", constant=True), onesided=1)
dft("2x10x2,cut", t(2, 10, 2), values(7, "int64", constant=True))
dft("5x3x4x2,axis0", t(5, 3, 4, 2), None, values(0, "int64", constant=True))
dft("2x3x4x1,axis-3", t(2, 3, 4, 1), None, values(-3, "int64", constant=True), inverse=1)
dft("2x10x1,padded,int32", t(2, 10, 1), values(16, "int32", constant=True))
dft("2x10x1,padded,at-run-time", t(2, 10, 1), values(16, "int64"), onesided=1)
dft("5x3x4x2,axis1,at-run-time", t(5, 3, 4, 2), None, values(1, "int64"))
dft("2x1x3x8x2,five-axes", t(2, 1, 3, 8, 2))
dft("4200x8x2,large", t(4200, 8, 2))
dft("3x8x2,one-nan", t(3, 8, 2, init=_with_nan))


@dft.drawn
def draw_dft(draw: Draw, dtype: DType) -> OpCase:
    batch, length, parts = draw(st.integers(1, 3)), draw(st.integers(1, 70)), draw(st.integers(1, 2))
    kind = draw(st.integers(0, 2))
    if kind == 1:
        return dft.case(t(batch, length, 1), onesided=1)
    return dft.case(t(batch, length, parts), inverse=int(kind == 2))
