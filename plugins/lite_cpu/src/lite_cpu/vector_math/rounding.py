"""What single instructions do: rounding to integers, roots, signs; and the exact remainder. float32 and float64."""

from __future__ import annotations

from lite_core.ir import DType
from lite_cpu.emitter import Val

__all__ = ["absolute", "ceil", "copy_sign", "floor", "fmod", "round_half_even", "sqrt", "trunc"]


def absolute(x: Val) -> Val:
    """``x`` without its sign."""
    return x.k.call("llvm.fabs", x)


def copy_sign(magnitude: Val, sign: Val) -> Val:
    """``magnitude`` with the sign of ``sign``."""
    return magnitude.k.call("llvm.copysign", magnitude, sign)


def sqrt(x: Val) -> Val:
    """The square root, correctly rounded; NaN below 0."""
    return x.k.call("llvm.sqrt", x)


def floor(x: Val) -> Val:
    """The largest integer that is not above ``x``."""
    return x.k.call("llvm.floor", x)


def ceil(x: Val) -> Val:
    """The smallest integer that is not below ``x``."""
    return x.k.call("llvm.ceil", x)


def trunc(x: Val) -> Val:
    """``x`` without its fraction."""
    return x.k.call("llvm.trunc", x)


def round_half_even(x: Val) -> Val:
    """The nearest integer, the even one of two equally near."""
    return x.k.call("llvm.roundeven", x)


# Bits of the quotient that a step of the remainder finds: a quotient of so many bits and a fraction of 24 bits
# below it are distinct in the 53 bits of a float64, so truncating a rounded quotient is right.
_STEP_BITS = 28
# Finite float32 differ by less than 2^277; zeros and infinities, which come to NaN anyway, by more.
_MOST_STEPS = 10


def fmod(a: Val, b: Val) -> Val:
    """The remainder of ``a / b`` with the sign of ``a``, exact; NaN for an infinite ``a`` or a zero ``b``. float32.

    Long division, ``_STEP_BITS`` bits of the quotient at a time: for positive ``x`` and ``y`` and
    ``s = y * 2^i``, ``x - trunc(x / s) * s`` has the same remainder, and no more bits than ``x`` and ``y``.
    All of it is exact in float64. Most quotients need one step.
    """
    k = a.k
    x, y = absolute(a), absolute(b)
    remainder, divisor = k.variable(x.to(DType.FLOAT64)), y.to(DType.FLOAT64)
    exponents = [v.bits(DType.INT64) >> 52 for v in (remainder.get(), divisor)]
    bits = k.max_lanes(exponents[0] - exponents[1]) + 1
    steps = k.minimum(k.maximum(bits, 0) / _STEP_BITS + 1, _MOST_STEPS)
    with k.loop(0, steps) as step:
        shift = (steps - 1 - step) * _STEP_BITS
        scaled = divisor * ((shift + 1023) << 52).bits(DType.FLOAT64)
        rest = remainder.get()
        remainder.set(rest - trunc(rest / scaled) * scaled)
    # NOTE: a finite number modulo infinity is itself; the formula has infinity times zero.
    finite = x < float("inf")
    kept = (finite & y.eq(float("inf"))).select(x, remainder.get().to(DType.FLOAT32))
    return copy_sign(kept, a)
