"""Activations: several operations on each element, for which NumPy passes over memory several times; and exp."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lite_core.ir import Array
from lite_numba.backend import backend
from lite_numba.kernels.numpy_calls import FLOATS

_POLYNOMIAL = tuple(1 / math.factorial(k) for k in range(12, -1, -1))
#: Its upper and lower bits: a product of the upper ones with an integer of 11 bits is exact.
_LOG_2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
#: Adding it rounds to an integer, which is then in the lowest bits of the sum.
_ROUNDING = 1.5 * 2.0**52


def exp(x):
    """Return ``e ** x`` in float64, as ``2 ** n * e ** r`` with ``|r| <= log(2) / 2``; 0 below -708.

    Its relative error is below 1e-15. LLVM computes this arithmetic in vectors; math.exp is a call for each element.
    """
    x = np.float64(x)
    bounded = -708.0 if x < -708.0 else x
    shifted = min(bounded, 709.0) / (_LOG_2[0] + _LOG_2[1]) + _ROUNDING
    n = shifted - _ROUNDING
    r = bounded - n * _LOG_2[0] - n * _LOG_2[1]
    power = _POLYNOMIAL[0]
    for factor in _POLYNOMIAL[1:]:
        power = factor + power * r
    exponent = np.float64(shifted).view(np.int64) + 1023
    return 0.0 if x < -708.0 else power * np.int64(exponent << 52).view(np.float64)


def _vectors(x: Array, *, out: Array, **attributes: Any) -> tuple[Any, ...]:
    return x.reshape(-1), tuple(attributes.values()), out.reshape(-1)


def _activation(op: str, domain: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that makes a kernel of a function of one element and the operator's attributes."""

    def register(of_element: Callable[..., Any]) -> Callable[..., Any]:
        def loop(x, attributes, out):
            for i in range(x.size):
                out[i] = of_element(x[i], *attributes)

        loop.__name__ = of_element.__name__
        backend.kernel(op, dtypes=FLOATS, domain=domain, prepare=_vectors)(loop)
        return of_element

    return register


@_activation("LeakyRelu")
def leaky_relu(x, alpha):
    return x if x >= 0 else alpha * x


@_activation("ThresholdedRelu")
def thresholded_relu(x, alpha):
    return 0 if x <= alpha else x


@_activation("HardSigmoid")
def hard_sigmoid(x, alpha, beta):
    y = alpha * x + beta
    return 0 if y < 0 else 1 if y > 1 else y


@_activation("HardSwish")
def hard_swish(x):
    return x * hard_sigmoid(x, 1 / 6, 0.5)


@_activation("Sigmoid")
def sigmoid(x):
    decay = exp(-abs(x))  # cannot overflow
    return (decay if x < 0 else 1) / (1 + decay)


@_activation("Swish", domain="lite")
def swish(x, beta):
    return x * sigmoid(beta * x)


@_activation("Mish")
def mish(x):
    e = exp(min(x, 20)) if x == x else x  # above 20, the factor is 1
    return x * (e * (e + 2)) / (e * (e + 2) + 2)  # tanh(log(1 + e)), without a logarithm


@_activation("Erf")
def erf(x):
    return math.erf(x)


@_activation("Gelu")
def gelu(x, approximate):
    if approximate == "tanh":
        z = 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return x * sigmoid(z)  # 1 + tanh(z / 2) is 2 * sigmoid(z)
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))
