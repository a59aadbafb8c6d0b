"""Arithmetic that takes more than one instruction: integer division, remainders, powers, extremes, bits."""

from __future__ import annotations

from functools import reduce

from lite_core.ir import DType
from lite_cpu import vector_math
from lite_cpu.emitter import I64, Val
from lite_cpu.scalar_ops.definition import Call

__all__ = [
    "absolute",
    "bit_shift",
    "clip",
    "divide",
    "larger",
    "maximum",
    "mean",
    "minimum",
    "modulo",
    "power",
    "sign",
    "smaller",
    "total",
]


# **** signs ****


def absolute(x: Val) -> Val:
    """``|x|``; the lowest signed integer is returned unchanged."""
    if x.dtype.is_floating:
        return vector_math.absolute(x)
    return (x < 0).select(-x, x) if x.dtype.is_signed else x


def sign(x: Val) -> Val:
    """The sign of ``x``: 1, -1 or 0; NaN for NaN."""
    if x.dtype.is_floating:
        return x.ne(0.0).select(x.is_nan().select(x, vector_math.copy_sign(x.k.value(1.0, x.dtype, x.lanes), x)), 0.0)
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype) if x.dtype.is_signed else (x > 0).to(x.dtype)


# **** division ****


def divide(a: Val, b: Val) -> Val:
    """``a / b``; the quotient of integers is truncated towards zero, and 0 for a division by zero."""
    if a.dtype.is_floating:
        return a / b
    return b.eq(0).select(0, _quotient(a, _safe_divisor(a, b)))


def _safe_divisor(a: Val, b: Val) -> Val:
    """Return ``b``, but 1 where the processor would trap: for 0, and for -1 if ``a`` is the lowest integer."""
    trapping = b.eq(0)
    if a.dtype.is_signed:
        lowest = -(1 << (8 * a.dtype.itemsize - 1))
        trapping = trapping | (a.eq(lowest) & b.eq(-1))
    return trapping.select(1, b)


def _quotient(a: Val, b: Val) -> Val:
    """Return the truncated quotient of integers.

    It is computed in floats that represent the integers exactly, because processors cannot divide integer vectors.
    """
    if a.dtype.itemsize == 8:
        return a / b
    # A float with more bits than dividend and divisor never rounds a quotient up to the next integer.
    real = DType.FLOAT64 if a.dtype.itemsize == 4 else DType.FLOAT32
    return (a.to(real) / b.to(real)).to(a.dtype)


def modulo(call: Call) -> Val:
    """The remainder with the sign of the divisor, or with ``fmod`` of the dividend; 0 for integers modulo zero."""
    a, b = call[0], call[1]
    truncated = bool(call.attributes["fmod"])
    if a.dtype.is_floating:
        remainder = vector_math.fmod(a, b)
        if truncated:
            return remainder
        shifted = ((remainder < 0.0) ^ (b < 0.0)).select(remainder + b, remainder)
        return remainder.eq(0.0).select(vector_math.copy_sign(remainder, b), shifted)
    divisor = _safe_divisor(a, b)
    remainder = a - _quotient(a, divisor) * divisor
    if truncated or not a.dtype.is_signed:
        return remainder
    return (remainder.ne(0) & ((remainder ^ b) < 0)).select(remainder + b, remainder)


# **** powers ****


def power(x: Val, y: Val) -> Val:
    """``x ** y`` in the type of ``x``; integer results wrap around, and their fractions are truncated."""
    if x.dtype.is_floating:
        return vector_math.power(x, y)
    if not y.dtype.is_floating:
        whole = _whole_power(x, y.to(DType.INT64))
        return _power_below_one(x, y, whole) if y.dtype.is_signed else whole
    real = y.to(DType.FLOAT64)
    inexact = vector_math.power64(x.to(DType.FLOAT64), real)
    nearest = vector_math.round_half_even(inexact)
    # NOTE: 4 ** 0.5 must not become 1 by truncating 1.9999999999999998.
    exact = vector_math.absolute(inexact - nearest) <= vector_math.absolute(nearest) * 1e-12
    fractional = exact.select(nearest, vector_math.trunc(inexact)).to(DType.INT64).to(x.dtype)
    integer = real.to(DType.INT64)
    is_integer = integer.to(DType.FLOAT64).eq(real)
    return is_integer.select(_power_below_one(x, integer, _whole_power(x, integer)), fractional)


def _whole_power(x: Val, exponent: Val) -> Val:
    """Return the power by repeated squaring; the bits of the int64 exponent are interpreted as unsigned."""
    k = x.k
    result, square, left = k.variable(k.value(1, x.dtype, x.lanes)), k.variable(x), k.variable(exponent)
    largest = k.max_lanes(k.maximum(exponent, 0))
    leading_zeros = Val(k, k.intrinsic("llvm.ctlz.i64", I64, [largest.ir, k.constant(0, DType.BOOL).ir]), DType.INT64)
    with k.loop(0, 64 - leading_zeros):
        bits, base = left.get(), square.get()
        result.set((bits & 1).ne(0).select(result.get() * base, result.get()))
        square.set(base * base)
        left.set(bits >> 1)
    return result.get()


def _power_below_one(x: Val, exponent: Val, whole: Val) -> Val:
    """Return ``whole``, but for negative exponents the truncated reciprocal, which is 0 unless ``x`` is 1 or -1."""
    odd = (exponent & 1).ne(0)
    of_minus_one = odd.select(x, 1)
    reciprocal = x.eq(1).select(1, x.eq(-1).select(of_minus_one, 0))
    return (exponent < 0).select(reciprocal, whole)


# **** extremes and sums ****


def larger(a: Val, b: Val) -> Val:
    """The larger of two numbers; NaN if either is NaN."""
    return _propagate_nan(b, a.k.maximum(a, b))


def smaller(a: Val, b: Val) -> Val:
    """The smaller of two numbers; NaN if either is NaN."""
    return _propagate_nan(b, a.k.minimum(a, b))


def _propagate_nan(second: Val, extreme: Val) -> Val:
    # The emitter's minimum and maximum propagate a NaN of the first operand only.
    return second.is_nan().select(second, extreme) if second.dtype.is_floating else extreme


def maximum(call: Call) -> Val:
    """The largest of all operands; NaN if any is NaN."""
    return reduce(larger, call.given)


def minimum(call: Call) -> Val:
    """The smallest of all operands; NaN if any is NaN."""
    return reduce(smaller, call.given)


def total(call: Call) -> Val:
    """The sum of all operands."""
    return reduce(lambda a, b: a + b, call.given)


def mean(call: Call) -> Val:
    """The mean of all operands."""
    return total(call) / float(len(call.given))


def clip(call: Call) -> Val:
    """``min(max(x, lowest), highest)``; ``highest`` wins if it is below ``lowest``."""
    x, lowest, highest = call[0], call.optional(1), call.optional(2)
    raised = x if lowest is None else larger(x, lowest)
    return raised if highest is None else smaller(raised, highest)


# **** bits ****


def bit_shift(call: Call) -> Val:
    """``x`` shifted by ``y`` bits, filled with zeros; the result is 0 if ``y`` is not less than the width of ``x``."""
    x, y = call[0], call[1]
    shifted = x << y if call.attributes["direction"] == "LEFT" else x >> y
    return (y < 8 * x.dtype.itemsize).select(shifted, 0)
