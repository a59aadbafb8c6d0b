"""Tolerances of results, by kind of operator and element type.

An element passes if ``|actual - expected| <= max(atol * magnitude, rtol * |expected|)``. The maximum is stricter
than NumPy's ``allclose``, which adds the two terms. Both tolerances are multiples of the element type's epsilon.
The magnitude depends on the kind of operator:

========== ============================= ==============================================================
kind       examples                      magnitude
========== ============================= ==============================================================
MOVED      Transpose, Gather, Concat     nothing is tolerated, not even another sign of zero
EXACT      Relu, Max, all integers       nothing is tolerated
ROUNDED    Cast, Mul of subnormal sizes  nothing is tolerated, but subnormal results may be zero
ARITHMETIC Add, Div, Sqrt                0: only the relative error counts
RELATIVE   Exp, Pow                      0: for functions that span many magnitudes
FUNCTION   Tanh, Erf, Log                1
SUM        Conv, MatMul, ReduceSum       the same sum over the absolute values of its terms, element by
                                         element: the factor in the classic bound for a dot product,
                                         ``|fl(x.y) - x.y| <= gamma_n |x|.|y|`` (Higham, Accuracy and
                                         Stability of Numerical Algorithms, section 3.1)
SCALED     Softmax, LayerNormalization   the largest finite expected element of the output
GRAPH      a few operators in a row      the same, with larger tolerances
NETWORK    whole models                  the same, with even larger tolerances
========== ============================= ==============================================================

Errors up to the smallest normal number count as zero, except in MOVED and ROUNDED: flushing subnormal numbers is
allowed.
"""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType

__all__ = [
    "ARITHMETIC",
    "EXACT",
    "FUNCTION",
    "GRAPH",
    "MOVED",
    "NETWORK",
    "RELATIVE",
    "ROUNDED",
    "SCALED",
    "SUM",
    "Numerics",
    "Tolerance",
    "default_tolerance",
    "epsilon",
    "smallest_normal",
]


@dataclass(frozen=True, slots=True)
class Numerics:
    """The numerical properties of a kind of operator.

    Attributes:
        name: name for reports.
        wide: ``(rtol, atol)`` for float32 and float64, in epsilons.
        half: the same for float16 and bfloat16, whose sums are expected to be accumulated in float32.
        magnitude: ``atol`` is relative to it: ``"none"``, ``"one"``, ``"terms"`` or ``"tensor"``.
        truth: ``"float64"``: the reference in float64 is the truth. ``"native"``: the reference in the
            case's own type is the truth, because the operator rounds, compares or only moves elements.
        every_bit: True if zeros must keep their signs, and subnormal numbers their values.
        or_zero: True if a subnormal result must be the expected number or zero.
    """

    name: str
    wide: tuple[float, float]
    half: tuple[float, float]
    magnitude: str
    truth: str = "float64"
    every_bit: bool = False
    or_zero: bool = False


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The largest error of a result: ``|error| <= max(atol * magnitude, rtol * |expected|)``.

    Attributes:
        rtol: relative to each expected element.
        atol: relative to the magnitude of the case, see above.
        source: ``"default"``, or the file in which the backend's package sets another tolerance.
        loosened: True if the backend's package allows more than the default.
        default: ``(rtol, atol)`` without the package's settings.
        reason: the package's reason for its setting.
    """

    rtol: float
    atol: float
    source: str = "default"
    loosened: bool = False
    default: tuple[float, float] = (0.0, 0.0)
    reason: str = ""


MOVED = Numerics("moved", (0, 0), (0, 0), "none", "native", every_bit=True)
EXACT = Numerics("exact", (0, 0), (0, 0), "none", "native")
ROUNDED = Numerics("rounded", (0, 0), (0, 0), "none", "native", or_zero=True)
ARITHMETIC = Numerics("arithmetic", (4, 0), (2, 0), "none")
RELATIVE = Numerics("relative", (32, 0), (4, 0), "none")
FUNCTION = Numerics("function", (32, 32), (4, 4), "one")
SUM = Numerics("sum", (32, 32), (4, 4), "terms")
SCALED = Numerics("scaled", (64, 64), (6, 6), "tensor")
GRAPH = Numerics("graph", (256, 256), (8, 8), "tensor")
NETWORK = Numerics("network", (1000, 1000), (60, 60), "tensor")

_EPSILON = {DType.FLOAT64: 2.0**-52, DType.FLOAT32: 2.0**-23, DType.FLOAT16: 2.0**-10, DType.BFLOAT16: 2.0**-7}
_SMALLEST_NORMAL = {
    DType.FLOAT64: 2.0**-1022,
    DType.FLOAT32: 2.0**-126,
    DType.FLOAT16: 2.0**-14,
    DType.BFLOAT16: 2.0**-126,
}


def epsilon(dtype: DType) -> float:
    """Return the distance from 1 to the next larger number; 0 for types that are exact."""
    return _EPSILON.get(dtype, 0.0)


def smallest_normal(dtype: DType) -> float:
    """Return the smallest positive normal number; 0 for types that are exact."""
    return _SMALLEST_NORMAL.get(dtype, 0.0)


def default_tolerance(numerics: Numerics, dtype: DType) -> tuple[float, float]:
    """Return ``(rtol, atol)`` of a kind of operator for an element type."""
    factors = numerics.half if dtype.is_half else numerics.wide
    return factors[0] * epsilon(dtype), factors[1] * epsilon(dtype)
