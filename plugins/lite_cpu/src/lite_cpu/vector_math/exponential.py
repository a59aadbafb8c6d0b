"""Exponential functions and the natural logarithm, on which most activations are based.

With ``x = n * ln 2 + r``, ``exp(x) = 2^n * exp(r)``: ``exp(r)`` is a polynomial and ``2^n`` is written into the
exponent bits of a float. Adding ``1.5 * 2^23`` rounds to an integer, and leaves that integer in the low bits.
"""

from __future__ import annotations

from math import inf, log2, nan
from math import log as log_of

from lite_core.ir import DType
from lite_cpu.emitter import Number, Val
from lite_cpu.vector_math.polynomial import multiply_add, polynomial
from lite_cpu.vector_math.rounding import absolute

__all__ = [
    "exp",
    "exp_of_nonpositive",
    "expm1_of_nonpositive",
    "log",
    "over_one_plus_exp",
    "sigmoid",
    "silu",
    "softplus",
    "tanh",
]

_LOG2_E = log2(2.718281828459045)
# The first part has 15 bits, so that its product with an exponent is exact.
_LN2_HIGH = float.fromhex("0x1.62e4p-1")
_LN2_LOW = log_of(2) - _LN2_HIGH
_EXPONENT_BIAS = 127
_ROUNDER = 1.5 * 2**23 + _EXPONENT_BIAS

# (exp(r) - 1) / r, lowest power first: for r in [0, ln 2]; for r in [-ln 2 / 2, ln 2 / 2]; for the same interval, but
# fitted to the relative error of exp(r) - 1 (maximal relative errors 2.0e-9, 9.2e-8 and 1.1e-8).
_ABOVE_ZERO = (
    0.9999998030379986,
    0.5000058396260119,
    0.1666100139573961,
    0.04191538434258508,
    0.007791685483723038,
    0.0019490931008149764,
)
_AROUND_ZERO = (0.9999997063328827, 0.49999147863559573, 0.16667638074557392, 0.04189815731649504, 0.008290274922814155)
_MINUS_ONE = (
    1.000000010659838,
    0.49999998119359496,
    0.16666505901358108,
    0.04166713706519012,
    0.008369104046267947,
    0.0013888878252532571,
)
# log(1 + e) / e for e in [0, 1] (3.0e-8).
_LOG1P = (
    0.9999999698735033,
    -0.49999493126215644,
    0.33319096743944054,
    -0.24842982474871428,
    0.1910600931602009,
    -0.13663253151237387,
    0.07822605346407362,
    -0.029505307627810933,
    0.0052327126555308705,
)
# (log(1 + f) - f + f^2 / 2) / f^3 for 1 + f in [sqrt(1/2), sqrt(2)] (3.2e-8).
_LOG = (
    0.3333391071108159,
    -0.2500133701458824,
    0.19963064743345932,
    -0.1657758605752827,
    0.14914759734800825,
    -0.14267472618223773,
    0.08700439940520033,
)

# At the lower limit exp() is 0 or nearer to 0 than half the smallest float32; at the upper limit it overflows.
_LOWEST, _HIGHEST = -88.0, 89.0


def _split(x: Val, scale: float = 1.0, offset: float = 0.0) -> tuple[Val, Val]:
    """Return ``(r, 2^n)`` with ``scale * x = n * ln 2 + scale * r``.

    ``n`` is the integer nearest to ``scale * x / ln 2 + offset``, which must be in [-127, 128]; at these limits the
    power is 0 and infinity. ``scale`` must be a power of two.
    """
    slope = _LOG2_E * scale
    shifted = multiply_add(x, slope, offset) + _ROUNDER if offset else multiply_add(x, slope, _ROUNDER)
    n = shifted - _ROUNDER
    r = multiply_add(n, -_LN2_LOW / scale, multiply_add(n, -_LN2_HIGH / scale, x))
    return r, (shifted.bits(DType.INT32) << 23).bits(DType.FLOAT32)


def exp(x: Val) -> Val:
    """``e^x``, 15 instructions; at most 2.0 ULP off."""
    k = x.k
    # NOTE: n is rounded down, so that exp(r) is in [1, 2) and exp(x) overflows exactly where 2^n does. The offset is
    # slightly above -1/2: otherwise exp(0) could be 2^-1 times a rounded 2 instead of exactly 1.
    r, power = _split(k.minimum(k.maximum(x, _LOWEST), _HIGHEST), offset=2.0**-20 - 0.5)
    return multiply_add(polynomial(r, _ABOVE_ZERO), r, 1.0) * power


def exp_of_nonpositive(x: Val) -> Val:
    """``e^x`` for ``x <= 0``, 12 instructions; at most 2.3 ULP off."""
    return _exp_in_range(x.k.maximum(x, _LOWEST))


def _exp_in_range(x: Val) -> Val:
    """``e^x`` for ``x`` in [-88, 89]; infinite from 88.38 on."""
    r, power = _split(x)
    return multiply_add(polynomial(r, _AROUND_ZERO), r, 1.0) * power


def expm1_of_nonpositive(x: Val) -> Val:
    """``e^x - 1`` for ``x <= 0``; at most 1.4 ULP off."""
    return _expm1_in_range(x.k.maximum(x, _LOWEST))


def _expm1_in_range(x: Val, scale: float = 1.0) -> Val:
    """``e^(scale * x) - 1`` for ``scale * x`` in [-88, 88]; ``scale`` is a power of two."""
    r, power = _split(x, scale)
    scaled = [c * scale ** (i + 1) for i, c in enumerate(_MINUS_ONE)]
    return multiply_add(polynomial(r, scaled) * r, power, power - 1.0)


def tanh(x: Val) -> Val:
    """Hyperbolic tangent: ``(e^2x - 1) / (e^2x + 1)``; at most 3.3 ULP off."""
    k = x.k
    # From 9.02 on the result is 1 in float32.
    grown = _expm1_in_range(k.minimum(k.maximum(x, -10.0), 10.0), 2.0)
    return grown / (grown + 2.0)


def sigmoid(x: Val) -> Val:
    """``1 / (1 + e^-x)``; at most 3.5 ULP off."""
    return over_one_plus_exp(1.0, -x)


def silu(x: Val, beta: float = 1.0) -> Val:
    """``x / (1 + e^(-beta x))``; 0 where the exponential overflows."""
    return over_one_plus_exp(x, x * -beta)


def over_one_plus_exp(numerator: Number, x: Val) -> Val:
    """``numerator / (1 + e^x)``."""
    k = x.k
    decay = _exp_in_range(k.minimum(k.maximum(x, _LOWEST), _HIGHEST))
    return k.value(numerator, x.dtype, x.lanes) / (decay + 1.0)


def softplus(x: Val) -> Val:
    """``log(1 + e^x)``; at most 3.6 ULP off."""
    decay = exp_of_nonpositive(-absolute(x))
    return multiply_add(decay, polynomial(decay, _LOG1P), x.k.maximum(x, 0.0))


def log(x: Val) -> Val:
    """The natural logarithm, also of subnormal numbers: -Inf for 0, NaN below 0; at most 1.2 ULP off."""
    k = x.k
    root_half = 0x3F3504F3  # the bits of sqrt(1/2)
    subnormal = x < 2.0**-126
    bits = subnormal.select(x * 2.0**25, x).bits(DType.INT32) - root_half
    exponent = (bits >> 23).to(DType.FLOAT32) - subnormal.select(k.constant(25.0, DType.FLOAT32, x.lanes), 0.0)
    f = ((bits & 0x7FFFFF) + root_half).bits(DType.FLOAT32) - 1.0
    square = f * f
    tail = multiply_add(exponent, _LN2_LOW, square * f * polynomial(f, _LOG))
    finite = multiply_add(exponent, _LN2_HIGH, f + multiply_add(square, -0.5, tail))
    positive = x.eq(inf).select(x, finite)
    return (x >= 0.0).select(x.eq(0.0).select(-inf, positive), nan)
