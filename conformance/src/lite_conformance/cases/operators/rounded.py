"""Sums and products of half-precision numbers that are rounded to the nearest number, and those out of range.

A result that is truncated has up to twice the error of a rounded one, which other cases allow. All hardware rounds the
result of one addition or multiplication; Lite's backends compute it in float32, and round that.
"""

from __future__ import annotations

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (
    elementwise_binary,  # noqa: F401 - this module creates the tables extended here
)
from lite_conformance.cases.tensors import const, t, uniform
from lite_conformance.judge.tolerances import Numerics
from lite_core.ir import DType

# Half of an epsilon is the largest error of a rounded result, one epsilon that of a truncated one.
_ROUNDED = Numerics("rounded", (0.75, 0), (0.75, 0), "none")
_HALF = ("float16", "bfloat16")

#: Numbers whose sums and products exceed the largest finite number, by element type.
_TOO_LARGE = {
    DType.FLOAT16: uniform(4e4, 6e4),
    DType.BFLOAT16: uniform(2e38, 3e38),
    DType.FLOAT32: uniform(2e38, 3e38),
    DType.FLOAT64: uniform(1e308, 1.5e308),
}

for _op in ("Add", "Sub", "Mul"):
    table_of(_op)("rounded", t(3, 257, init=uniform(4, 8)), t(3, 257, init=uniform(1, 2)), dtypes=_HALF,
                  numerics=_ROUNDED)  # fmt: skip
    table_of(_op)("rounded,constant", t(3, 257, init=uniform(4, 8)), const(257, init=uniform(1, 2)), dtypes=_HALF,
                  numerics=_ROUNDED)  # fmt: skip
for _op in ("Add", "Mul"):
    for _dtype, _init in _TOO_LARGE.items():
        table_of(_op)(f"out-of-range,{_dtype}", t(3, 33, init=_init), t(33, init=_init), dtypes=(_dtype,))
