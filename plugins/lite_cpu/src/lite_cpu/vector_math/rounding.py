"""Rounding to integers, square roots, signs and the exact remainder, of float32 and float64."""

from __future__ import annotations

from lite_core.ir import DType
from lite_cpu.emitter import Val
from lite_cpu.machine_code.ir_module import ir

__all__ = ["absolute", "ceil", "copy_sign", "floor", "fmod", "round_half_even", "round_to_int32", "sqrt", "trunc"]


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
    """The nearest integer; the even one if two are equally near."""
    return x.k.call("llvm.roundeven", x)


#: Instructions of x86 that round four, eight or sixteen float32 to int32, and the arguments after the vector.
_TO_INT32 = {4: "sse2.cvtps2dq", 8: "avx.cvt.ps2dq.256", 16: "avx512.mask.cvtps2dq.512"}


def round_to_int32(x: Val) -> Val:
    """``round_half_even`` as an int32, in whose range ``x`` is."""
    k = x.k
    if x.dtype is not DType.FLOAT32 or x.lanes not in _TO_INT32 or not k.machine.triple.startswith("x86"):
        return round_half_even(x).to(DType.INT32)
    result = ir.VectorType(ir.IntType(32), x.lanes)
    arguments = [x.ir]
    if x.lanes == 16:  # what lanes without a mask bit get, the mask, and the rounding: to nearest even
        arguments += [ir.Constant(result, None), ir.Constant(ir.IntType(16), 0xFFFF), ir.Constant(ir.IntType(32), 8)]
    rounded = k.intrinsic(f"llvm.x86.{_TO_INT32[x.lanes]}", result, arguments)
    return Val(k, rounded, DType.INT32, x.lanes)


# Number of quotient bits found by one step of the remainder. The quotient of a step, with a fraction of 24 bits, fits
# into the 53 bits of a float64, so truncating the rounded quotient is correct.
_STEP_BITS = 28
# The quotient of finite float32 numbers is less than 2^277; zeros and infinities give NaN in any case.
_MOST_STEPS = 10


def fmod(a: Val, b: Val) -> Val:
    """The exact remainder of ``a / b`` with the sign of ``a``, of float32; NaN if ``a`` is infinite or ``b`` zero.

    Long division, ``_STEP_BITS`` bits of the quotient at a time: for positive ``x`` and ``y`` and
    ``s = y * 2^i``, ``x - trunc(x / s) * s`` has the same remainder, and no more bits than ``x`` and ``y``.
    All steps are exact in float64. Most quotients need one step.
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
    # NOTE: a finite number modulo infinity is the number itself, but the formula multiplies infinity by zero.
    finite = x < float("inf")
    kept = (finite & y.eq(float("inf"))).select(x, remainder.get().to(DType.FLOAT32))
    return copy_sign(kept, a)
