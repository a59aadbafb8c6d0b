"""Activation functions: element-wise, with parameters fixed by the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import pi, sqrt
from typing import Any

import numpy as np

from lite_core.ir import DType, Shape
from lite_core.ops.dtypes import FLOATS, NUMERIC, SIGNED
from lite_core.ops.error_function import error_function
from lite_core.ops.inference import Inference, fail, same_as_first
from lite_core.ops.registry import choice, op
from lite_core.ops.shape_checks import differ, format_shape

Array = np.ndarray[Any, Any]
Reference = Callable[..., Array]

# Constants of "Self-Normalizing Neural Networks" (Klambauer et al., 2017), with the digits that ONNX gives.
_SELU_ALPHA = 1.67326319217681884765625
_SELU_GAMMA = 1.05070102214813232421875


def _activation(
    name: str,
    types: Iterable[DType] = FLOATS,
    attributes: Mapping[str, Any] | None = None,
    domain: str = "",
    signature: str = "X: T -> Y: T",
) -> Callable[[Reference], Reference]:
    """Declare an operator whose output has the shape and element type of its only input."""
    return op(name, signature, types={"T": types}, attributes=attributes, infer=same_as_first, domain=domain)


# **** piecewise linear ****


@_activation("Relu", SIGNED)
def relu(x: Array) -> Array:
    """``max(x, 0)``; NaN stays NaN."""
    return np.maximum(x, np.zeros((), x.dtype))


@_activation("LeakyRelu", attributes={"alpha": 0.01})
def leaky_relu(x: Array, *, alpha: float) -> Array:
    """``x`` where it is not negative, ``alpha * x`` elsewhere."""
    return np.where(x >= 0, x, alpha * x)


def _infer_prelu(inference: Inference) -> list[Shape | None]:
    shape, slope = inference.shape(0), inference.shape(1)
    if shape is not None and slope is not None:
        matched = zip(shape[len(shape) - len(slope) :], slope)
        if len(slope) > len(shape) or any(s != 1 and differ(d, s) for d, s in matched):
            raise fail(
                f"slope of shape {format_shape(slope)} does not broadcast to X of shape {format_shape(shape)}; "
                "aligned at the right, each of its dimensions must be 1 or that of X"
            )
    return same_as_first(inference)


@op(
    "PRelu",
    "X: T, slope: T -> Y: T",
    types={"T": (DType.INT32, DType.INT64, DType.UINT32, DType.UINT64, *FLOATS)},
    infer=_infer_prelu,
)
def prelu(x: Array, slope: Array) -> Array:
    """``x`` where it is not negative, ``slope * x`` elsewhere; ``slope`` broadcasts to the shape of ``x``."""
    return np.where(x >= 0, x, slope * x)


@_activation("ThresholdedRelu", attributes={"alpha": 1.0})
def thresholded_relu(x: Array, *, alpha: float) -> Array:
    """``x`` where it is above ``alpha``, 0 elsewhere; NaN stays NaN."""
    return np.where(x <= alpha, 0, x)


@_activation(
    "Shrink",
    tuple(d for d in NUMERIC if d is not DType.BFLOAT16),
    {"bias": 0.0, "lambd": 0.5},
    signature="input: T -> output: T",
)
def shrink(x: Array, *, bias: float, lambd: float) -> Array:
    """``x + bias`` below ``-lambd``, ``x - bias`` above ``lambd``, 0 between; NaN stays NaN."""
    between = (x >= -lambd) & (x <= lambd)
    return np.where(between, 0, np.where(x < -lambd, x + bias, x - bias)).astype(x.dtype)


@_activation("HardSigmoid", attributes={"alpha": 0.2, "beta": 0.5})
def hard_sigmoid(x: Array, *, alpha: float, beta: float) -> Array:
    """``max(0, min(1, alpha * x + beta))``; NaN stays NaN."""
    return np.clip(alpha * x + beta, 0, 1)


@_activation("HardSwish")
def hard_swish(x: Array) -> Array:
    """``x * max(0, min(1, x / 6 + 0.5))``."""
    return np.asarray(x * hard_sigmoid(x, alpha=1 / 6, beta=0.5))


# **** exponential ****

# The negative branch is computed from min(x, 0), so that large positive elements do not overflow there.


@_activation("Elu", attributes={"alpha": 1.0})
def elu(x: Array, *, alpha: float) -> Array:
    """``x`` where it is positive, ``alpha * (exp(x) - 1)`` elsewhere."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


@_activation("Selu", attributes={"alpha": _SELU_ALPHA, "gamma": _SELU_GAMMA})
def selu(x: Array, *, alpha: float, gamma: float) -> Array:
    """``gamma * x`` where it is positive, ``gamma * alpha * (exp(x) - 1)`` elsewhere."""
    return np.asarray(gamma * elu(x, alpha=alpha))


@_activation("Celu", (DType.FLOAT32,), {"alpha": 1.0})
def celu(x: Array, *, alpha: float) -> Array:
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``."""
    return np.asarray(np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha)))


@_activation("Sigmoid")
def sigmoid(x: Array) -> Array:
    """``1 / (1 + exp(-x))``."""
    # exp(-|x|) cannot overflow. For negative x, numerator and denominator are multiplied by exp(x).
    decay = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, decay, 1) / (1 + decay))


@_activation("Swish", attributes={"beta": 1.0}, domain="lite")
def swish(x: Array, *, beta: float) -> Array:
    """``x * sigmoid(beta * x)``; with ``beta`` 1 also known as SiLU."""
    return np.asarray(x * sigmoid(beta * x))


@_activation("Softplus")
def softplus(x: Array) -> Array:
    """``log(1 + exp(x))``, without overflow for large ``x``."""
    return np.asarray(np.logaddexp(x, np.zeros((), x.dtype)))


@_activation("Mish")
def mish(x: Array) -> Array:
    """``x * tanh(softplus(x))``."""
    return np.asarray(x * np.tanh(softplus(x)))


@_activation("Softsign", signature="input: T -> output: T")
def softsign(x: Array) -> Array:
    """``x / (1 + |x|)``."""
    return np.asarray(x / (1 + np.abs(x)))


@_activation("Gelu", attributes={"approximate": choice("none", "tanh")})
def gelu(x: Array, *, approximate: str) -> Array:
    """``x`` times the distribution function of the standard normal distribution at ``x``.

    Exactly ``0.5 * x * (1 + erf(x / sqrt(2)))``; with ``approximate="tanh"``
    ``0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))``.
    """
    # Computed in float64: for x well below 0, the sum cancels nearly all digits.
    wide = x.astype(np.float64)
    if approximate == "tanh":
        inner = np.tanh(sqrt(2 / pi) * (wide + 0.044715 * wide**3))
    else:
        inner = error_function(wide / sqrt(2))
    return np.asarray(0.5 * wide * (1 + inner))
