"""Comparisons, logic and selection by a condition; all operands broadcast."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from lite_core.ir import Dim, DType
from lite_core.ops.dim_arithmetic import DimFunction, equal, less, propagate_elementwise
from lite_core.ops.dtypes import MOVED, NUMERIC
from lite_core.ops.inference import infer_broadcast, same_as_first
from lite_core.ops.registry import op

Array = np.ndarray[Any, Any]
Reference = Callable[..., Array]


def _comparison(
    name: str, on_dims: DimFunction | None, types: Iterable[DType] = NUMERIC
) -> Callable[[Reference], Reference]:
    """Declare an operator that maps two tensors of one element type to booleans."""

    def declare(reference: Reference) -> Reference:
        return op(
            name,
            "A: T, B: T -> C: bool",
            types={"T": types},
            infer=infer_broadcast,
            propagate=propagate_elementwise(reference, on_dims),
        )(reference)

    return declare


def _not(known: bool | None) -> bool | None:
    return None if known is None else not known


@_comparison("Equal", equal, MOVED)
def is_equal(a: Array, b: Array) -> Array:
    """``a == b``; NaN is not equal to anything."""
    return np.equal(a, b)


@_comparison("Less", less)
def is_less(a: Array, b: Array) -> Array:
    """``a < b``."""
    return np.less(a, b)


@_comparison("LessOrEqual", lambda a, b: _not(less(b, a)))
def is_less_or_equal(a: Array, b: Array) -> Array:
    """``a <= b``."""
    return np.less_equal(a, b)


@_comparison("Greater", lambda a, b: less(b, a))
def is_greater(a: Array, b: Array) -> Array:
    """``a > b``."""
    return np.greater(a, b)


@_comparison("GreaterOrEqual", lambda a, b: _not(less(a, b)))
def is_greater_or_equal(a: Array, b: Array) -> Array:
    """``a >= b``."""
    return np.greater_equal(a, b)


# **** logic: on booleans only, so never on dimensions ****


@_comparison("And", None, (DType.BOOL,))
def logical_and(a: Array, b: Array) -> Array:
    """True where both operands are true."""
    return np.logical_and(a, b)


@_comparison("Or", None, (DType.BOOL,))
def logical_or(a: Array, b: Array) -> Array:
    """True where at least one operand is true."""
    return np.logical_or(a, b)


@_comparison("Xor", None, (DType.BOOL,))
def logical_xor(a: Array, b: Array) -> Array:
    """True where exactly one operand is true."""
    return np.logical_xor(a, b)


def _logical_not(x: Array) -> Array:
    return np.logical_not(x)


@op("Not", "X: bool -> Y: bool", infer=same_as_first, propagate=propagate_elementwise(_logical_not))
def logical_not(x: Array) -> Array:
    """True where ``x`` is false."""
    return _logical_not(x)


# **** Where ****


def _choose(condition: bool, x: Dim, y: Dim) -> Dim:
    return x if condition else y


@op(
    "Where",
    "condition: bool, X: T, Y: T -> output: T",
    types={"T": MOVED},
    infer=infer_broadcast,
    propagate=lambda inference: propagate_elementwise(where, _choose)(inference),
)
def where(condition: Array, x: Array, y: Array) -> Array:
    """``x`` where ``condition`` is true, ``y`` elsewhere."""
    return np.where(condition, x, y)
