"""Element-wise comparison of a result with the truth, and its error measures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_conformance.judge.tolerances import epsilon, smallest_normal
from lite_core.ir import DType

__all__ = ["Array", "Expected", "Measured", "allowed", "compare", "merge"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected value of an output.

    Attributes:
        name: the output's name.
        dtype: its element type.
        array: the truth: float64 for floating outputs, the output's own type otherwise.
        magnitude: ``atol`` is relative to it: one number, or one for each element.
        every_bit: True if zeros must have the expected sign, and subnormal numbers the expected value.
        unspecified: True for each element that may have any value; None if there is none.
        or_zero: True if an element whose expected value is subnormal must have this value or be zero.
    """

    name: str
    dtype: DType
    array: Array
    magnitude: float | Array = 0.0
    every_bit: bool = False
    unspecified: Array | None = None
    or_zero: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """Error measures of results: the largest over all elements of all outputs of all examples.

    Attributes:
        max_abs: largest absolute error.
        max_rel: largest error relative to the expected element, where that is not 0.
        max_ulp: largest error in units in the last place of the output's element type.
        nmse: mean squared error over mean squared expected value.
        worst: output and element with the largest error: ``"y[0, 3, 1]: 1.25, expected 1.5"``.
        required_rtol: the smallest ``rtol`` that passes, given the ``atol`` in force.
        required_atol: the smallest ``atol`` that passes, given the ``rtol`` in force.
        wrong: number of elements out of tolerance.
        elements: number of elements compared.
    """

    max_abs: float = 0.0
    max_rel: float = 0.0
    max_ulp: float = 0.0
    nmse: float = 0.0
    worst: str = ""
    required_rtol: float = 0.0
    required_atol: float = 0.0
    wrong: int = 0
    elements: int = 0


def allowed(expected: Expected, rtol: float, atol: float) -> tuple[Array, Array]:
    """Return the truth in the range of the element type, and the largest error allowed for each element.

    The limit is infinity for an unspecified element, NaN where zeros must have the expected sign, and negative where
    only the truth and zero are allowed.
    """
    if not expected.dtype.is_floating:
        return expected.array, _anything(np.zeros(expected.array.shape), expected)
    truth = _in_range(expected)
    size = np.where(np.isfinite(truth), np.abs(truth), 0.0)
    limits = np.maximum(atol * np.asarray(expected.magnitude, np.float64), rtol * size)
    limits = np.full(truth.shape, np.nan) if expected.every_bit else np.maximum(limits, _negligible(expected))
    limits = np.where(_may_be_zero(expected, truth), -1.0, limits)
    return truth, _anything(limits, expected)


def compare(actual: Array, expected: Expected, rtol: float, atol: float) -> Measured:
    """Compare one output, which must have the expected shape and element type.

    NaN equals NaN, and an infinity the same infinity. A truth beyond the range of the element type counts as an
    infinity. Elements of other than floating types are compared exactly. Unspecified elements always pass.
    """
    if not expected.dtype.is_floating:
        return _compare_exact(actual, expected)
    with np.errstate(all="ignore"):
        truth = _in_range(expected)
        found = actual.astype(np.float64)
        finite = np.isfinite(truth) & np.isfinite(found)
        same = (truth == found) | (np.isnan(truth) & np.isnan(found))
        if expected.every_bit:
            same &= np.isnan(truth) | (np.signbit(truth) == np.signbit(found))
        same |= _may_be_zero(expected, truth) & (found == 0)
        if expected.unspecified is not None:
            same |= expected.unspecified
        error = np.where(same, 0.0, np.where(finite & (found != truth), np.abs(found - truth), np.inf))
        size = np.where(np.isfinite(truth), np.abs(truth), 0.0)
        # Subnormal numbers may be flushed to zero, in results and in intermediate values.
        error = np.where(error <= _negligible(expected), 0.0, error)
        magnitude = np.broadcast_to(np.asarray(expected.magnitude, np.float64), truth.shape)
        wrong = error > np.maximum(atol * magnitude, rtol * size)
        relative = _ratio(error, size)
        absolute = _ratio(error, magnitude)
        # The unit in the last place of m * 2**e, with m in [0.5, 1), is epsilon * 2**(e - 1).
        exponent = np.frexp(np.maximum(size, smallest_normal(expected.dtype)))[1]
        last_place = np.ldexp(epsilon(expected.dtype), exponent - 1)
        return Measured(
            max_abs=_largest(error),
            max_rel=_largest(relative[size > 0]) if (size > 0).any() else 0.0,
            max_ulp=_largest(error / last_place),
            nmse=_nmse(error, size),
            worst=_worst(np.where(wrong, np.maximum(error, 1e-300), 0) if wrong.any() else error, actual, expected),
            required_rtol=_required(error, size, relative, error > atol * magnitude),
            required_atol=_required(error, magnitude, absolute, error > rtol * size),
            wrong=int(wrong.sum()),
            elements=int(truth.size),
        )


def merge(parts: Sequence[Measured]) -> Measured:
    """Return the worst of several comparisons, measure by measure."""
    if not parts:
        return Measured()
    worst = max(parts, key=lambda m: (m.wrong > 0, m.max_abs, bool(m.worst)))
    return Measured(
        max_abs=max(m.max_abs for m in parts),
        max_rel=max(m.max_rel for m in parts),
        max_ulp=max(m.max_ulp for m in parts),
        nmse=max(m.nmse for m in parts),
        worst=worst.worst,
        required_rtol=max(m.required_rtol for m in parts),
        required_atol=max(m.required_atol for m in parts),
        wrong=sum(m.wrong for m in parts),
        elements=sum(m.elements for m in parts),
    )


def _in_range(expected: Expected) -> Array:
    """Return the truth in float64; an infinity where it is beyond the range of the element type."""
    with np.errstate(all="ignore"):
        rounded = expected.array.astype(expected.dtype.numpy).astype(np.float64)
        return np.where(np.isfinite(rounded), expected.array.astype(np.float64), rounded)


def _negligible(expected: Expected) -> float:
    """Return the largest error that flushing subnormal numbers causes; 0 where they must keep their values."""
    return 0.0 if expected.every_bit or expected.or_zero else smallest_normal(expected.dtype)


def _may_be_zero(expected: Expected, truth: Array) -> Array:
    """Return True for each element for which only the truth and zero are allowed.

    These include the smallest normal number: what rounds to it may be flushed before it is rounded.
    """
    return np.asarray(expected.or_zero & (np.abs(truth) <= smallest_normal(expected.dtype)))


def _anything(limits: Array, expected: Expected) -> Array:
    """Return the limits of errors, infinite for unspecified elements."""
    return limits if expected.unspecified is None else np.where(expected.unspecified, np.inf, limits)


def _compare_exact(actual: Array, expected: Expected) -> Measured:
    wrong = actual != expected.array
    if expected.unspecified is not None:
        wrong &= ~expected.unspecified
    count = int(wrong.sum())
    error = np.abs(actual.astype(np.float64) - expected.array.astype(np.float64))
    error = np.where(wrong, np.maximum(error, 1.0), 0.0)  # different int64 numbers may be equal in float64
    required = math.inf if count else 0.0
    return Measured(
        max_abs=_largest(error),
        max_rel=_largest(_ratio(error, np.abs(expected.array.astype(np.float64)))),
        nmse=_nmse(error, np.abs(expected.array.astype(np.float64))),
        worst=_worst(error, actual, expected),
        required_rtol=required,
        required_atol=required,
        wrong=count,
        elements=int(wrong.size),
    )


def _ratio(error: Array, size: Array) -> Array:
    with np.errstate(all="ignore"):
        ratio: Array = np.where(error == 0, 0.0, np.where(size > 0, error / size, np.inf))
    return ratio


def _required(error: Array, size: Array, ratio: Array, chosen: Array) -> float:
    """Return the smallest factor whose rounded product with each chosen size is at least the error."""
    short = ratio * size < error
    return _largest(np.where(short, np.nextafter(ratio, np.inf), ratio)[chosen])


def _largest(array: Array) -> float:
    return float(array.max()) if array.size else 0.0


def _nmse(error: Array, size: Array) -> float:
    if not error.size or not error.any():
        return 0.0
    scale = max(_largest(size), 1e-300)  # keeps squares of large and tiny numbers in range
    power = float(np.mean((size / scale) ** 2))
    return float(np.mean((error / scale) ** 2)) / power if power else math.inf


def _worst(error: Array, actual: Array, expected: Expected) -> str:
    if not error.size or not error.any():
        return ""
    index = np.unravel_index(int(np.argmax(error)), error.shape)
    shown = f"[{', '.join(str(int(i)) for i in index)}]" if index else ""
    return f"{expected.name}{shown}: {_shown(actual[index])}, expected {_shown(expected.array[index])}"


def _shown(element: Any) -> str:
    return f"{float(element):.9g}" if DType.of(element.dtype).is_floating else str(element)
