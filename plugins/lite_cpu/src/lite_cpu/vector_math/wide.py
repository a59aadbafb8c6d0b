"""Functions computed in float64, where the plain formulas are accurate; few models use these functions.

Results are within 0.51 ULP of float32.
"""

from __future__ import annotations

from math import inf, log2, nan
from math import log as log_of

from lite_core.ir import DType
from lite_cpu.emitter import I1, Val
from lite_cpu.vector_math.polynomial import multiply_add, polynomial
from lite_cpu.vector_math.rounding import absolute, copy_sign, floor, sqrt

__all__ = ["acosh", "asinh", "atanh", "cosh", "power", "power64", "sinh"]

_LOG2_E = log2(2.718281828459045)
# The first part has 32 bits, so that its product with an exponent is exact.
_LN2_HIGH = float.fromhex("0x1.62e42feep-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_EXPONENT_BIAS = 1023
_ROUNDER = 1.5 * 2.0**52 + _EXPONENT_BIAS

# (exp(r) - 1) / r for r in [-ln 2 / 2, ln 2 / 2] (maximal relative error of exp 4.4e-16), and
# (log((1 + s) / (1 - s)) - 2 s) / s^3 as a polynomial of s^2 (of log 1.9e-16).
_EXP = (
    1.0000000000000122,
    0.500000000000001,
    0.16666666666492444,
    0.04166666666652153,
    0.008333333404243387,
    0.0013888888947961068,
    0.00019841149645328325,
    2.4801487167396903e-05,
    2.764781432144762e-06,
    2.7632715552930574e-07,
)
_LOG = (
    0.6666666666658673,
    0.40000000052537893,
    0.28571417083274875,
    0.2222337521082382,
    0.1812352238977326,
    0.16821332155010796,
)

# exp() of this number is above the largest float32, and exp() of its negative below half of the smallest.
_FAR = 150.0

# Below this magnitude two terms of the series at 0 are enough, and the formulas begin to cancel.
_SMALL = 2.0**-10


def _exp(x: Val) -> Val:
    """``e^x`` in float64, for ``x`` limited to +-150."""
    k = x.k
    x = k.minimum(k.maximum(x, -_FAR), _FAR)
    shifted = multiply_add(x, _LOG2_E, _ROUNDER)
    n = shifted - _ROUNDER
    r = multiply_add(n, -_LN2_LOW, multiply_add(n, -_LN2_HIGH, x))
    power_of_two = (shifted.bits(DType.INT64) << 52).bits(DType.FLOAT64)
    return multiply_add(polynomial(r, _EXP), r, 1.0) * power_of_two


def _log(x: Val) -> Val:
    """The natural logarithm of a float64 that is 0, normal or infinite; NaN below 0."""
    root_half = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
    one = _EXPONENT_BIAS << 52
    bits = x.bits(DType.UINT64) + (one - root_half)
    # An integer below 2^52 is converted to float64 by writing it into the fraction of 2^52, because few machines have
    # an instruction that converts vectors of int64.
    exponent = ((bits >> 52) | (0x433 << 52)).bits(DType.FLOAT64) - (2.0**52 + _EXPONENT_BIAS)
    m = ((bits & (2**52 - 1)) + root_half).bits(DType.FLOAT64)
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    series = multiply_add(s * square, polynomial(square, _LOG), s * 2.0)
    finite = multiply_add(exponent, log_of(2), series)
    positive = x.eq(inf).select(x, finite)
    return (x >= 0.0).select(x.eq(0.0).select(-inf, positive), nan)


def _near_zero(x: Val, cubic: float, elsewhere: Val) -> Val:
    """``x + cubic * x^3`` where ``x`` is small, ``elsewhere`` with the sign of ``x`` otherwise; float64 to float32."""
    series = multiply_add(x * x * x, cubic, x)
    return (absolute(x) < _SMALL).select(series, copy_sign(elsewhere, x)).to(DType.FLOAT32)


def sinh(x: Val) -> Val:
    """Hyperbolic sine."""
    wide = x.to(DType.FLOAT64)
    grown = _exp(absolute(wide))
    return _near_zero(wide, 1 / 6, (grown - 1.0 / grown) * 0.5)


def cosh(x: Val) -> Val:
    """Hyperbolic cosine."""
    grown = _exp(absolute(x.to(DType.FLOAT64)))
    return ((grown + 1.0 / grown) * 0.5).to(DType.FLOAT32)


def asinh(x: Val) -> Val:
    """Inverse hyperbolic sine."""
    wide = x.to(DType.FLOAT64)
    size = absolute(wide)
    return _near_zero(wide, -1 / 6, _log(size + sqrt(multiply_add(size, size, 1.0))))


def acosh(x: Val) -> Val:
    """Inverse hyperbolic cosine, not negative; NaN below 1."""
    wide = x.to(DType.FLOAT64)
    # NOTE: two roots are needed: the root of the product would be real below -1.
    return _log(wide + sqrt(wide - 1.0) * sqrt(wide + 1.0)).to(DType.FLOAT32)


def atanh(x: Val) -> Val:
    """Inverse hyperbolic tangent: infinite at -1 and 1, NaN outside."""
    wide = x.to(DType.FLOAT64)
    size = absolute(wide)
    return _near_zero(wide, 1 / 3, _log((1.0 + size) / (1.0 - size)) * 0.5)


def power64(x: Val, y: Val) -> Val:
    """``x^y`` of float64 values that are float32 numbers or integers; relative error below 1e-13, overflow at e^150.

    The result is NaN for a negative finite ``x`` with a fractional ``y``; special numbers are treated as by C's
    ``pow``.
    """
    size = absolute(x)
    # NOTE: 1^y and x^0 are 1 for any number, NaN and infinities included.
    one = size.eq(1.0) | y.eq(0.0)
    magnitude = _exp(one.select(0.0, y * _log(size)))
    whole = floor(y).eq(y)
    half = y * 0.5
    odd = whole & floor(half).ne(half)
    signed = odd.select(copy_sign(magnitude, x), magnitude)
    return (~whole & (x < 0.0) & (x > -inf)).select(nan, signed)


def power(x: Val, y: Val) -> Val:
    """``x^y`` of a float32 and any number; see :func:`power64`. Squares, the most frequent powers, are fast."""
    k = x.k
    result = k.variable(x * x)
    other = y.ne(2)
    any_other = other.ir if x.lanes == 1 else k.intrinsic(f"llvm.vector.reduce.or.v{x.lanes}i1", I1, [other.ir])
    with k.if_(Val(k, any_other, DType.BOOL)):
        result.set(power64(x.to(DType.FLOAT64), y.to(DType.FLOAT64)).to(DType.FLOAT32))
    return result.get()
