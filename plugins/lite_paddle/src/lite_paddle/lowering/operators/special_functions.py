"""Special functions of one tensor: digamma, the inverse of the error function, Bessel functions."""

from __future__ import annotations

import math

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.operators.random_numbers import inverse_error
from lite_paddle.lowering.registry import lowers
from lite_paddle.source import SourceOp

#: Arguments are raised by this many steps, where the asymptotic series is exact to 1e-12.
_STEPS = 8
#: Coefficients of x^-2, x^-4, ... of the digamma function: M. Abramowitz and I. Stegun, Handbook of Mathematical
#: Functions (1964), 6.3.18.
_SERIES = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132)


@lowers("digamma")
def digamma(op: SourceOp, context: Context) -> None:
    """Compute the derivative of ``log gamma(x)`` in float64; below 0.5, that of ``1 - x`` minus pi / tan(pi x)."""
    original = context.input(op, "X")
    x = context.cast(original, DType.FLOAT64)
    one, half, pi = (context.scalar(n, x) for n in (1.0, 0.5, math.pi))
    is_low = context.node("Less", [x, half])
    y = context.node("Where", [is_low, context.node("Sub", [one, x]), x])
    steps = [context.node("Add", [y, context.scalar(n, x)]) for n in range(1, _STEPS + 1)]
    z = steps[-1]
    inverse = context.node("Reciprocal", [context.node("Mul", [z, z])])
    tail = _polynomial(context, list(_SERIES), inverse)
    total = context.node("Add", [context.node("Log", [z]), context.node("Mul", [tail, inverse])])
    total = context.node("Sub", [total, context.node("Div", [half, z])])
    for step in (y, *steps[:-1]):
        total = context.node("Sub", [total, context.node("Reciprocal", [step])])
    # The distance to the nearest integer keeps the digits of the tangent.
    distance = context.node("Mul", [pi, context.node("Sub", [x, context.node("Round", [x])])])
    mirrored = context.node("Sub", [total, context.node("Div", [pi, context.node("Tan", [distance])])])
    context.bind(op, "Out", context.cast(context.node("Where", [is_low, mirrored, total]), original.dtype))


@lowers("erfinv")
def inverse_error_function(op: SourceOp, context: Context) -> None:
    """Compute it in float64; it is infinite at -1 and 1 and, as in Paddle, beyond."""
    original = context.input(op, "X")
    x = context.cast(original, DType.FLOAT64)
    is_end = context.node("GreaterOrEqual", [context.node("Abs", [x]), context.scalar(1, x)])
    infinite = context.node("Mul", [x, context.scalar(np.inf, x)])
    inner = context.node("Where", [is_end, context.scalar(0, x), x])
    result = context.node("Where", [is_end, infinite, inverse_error(context, inner)])
    context.bind(op, "Out", context.cast(result, original.dtype))


@lowers("rint")
def round_to_even(op: SourceOp, context: Context) -> None:
    result = context.node("Round", [context.any_input(op, "x", "0")])
    context.bind(op, "out", result)
    context.bind(op, "0", result)


# **** modified Bessel functions of the first kind ****

#: Up to this size the power series is taken, above it the asymptotic one; both are exact to 1e-8 there.
_NEAR = 16.0
_NEAR_TERMS, _FAR_TERMS = 40, 10


@lowers("i0", "i0e", "i1", "i1e")
def bessel(op: SourceOp, context: Context) -> None:
    """Compute I0 or I1 in float64, or (``e``) times ``exp(-|x|)``.

    Source of both series: M. Abramowitz and I. Stegun, Handbook of Mathematical Functions (1964), 9.6.10 and 9.7.1.
    """
    order, is_scaled = int(op.type[1]), op.type.endswith("e")
    original = context.any_input(op, "x", "0")
    x = context.cast(original, DType.FLOAT64)
    size, limit = context.node("Abs", [x]), context.scalar(_NEAR, x)
    near, far = context.node("Min", [size, limit]), context.node("Max", [size, limit])
    quarter = context.node("Mul", [context.node("Mul", [near, near]), context.scalar(0.25, x)])
    powers = [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(_NEAR_TERMS)]
    below = _polynomial(context, powers, quarter)
    if order:
        below = context.node("Mul", [below, context.node("Mul", [near, context.scalar(0.5, x)])])
    falling = [1.0]
    for k in range(1, _FAR_TERMS):
        falling.append(falling[-1] * ((2 * k - 1) ** 2 - 4 * order**2) / (8 * k))
    above = _polynomial(context, falling, context.node("Reciprocal", [far]))
    root = context.node("Sqrt", [context.node("Mul", [far, context.scalar(2 * math.pi, x)])])
    above = context.node("Div", [above, root])
    if is_scaled:
        below = context.node("Mul", [below, context.node("Exp", [context.node("Neg", [near])])])
    else:
        above = context.node("Mul", [above, context.node("Exp", [far])])
    result = context.node("Where", [context.node("Greater", [size, limit]), above, below])
    if order:
        result = context.node("Mul", [result, context.node("Sign", [x])])
    result = context.cast(result, original.dtype)
    context.bind(op, "out", result)
    context.bind(op, "0", result)


def _polynomial(context: Context, coefficients: list[float], x: Value) -> Value:
    """Evaluate a polynomial, its constant first."""
    total = context.scalar(coefficients[-1], x)
    for coefficient in reversed(coefficients[:-1]):
        total = context.node("Add", [context.node("Mul", [total, x]), context.scalar(coefficient, x)])
    return total
