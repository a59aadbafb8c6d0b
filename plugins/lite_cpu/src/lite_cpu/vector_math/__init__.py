"""Mathematical functions of float32 scalars and vectors in generated code.

Every function takes and returns a :class:`~lite_cpu.emitter.Val` of any number of lanes and calls no library, so it
can be used in the innermost loop of a kernel on any machine. Only :func:`fmod` and :func:`power` have branches. NaN
stays NaN, infinities give the limits, and results below the smallest normal float32 may be flushed to zero.

The polynomials are minimax fits of the relative error, computed with the Remez exchange algorithm in 40-digit
arithmetic (rational functions: with iteratively reweighted least squares), then rounded to float32. The errors in the
docstrings are in units in the last place (ULP) of normal float32 results against float64. They are the larger of the
errors with and without fused multiply-add, found on evenly spaced bit patterns (at least every 127th float32).
"""

from lite_cpu.vector_math.error_function import erf, gelu, gelu_tanh
from lite_cpu.vector_math.exponential import (
    exp,
    exp_of_nonpositive,
    expm1_of_nonpositive,
    log,
    sigmoid,
    silu,
    softplus,
    tanh,
)
from lite_cpu.vector_math.polynomial import multiply_add, polynomial
from lite_cpu.vector_math.rounding import (
    absolute,
    ceil,
    copy_sign,
    floor,
    fmod,
    round_half_even,
    round_to_int32,
    sqrt,
    trunc,
)
from lite_cpu.vector_math.trigonometric import acos, asin, atan, cos, sin, tan
from lite_cpu.vector_math.wide import acosh, asinh, atanh, cosh, power, power64, sinh

__all__ = [
    "absolute",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "copy_sign",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp_of_nonpositive",
    "expm1_of_nonpositive",
    "floor",
    "fmod",
    "gelu",
    "gelu_tanh",
    "log",
    "multiply_add",
    "polynomial",
    "power",
    "power64",
    "round_half_even",
    "round_to_int32",
    "sigmoid",
    "silu",
    "sin",
    "sinh",
    "softplus",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]
