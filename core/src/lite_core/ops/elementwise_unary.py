"""Element-wise functions of one tensor: arithmetic, rounding, exponentials, trigonometry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from lite_core.ir import DType
from lite_core.ops.dim_arithmetic import DimFunction, absolute_dim, propagate_elementwise
from lite_core.ops.dtypes import FLOATS, INTEGERS, NUMERIC, SIGNED
from lite_core.ops.error_function import error_function
from lite_core.ops.inference import same_as_first
from lite_core.ops.registry import op

Array = np.ndarray[Any, Any]
Reference = Callable[[Array], Array]


def _unary(
    name: str,
    signature: str = "input: T -> output: T",
    types: Iterable[DType] = FLOATS,
    on_dims: DimFunction | None = None,
) -> Callable[[Reference], Reference]:
    """Declare an operator without attributes whose output has the shape and element type of its input."""

    def declare(reference: Reference) -> Reference:
        return op(
            name,
            signature,
            types={"T": types},
            infer=same_as_first,
            propagate=propagate_elementwise(reference, on_dims),
        )(reference)

    return declare


# **** arithmetic ****


@_unary("Abs", "X: T -> Y: T", NUMERIC, on_dims=absolute_dim)
def absolute(x: Array) -> Array:
    """``|x|``. The lowest signed integer is unchanged, as its absolute value is not representable."""
    return np.asarray(np.abs(x))


@_unary("Neg", "X: T -> Y: T", SIGNED, on_dims=lambda a: -a)
def negative(x: Array) -> Array:
    """``-x``."""
    return np.negative(x)


@_unary("Sign", types=NUMERIC)
def sign(x: Array) -> Array:
    """1 for positive elements, -1 for negative ones, 0 for zeros, NaN for NaN."""
    return np.asarray(np.sign(x))


@_unary("Reciprocal", "X: T -> Y: T")
def reciprocal(x: Array) -> Array:
    """``1 / x``."""
    return np.asarray(np.reciprocal(x))


@_unary("Sqrt", "X: T -> Y: T")
def square_root(x: Array) -> Array:
    """The square root; NaN for negative elements."""
    return np.asarray(np.sqrt(x))


@_unary("BitwiseNot", "X: T -> Y: T", INTEGERS)
def bitwise_not(x: Array) -> Array:
    """Every bit inverted."""
    return np.asarray(np.bitwise_not(x))


# **** rounding ****


@_unary("Ceil", "X: T -> Y: T")
def ceil(x: Array) -> Array:
    """The smallest integer that is not below ``x``."""
    return np.asarray(np.ceil(x))


@_unary("Floor", "X: T -> Y: T")
def floor(x: Array) -> Array:
    """The largest integer that is not above ``x``."""
    return np.asarray(np.floor(x))


@_unary("Round", "X: T -> Y: T")
def round_half_to_even(x: Array) -> Array:
    """The nearest integer, the even one of two equally near."""
    return np.asarray(np.rint(x))


# **** exponentials ****


@_unary("Exp")
def exponential(x: Array) -> Array:
    """``e ** x``."""
    return np.asarray(np.exp(x))


@_unary("Log")
def logarithm(x: Array) -> Array:
    """The natural logarithm: -Inf for 0, NaN for negative elements."""
    return np.asarray(np.log(x))


@_unary("Erf", types=NUMERIC)
def erf(x: Array) -> Array:
    """The error function ``2/sqrt(pi) * integral of exp(-t^2) for t from 0 to x``."""
    return error_function(x).astype(x.dtype, copy=False)


# **** trigonometry, angles in radians ****


@_unary("Sin")
def sin(x: Array) -> Array:
    """Sine."""
    return np.asarray(np.sin(x))


@_unary("Cos")
def cos(x: Array) -> Array:
    """Cosine."""
    return np.asarray(np.cos(x))


@_unary("Tan")
def tan(x: Array) -> Array:
    """Tangent."""
    return np.asarray(np.tan(x))


@_unary("Asin")
def asin(x: Array) -> Array:
    """The angle in [-pi/2, pi/2] whose sine is ``x``; NaN outside [-1, 1]."""
    return np.asarray(np.arcsin(x))


@_unary("Acos")
def acos(x: Array) -> Array:
    """The angle in [0, pi] whose cosine is ``x``; NaN outside [-1, 1]."""
    return np.asarray(np.arccos(x))


@_unary("Atan")
def atan(x: Array) -> Array:
    """The angle in [-pi/2, pi/2] whose tangent is ``x``."""
    return np.asarray(np.arctan(x))


@_unary("Sinh")
def sinh(x: Array) -> Array:
    """Hyperbolic sine."""
    return np.asarray(np.sinh(x))


@_unary("Cosh")
def cosh(x: Array) -> Array:
    """Hyperbolic cosine."""
    return np.asarray(np.cosh(x))


@_unary("Tanh")
def tanh(x: Array) -> Array:
    """Hyperbolic tangent."""
    return np.asarray(np.tanh(x))


@_unary("Asinh")
def asinh(x: Array) -> Array:
    """Inverse hyperbolic sine."""
    return np.asarray(np.arcsinh(x))


@_unary("Acosh")
def acosh(x: Array) -> Array:
    """Inverse hyperbolic cosine, not negative; NaN below 1."""
    return np.asarray(np.arccosh(x))


@_unary("Atanh")
def atanh(x: Array) -> Array:
    """Inverse hyperbolic tangent: infinite at -1 and 1, NaN outside."""
    return np.asarray(np.arctanh(x))


# **** predicates ****


@op(
    "IsInf",
    "X: T -> Y: bool",
    types={"T": FLOATS},
    attributes={"detect_negative": 1, "detect_positive": 1},
    infer=same_as_first,
)
def is_inf(x: Array, *, detect_negative: int, detect_positive: int) -> Array:
    """True for infinities of the signs to detect."""
    negative_infinity = np.isneginf(x) & bool(detect_negative)
    return np.asarray(negative_infinity | (np.isposinf(x) & bool(detect_positive)))


@op("IsNaN", "X: T -> Y: bool", types={"T": FLOATS}, infer=same_as_first)
def is_nan(x: Array) -> Array:
    """True for NaN."""
    return np.asarray(np.isnan(x))
