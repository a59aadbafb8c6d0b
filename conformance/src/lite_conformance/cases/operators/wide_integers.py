"""Integers of the whole range where other cases have small ones: kernels that convert them on the way lose digits."""

from __future__ import annotations

from typing import Any

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    comparison,
    elementwise_binary,
    elementwise_unary,
    grid_sample,
    padding,
    resize,
    search,
)
from lite_conformance.cases.operators.grid_sample import grid32, near
from lite_conformance.cases.operators.layer_initializers import multiples_of
from lite_conformance.cases.operators.operands import whole_range
from lite_conformance.cases.tensors import Tensor, ints, t, values
from lite_core.ops.dtypes import INTEGERS


def _add(op: str, *inputs: Tensor | None, **attributes: Any) -> None:
    table_of(op)("whole-range", *inputs, dtypes=INTEGERS, **attributes)


def _wide(*shape: int) -> Tensor:
    return t(*shape, init=whole_range)


for _op in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min"):
    _add(_op, _wide(37), _wide(37))
# Equal in their lowest 16 or 32 bits, but not in all.
table_of("Equal")("lowest-bits-equal", values([1, 2**40 + 1, 2**32 + 1, 7]), values([2**32 + 1, 1, 1, 7]),
                  dtypes=("int64", "uint64"))  # fmt: skip
table_of("Equal")("lowest-16-bits-equal", values([1, 2**20 + 1, 7]), values([2**16 + 1, 1, 7]),
                  dtypes=("int32", "uint32"))  # fmt: skip
for _dtype in INTEGERS:
    if _dtype.itemsize > 1:
        # Multiples of 256: their last byte is 0.
        table_of("Erf")(f"multiples-of-256,{_dtype}", values([256, 1024, 0, 3]), dtypes=[_dtype])
for _op in ("Erf", "Sign"):
    table_of(_op)("multiples-of-2**32", values([2**32, 2**40, 0, 3]), dtypes=("int64", "uint64"))
_add("Erf", _wide(37))
_add("Sign", _wide(37))
for _op in ("ArgMax", "ArgMin"):
    _add(_op, _wide(5, 37), axis=1)
for _largest in (0, 1):
    table_of("TopK")(f"whole-range,largest{_largest}", _wide(5, 37), ints(4), outputs=2, largest=_largest,
                     dtypes=INTEGERS)  # fmt: skip
_add("Clip", _wide(37), _wide(), _wide())
_add("Unique", _wide(37), outputs=4)
_add("NonZero", _wide(5, 7))
_add("Resize", _wide(1, 2, 3, 4), None, None, ints(1, 2, 6, 8), mode="nearest")
# The weights are multiples of 1/16, and half of the numbers would be negative as signed ones.
for _dtype in (d for d in INTEGERS if not d.is_signed):
    _sixteenths = multiples_of(2 ** (8 * _dtype.itemsize - 4), 16)
    table_of("Resize")(f"linear,upper-half-of-{_dtype}", t(1, 2, 3, 4, init=_sixteenths), None, None, ints(1, 2, 6, 8),
                       mode="linear", dtypes=[_dtype])  # fmt: skip
_add("Col2Im", _wide(1, 4, 6), ints(3, 4), ints(2, 2))
_add("GridSample", _wide(2, 3, 4, 5), grid32(2, 3, 7, 2, init=near), mode="nearest")
