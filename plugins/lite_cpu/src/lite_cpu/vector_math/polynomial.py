"""Polynomials by Horner's scheme."""

from __future__ import annotations

from collections.abc import Sequence

from lite_cpu.emitter import Number, Val

__all__ = ["multiply_add", "polynomial"]


def multiply_add(a: Val, b: Number, c: Number) -> Val:
    """``a * b + c``; Python numbers take the type of ``a``."""
    k = a.k
    return k.fma(a, k.value(b, a.dtype, a.lanes), k.value(c, a.dtype, a.lanes))


def polynomial(x: Val, coefficients: Sequence[float]) -> Val:
    """``coefficients[0] + coefficients[1] * x + ...``, at least two of them."""
    *rest, before_last, last = coefficients
    result = multiply_add(x, last, before_last)
    for coefficient in reversed(rest):
        result = multiply_add(result, x, coefficient)
    return result
