"""Division of integers by zero, and by -1: the program goes on, and other elements are right.

A quotient or remainder of a division by zero may have any value. The lowest number divided by -1 wraps to itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    elementwise_binary,
    elementwise_unary,
)
from lite_conformance.cases.operators.initializers import few, specials, with_elements
from lite_conformance.cases.operators.operands import whole_range
from lite_conformance.cases.tensors import Array, Tensor, const, integers, t, uniform, values
from lite_core.ops.dtypes import FLOATS, INTEGERS, SIGNED_INTEGERS


def _by_zero(dividend: Array, divisor: Array) -> Array:
    return np.broadcast_to(divisor == 0, np.broadcast_shapes(dividend.shape, divisor.shape))


_some_zeros = with_elements(0.0, 1.0, among=whole_range)


_channel = values([[[3]], [[0]], [[7]]], constant=True)


def _add(op: str, label: str, *inputs: Tensor, **attributes: Any) -> None:
    attributes.setdefault("dtypes", INTEGERS)
    table_of(op)(label, *inputs, **attributes)


for _op, _suffix, _fmod in (("Div", "", {}), ("Mod", "", {}), ("Mod", ",fmod", {"fmod": 1})):
    _of_zero: dict[str, Any] = {"unspecified": _by_zero, **_fmod}
    _add(_op, f"by-zero{_suffix}", t(9, 37, init=whole_range), t(9, 37, init=_some_zeros), **_of_zero)
    _add(_op, f"by-zero{_suffix},small", t(257, init=few), t(257, init=few), **_of_zero)
    _add(_op, f"by-zero{_suffix},extremes", t(5, 1, init=specials), t(1, 5, init=specials), **_of_zero)
    _add(_op, f"by-zero{_suffix},scalar-constant", t(37, init=whole_range), values(0, constant=True), **_of_zero)
    _add(_op, f"by-zero{_suffix},channel", t(2, 3, 5, 7, init=whole_range), _channel, **_of_zero)
    _add(
        _op, f"by-zero{_suffix},constant-dividend", const(37, init=whole_range), t(9, 37, init=_some_zeros), **_of_zero
    )
    _add(
        _op, f"lowest-by-minus-one{_suffix}", t(37, init=specials), values([[-1], [1]]), dtypes=SIGNED_INTEGERS, **_fmod
    )
    _add(_op, f"lowest-by-minus-one{_suffix},constant", t(37, init=specials), values(-1, constant=True),
         dtypes=SIGNED_INTEGERS, **_fmod)  # fmt: skip

# Floats: IEEE 754 defines every quotient.
_add("Div", "by-zero,floats", t(3, 37, init=with_elements(0.0, -0.0)), values([[0.0], [-0.0], [2.0]]), dtypes=FLOATS)
_add("Div", "by-zero,floats,constant", t(37), values(0.0, constant=True), dtypes=FLOATS)
_add("Reciprocal", "of-zeros", t(37, init=with_elements(0.0, -0.0)), dtypes=FLOATS)


def _zero_to_negative(base: Array, exponent: Array) -> Array:
    return np.asarray((base == 0) & (exponent < 0))


# 1 / 0 is out of the range of integers. Other negative powers are truncated: 0, except for 1 and -1.
_add("Pow", "negative-exponents,integers", t(9, 37, init=few), t(9, 37, init=integers(-3, 3)),
     unspecified=_zero_to_negative)  # fmt: skip
_add("Pow", "zero-to-negative,floats", values([0.0, -0.0, 1.0, -2.0]), values([[-1.0], [-2.0], [-3.0]]), dtypes=FLOATS)
_add("Pow", "lowest-and-highest-base,inverse", t(5, init=specials), values(-1), unspecified=_zero_to_negative)
_add("Mod", "by-zero,fmod,floats", t(37, init=uniform(-9, 9)), values([[0.0], [2.0]]), fmod=1, dtypes=FLOATS)
