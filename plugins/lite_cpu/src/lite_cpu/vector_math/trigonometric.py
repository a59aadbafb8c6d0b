"""Trigonometric functions and their inverses, angles in radians."""

from __future__ import annotations

from math import pi

from lite_core.ir import DType
from lite_cpu.emitter import Val
from lite_cpu.vector_math.polynomial import multiply_add, polynomial
from lite_cpu.vector_math.rounding import absolute, copy_sign, sqrt

__all__ = ["acos", "asin", "atan", "cos", "sin", "tan"]

# pi / 2 as a sum. The first two terms have 24 bits, so that their products with the number of a quadrant are exact.
_HALF_PI = (
    float.fromhex("0x1.921fb4p+0"),
    float.fromhex("0x1.4442dp-24"),
    float.fromhex("0x1.8469898cc5170p-48"),
)
# Adding this number rounds a float64 to an integer and leaves that integer in the low bits.
_ROUNDER = 1.5 * 2.0**52

# (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4 as polynomials of r^2, for r in [-pi/4, pi/4], and
# (atan(t) - t) / t^3 and (asin(t) - t) / t^3 of t^2, for t in [0, 1] and [0, 1/2] (maximal relative errors of the
# functions 6.5e-9, 2.6e-10, 3.0e-8 and 8.8e-9).
_SIN = (-0.16666654667107503, 0.008332100463766527, -0.00019503896320229434)
_COS = (0.04166665464471771, -0.0013887653897193479, 2.44637707789672e-05)
_ATAN = (
    -0.33333213850357246,
    0.1999475716759702,
    -0.1421586557042657,
    0.10673986344970764,
    -0.07549181953049622,
    0.042973299134851095,
    -0.01611402462937455,
    0.0028340675047221734,
)
_ASIN = (0.16666731145153008, 0.07495668303484113, 0.04546569729082429, 0.024057063715814276, 0.04255356790897182)


def _quadrant(x: Val) -> tuple[Val, Val, Val]:
    """Return ``(q, sin(r), cos(r))`` with ``x = q * pi / 2 + r``; only the last two bits of the int32 ``q`` are right.

    The reduction is computed in float64 and exact for ``|x| < 2^29``. Beyond, where neighbouring float32 numbers are
    64 radians apart, ``r`` is an arbitrary angle in [-pi/4, pi/4].
    """
    k, wide = x.k, x.to(DType.FLOAT64)
    shifted = multiply_add(wide, 2 / pi, _ROUNDER)
    n = shifted - _ROUNDER
    for part in _HALF_PI:
        wide = multiply_add(n, -part, wide)
    r = k.maximum(k.minimum(wide, pi / 4), -pi / 4).to(DType.FLOAT32)
    square = r * r
    sine = multiply_add(r * square, polynomial(square, _SIN), r)
    cosine = multiply_add(square * square, polynomial(square, _COS), multiply_add(square, -0.5, 1.0))
    return shifted.bits(DType.INT64).to(DType.INT32), sine, cosine


def sin(x: Val) -> Val:
    """Sine; at most 1.6 ULP off for ``|x| < 2^29``."""
    quadrant, sine, cosine = _quadrant(x)
    return _sine_in_quadrant(quadrant, sine, cosine)


def cos(x: Val) -> Val:
    """Cosine, computed as the sine of the next quadrant; at most 1.6 ULP off for ``|x| < 2^29``."""
    quadrant, sine, cosine = _quadrant(x)
    return _sine_in_quadrant(quadrant + 1, sine, cosine)


def _sine_in_quadrant(quadrant: Val, sine: Val, cosine: Val) -> Val:
    """Return the sine of ``quadrant * pi / 2 + r``, given sine and cosine of ``r``."""
    chosen = (quadrant & 1).ne(0).select(cosine, sine)
    sign = (quadrant & 2) << 30
    return (chosen.bits(DType.INT32) ^ sign).bits(DType.FLOAT32)


def tan(x: Val) -> Val:
    """Tangent; at most 3.5 ULP off for ``|x| < 2^29``."""
    quadrant, sine, cosine = _quadrant(x)
    odd = (quadrant & 1).ne(0)
    return odd.select(-cosine, sine) / odd.select(sine, cosine)


def atan(x: Val) -> Val:
    """The angle in [-pi/2, pi/2] whose tangent is ``x``; at most 2.3 ULP off."""
    k, size = x.k, absolute(x)
    t = k.minimum(size, 1.0) / k.maximum(size, 1.0)
    square = t * t
    angle = multiply_add(t * square, polynomial(square, _ATAN), t)
    return copy_sign((size > 1.0).select(pi / 2 - angle, angle), x)


def _arc_sine(size: Val) -> tuple[Val, Val]:
    """Return ``(near, angle)`` for a size in [0, 1]: its arc sine is ``angle``, or if near 1 ``pi / 2 - 2 * angle``."""
    near = size > 0.5
    # sin(a) = size means sin((pi / 2 - a) / 2)^2 = (1 - size) / 2.
    square = near.select(multiply_add(size, -0.5, 0.5), size * size)
    t = near.select(sqrt(square), size)
    return near, multiply_add(t * square, polynomial(square, _ASIN), t)


def asin(x: Val) -> Val:
    """The angle in [-pi/2, pi/2] whose sine is ``x``; NaN outside [-1, 1]. At most 2.3 ULP off."""
    near, angle = _arc_sine(absolute(x))
    return copy_sign(near.select(multiply_add(angle, -2.0, pi / 2), angle), x)


def acos(x: Val) -> Val:
    """The angle in [0, pi] whose cosine is ``x``; NaN outside [-1, 1]. At most 1.3 ULP off."""
    near, angle = _arc_sine(absolute(x))
    twice = angle * 2.0
    far = pi / 2 - copy_sign(angle, x)
    return near.select((x < 0.0).select(pi - twice, twice), far)
