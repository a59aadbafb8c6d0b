"""Element-wise arithmetic on two or more tensors, broadcast against each other."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import numpy as np

from lite_core.ir import Dim, DType, Shape
from lite_core.ops.dim_arithmetic import (
    DimFunction,
    divide_dims,
    maximum_dims,
    minimum_dims,
    modulo_dims,
    propagate_elementwise,
)
from lite_core.ops.dtypes import FLOATS, INTEGERS, NUMERIC, UNSIGNED
from lite_core.ops.inference import Inference, fail, infer_broadcast, same_as_first
from lite_core.ops.registry import AttributeSpec, op

Array = np.ndarray[Any, Any]
Reference = Callable[..., Array]


def _binary(
    name: str, types: Iterable[DType] = NUMERIC, on_dims: DimFunction | None = None
) -> Callable[[Reference], Reference]:
    """Declare an operator without attributes on two tensors of one element type."""

    def declare(reference: Reference) -> Reference:
        return op(
            name,
            "A: T, B: T -> C: T",
            types={"T": types},
            infer=infer_broadcast,
            propagate=propagate_elementwise(reference, on_dims),
        )(reference)

    return declare


# **** arithmetic ****


@_binary("Add", on_dims=operator.add)
def add(a: Array, b: Array) -> Array:
    """``a + b``. Integers wrap around."""
    return np.add(a, b)


@_binary("Sub", on_dims=operator.sub)
def subtract(a: Array, b: Array) -> Array:
    """``a - b``. Integers wrap around."""
    return np.subtract(a, b)


@_binary("Mul", on_dims=operator.mul)
def multiply(a: Array, b: Array) -> Array:
    """``a * b``. Integers wrap around."""
    return np.multiply(a, b)


@_binary("Div", on_dims=divide_dims)
def divide(a: Array, b: Array) -> Array:
    """``a / b``; for integers the quotient is rounded towards zero, and 0 where ``b`` is 0."""
    return divide_towards_zero(a, b) if a.dtype.kind in "iu" else np.true_divide(a, b)


def divide_towards_zero(a: Array, b: Array) -> Array:
    """Return the integer quotient as in C: -7 / 2 is -3. A division by zero gives 0."""
    quotient = np.floor_divide(a, b)
    rounded_down = (quotient * b != a) & ((a < 0) != (b < 0)) & (b != 0)
    return np.asarray(quotient + rounded_down.astype(quotient.dtype))


@op(
    "Mod",
    "A: T, B: T -> C: T",
    types={"T": NUMERIC},
    attributes={"fmod": 0},
    infer=infer_broadcast,
    propagate=lambda inference: propagate_elementwise(modulo, modulo_dims)(inference),
)
def modulo(a: Array, b: Array, *, fmod: int) -> Array:
    """The remainder of ``a / b``, with the sign of ``b``, or with ``fmod`` that of ``a``.

    ONNX requires ``fmod`` for floats; without it, floats follow the same rule as integers.
    """
    return np.asarray(np.fmod(a, b) if fmod else np.mod(a, b))


@op(
    "Pow",
    "X: T, Y: T1 -> Z: T",
    types={"T": (DType.INT32, DType.INT64, *FLOATS), "T1": NUMERIC},
    infer=infer_broadcast,
    propagate=lambda inference: propagate_elementwise(power)(inference),
)
def power(x: Array, y: Array) -> Array:
    """``x ** y`` in the element type of ``x``. Integers wrap around; their negative powers are truncated."""
    if x.dtype.kind != "i":
        return np.asarray(np.power(x, y)).astype(x.dtype)
    if y.dtype.kind == "f" or (y.size and np.min(y) < 0):
        # NOTE: NumPy raises an error for negative powers of integers.
        return np.trunc(np.power(x.astype(np.float64), y.astype(np.float64))).astype(x.dtype)
    return np.power(x.astype(np.int64), y.astype(np.int64)).astype(x.dtype)


# **** any number of tensors ****


def _infer_variadic(inference: Inference) -> list[Shape | None]:
    if not inference.types:
        raise fail("needs at least one input, has 0")
    return infer_broadcast(inference)


@op(
    "Max",
    "data_0: T* -> max: T",
    types={"T": NUMERIC},
    infer=_infer_variadic,
    propagate=lambda inference: propagate_elementwise(maximum_of, maximum_dims)(inference),
)
def maximum_of(*data: Array) -> Array:
    """The largest element at each position; NaN if any element there is NaN."""
    return reduce(np.maximum, data)


@op(
    "Min",
    "data_0: T* -> min: T",
    types={"T": NUMERIC},
    infer=_infer_variadic,
    propagate=lambda inference: propagate_elementwise(minimum_of, minimum_dims)(inference),
)
def minimum_of(*data: Array) -> Array:
    """The smallest element at each position; NaN if any element there is NaN."""
    return reduce(np.minimum, data)


@op("Sum", "data_0: T* -> sum: T", types={"T": FLOATS}, infer=_infer_variadic)
def sum_of(*data: Array) -> Array:
    """The sum of all tensors."""
    return reduce(np.add, data)


@op("Mean", "data_0: T* -> mean: T", types={"T": FLOATS}, infer=_infer_variadic)
def mean_of(*data: Array) -> Array:
    """The mean of all tensors."""
    return np.true_divide(reduce(np.add, data), len(data))


# **** Clip ****


def _infer_clip(inference: Inference) -> list[Shape | None]:
    for index, name in ((1, "min"), (2, "max")):
        shape = inference.shape(index) if inference.has(index) else None
        # ONNX requires a scalar; many exporters write a vector of one element, which means the same.
        if shape is not None and (len(shape) > 1 or (shape and isinstance(shape[0], int) and shape[0] != 1)):
            listed = ", ".join(map(str, shape))
            raise fail(f"{name} must be a scalar, has shape [{listed}]")
    return same_as_first(inference)


def _clip_dim(x: Dim, minimum: Dim | None, maximum: Dim | None = None) -> Dim:
    raised = x if minimum is None else maximum_dims(x, minimum)
    return raised if maximum is None else minimum_dims(raised, maximum)


def _propagate_clip(inference: Inference) -> Array | None:
    x, result = inference.value(0), propagate_elementwise(clip, _clip_dim)(inference)
    # A bound in a vector of one element must not add an axis to a scalar.
    return None if x is None or result is None else result.reshape(x.shape)


@op(
    "Clip",
    "input: T, min: T?, max: T? -> output: T",
    types={"T": NUMERIC},
    infer=_infer_clip,
    propagate=_propagate_clip,
)
def clip(x: Array, minimum: Array | None = None, maximum: Array | None = None) -> Array:
    """``min(max(x, minimum), maximum)``, which is ``maximum`` if ``maximum < minimum``; NaN stays NaN."""
    if minimum is not None:
        x = np.maximum(x, minimum.reshape(()))
    return x if maximum is None else np.minimum(x, maximum.reshape(()))


# **** bits ****


@_binary("BitwiseAnd", INTEGERS)
def bitwise_and(a: Array, b: Array) -> Array:
    """The bits that are set in both operands."""
    return np.asarray(np.bitwise_and(a, b))


@_binary("BitwiseOr", INTEGERS)
def bitwise_or(a: Array, b: Array) -> Array:
    """The bits that are set in at least one operand."""
    return np.asarray(np.bitwise_or(a, b))


@_binary("BitwiseXor", INTEGERS)
def bitwise_xor(a: Array, b: Array) -> Array:
    """The bits that are set in exactly one operand."""
    return np.asarray(np.bitwise_xor(a, b))


@op(
    "BitShift",
    "X: T, Y: T -> Z: T",
    types={"T": UNSIGNED},
    attributes={"direction": AttributeSpec("str", required=True, choices=("LEFT", "RIGHT"))},
    infer=infer_broadcast,
)
def bit_shift(x: Array, y: Array, *, direction: str) -> Array:
    """The bits of ``x`` shifted by ``y`` positions; zeros are shifted in."""
    return np.asarray(np.left_shift(x, y) if direction == "LEFT" else np.right_shift(x, y))
