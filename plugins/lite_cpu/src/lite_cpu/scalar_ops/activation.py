"""Activation functions, and floating-point functions that the opset also defines for integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lite_core.ir import DType
from lite_cpu import vector_math
from lite_cpu.emitter import Val
from lite_cpu.scalar_ops.conversion import convert
from lite_cpu.scalar_ops.definition import Call

__all__ = [
    "celu",
    "elu",
    "erf",
    "gelu",
    "hard_sigmoid",
    "hard_swish",
    "leaky_relu",
    "mish",
    "prelu",
    "refuse_celu",
    "relu",
    "selu",
    "shrink",
    "softsign",
    "thresholded_relu",
]


# **** piecewise linear ****


def relu(x: Val) -> Val:
    """``max(x, 0)``; NaN stays NaN."""
    return x.k.maximum(x, 0)


def prelu(x: Val, slope: Val) -> Val:
    """``x`` where it is not negative, else ``slope * x``."""
    return (x >= 0).select(x, slope * x) if x.dtype.is_signed else x


def leaky_relu(call: Call) -> Val:
    """``x`` where it is not negative, else ``alpha * x``."""
    x, alpha = call[0], float(call.attributes["alpha"])
    return (x >= 0.0).select(x, x * alpha)


def thresholded_relu(call: Call) -> Val:
    """0 where ``x`` is not greater than ``alpha``, else ``x``; NaN stays NaN."""
    x, alpha = call[0], float(call.attributes["alpha"])
    return (x <= alpha).select(0.0, x)


def shrink(call: Call) -> Val:
    """``x + bias`` below ``-lambd``, ``x - bias`` above ``lambd``, 0 between; integers are computed in float64."""
    bias, threshold = call.attributes["bias"], call.attributes["lambd"]
    x = call[0] if call[0].dtype.is_floating else call[0].to(DType.FLOAT64)
    shrunk = (x < -threshold).select(x + bias, (x <= threshold).select(0.0, x - bias))
    return convert(shrunk, call[0].dtype)


def hard_sigmoid(call: Call) -> Val:
    """``max(0, min(1, alpha * x + beta))``."""
    return _ramp(call[0], call.attributes["alpha"], call.attributes["beta"])


def hard_swish(x: Val) -> Val:
    """``x * max(0, min(1, x / 6 + 1 / 2))``."""
    return x * _ramp(x, 1 / 6, 0.5)


def _ramp(x: Val, slope: float, offset: float) -> Val:
    """``slope * x + offset``, limited to [0, 1]."""
    return x.k.minimum(x.k.maximum(vector_math.multiply_add(x, slope, offset), 0.0), 1.0)


def softsign(x: Val) -> Val:
    """``x / (1 + |x|)``."""
    return x / (vector_math.absolute(x) + 1.0)


# **** exponential ****


def elu(call: Call) -> Val:
    """``x`` where it is not negative, else ``alpha * (e^x - 1)``."""
    return _elu(call[0], call.attributes["alpha"])


def selu(call: Call) -> Val:
    """``gamma`` times the ELU of ``alpha``."""
    return _elu(call[0], call.attributes["alpha"]) * float(call.attributes["gamma"])


def _elu(x: Val, alpha: float) -> Val:
    decayed = vector_math.expm1_of_nonpositive(x.k.minimum(x, 0.0))
    return (x > 0.0).select(x, decayed * alpha)


def celu(call: Call) -> Val:
    """``max(0, x) + min(0, alpha * (e^(x / alpha) - 1))``."""
    x, alpha = call[0], call.attributes["alpha"]
    negative = x.k.minimum(x, 0.0)
    return (x > 0.0).select(x, vector_math.expm1_of_nonpositive(negative * (1.0 / alpha)) * alpha)


def refuse_celu(attributes: Mapping[str, Any], inputs: Sequence[DType | None]) -> str | None:
    """Return why a Celu cannot be computed, or None."""
    alpha = attributes["alpha"]
    return None if alpha > 0 else f"alpha must be positive, is {alpha}"


def mish(x: Val) -> Val:
    """``x * tanh(log(1 + e^x))``, which is ``x * n / (n + 2)`` with ``n = e^x * (e^x + 2)``."""
    # From 20 on the fraction is 1 in float32; the limit keeps the square of the exponential from overflowing.
    grown = vector_math.exp(x.k.minimum(x, 20.0))
    n = grown * (grown + 2.0)
    return x * (n / (n + 2.0))


def gelu(call: Call) -> Val:
    """``x * P(X <= x)`` for a standard normal X, computed with erf or approximated with tanh."""
    return (vector_math.gelu_tanh if call.attributes["approximate"] == "tanh" else vector_math.gelu)(call[0])


def erf(x: Val) -> Val:
    """The error function; of integers it is truncated: 1 from 6 on, where it is 1 in float64, -1 up to -6, else 0."""
    if x.dtype.is_floating:
        return vector_math.erf(x)
    one = (x > 5).to(x.dtype)
    return one - (x < -5).to(x.dtype) if x.dtype.is_signed else one
