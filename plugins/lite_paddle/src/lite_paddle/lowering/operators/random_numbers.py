"""Random numbers. With a seed they are the same in every run, though not those that Paddle draws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.integers import element_type, int_vector
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

#: Coefficients of the inverse error function; M. Giles, "Approximating the erfinv function", GPU Computing Gems (2011):
#: for w = -log(1 - x * x) below 5 a polynomial of w - 2.5, above of sqrt(w) - 3.
_CENTER = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
    0.246640727, 1.50140941,
)  # fmt: skip
_TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
    1.00167406, 2.83297682,
)  # fmt: skip


def _seed(op: SourceOp) -> dict[str, Any]:
    """Return the attribute seed; Paddle's 0 means other numbers in every run."""
    seed = int(op.attrs.get("seed") or 0)
    return {"seed": float(seed)} if seed else {}


def _shaped_like(op: SourceOp, context: Context) -> Value:
    """Return a tensor of zeros of the operator's shape, which may be computed."""
    shape = int_vector(op, context, "shape", "ShapeTensor", "ShapeTensorList")
    return context.node("Expand", [context.scalar(0, DType.FLOAT32), shape])


def _float(op: SourceOp) -> DType:
    return element_type(op.attrs.get("dtype"), DType.FLOAT32)


def _uniform(op: SourceOp, context: Context, like: Value, low: float, high: float, dtype: DType) -> Value:
    return context.node("RandomUniformLike", [like], {"low": low, "high": high, "dtype": dtype, **_seed(op)})


@lowers("gaussian_random")
def gaussian_random(op: SourceOp, context: Context) -> None:
    attributes = {"mean": float(op.attrs["mean"]), "scale": float(op.attrs["std"]), "dtype": _float(op), **_seed(op)}
    context.emit(op, "RandomNormalLike", [_shaped_like(op, context)], attributes)


@lowers("uniform_random")
def uniform_random(op: SourceOp, context: Context) -> None:
    if int(op.attrs.get("diag_num") or 0):
        raise Unlowerable("it sets a diagonal")
    low, high = float(op.attrs["min"]), float(op.attrs["max"])
    context.bind(op, "Out", _uniform(op, context, _shaped_like(op, context), low, high, _float(op)))


@lowers("truncated_gaussian_random")
def truncated_gaussian_random(op: SourceOp, context: Context) -> None:
    """Draw normal numbers within ``a`` and ``b`` standard deviations, by the inverse of their distribution."""
    mean, std = float(op.attrs["mean"]), float(op.attrs["std"])
    low, high = (math.erf(float(op.attrs[name]) / math.sqrt(2)) for name in ("a", "b"))
    drawn = _uniform(op, context, _shaped_like(op, context), low, high, DType.FLOAT64)
    scaled = context.node("Mul", [inverse_error(context, drawn), context.scalar(std * math.sqrt(2), drawn)])
    context.bind(op, "Out", context.cast(context.node("Add", [scaled, context.scalar(mean, scaled)]), _float(op)))


def inverse_error(context: Context, x: Value) -> Value:
    """Return the number whose error function is ``x``, to about 1e-7."""
    one = context.scalar(1, x)
    w = context.node("Neg", [context.node("Log", [context.node("Sub", [one, context.node("Mul", [x, x])])])])

    def polynomial(coefficients: tuple[float, ...], y: Value) -> Value:
        total = context.scalar(coefficients[0], x)
        for coefficient in coefficients[1:]:
            total = context.node("Add", [context.node("Mul", [total, y]), context.scalar(coefficient, x)])
        return total

    center = polynomial(_CENTER, context.node("Sub", [w, context.scalar(2.5, x)]))
    tail = polynomial(_TAIL, context.node("Sub", [context.node("Sqrt", [w]), context.scalar(3, x)]))
    is_center = context.node("Less", [w, context.scalar(5, x)])
    return context.node("Mul", [context.node("Where", [is_center, center, tail]), x])


@lowers("randint")
def randint(op: SourceOp, context: Context) -> None:
    """Draw integers from ``low`` up to, not including, ``high``."""
    low, high = int(op.attrs["low"]), int(op.attrs["high"])
    if low >= high:
        raise Unlowerable(f"it draws integers from {low} below {high}")
    drawn = _uniform(op, context, _shaped_like(op, context), float(low), float(high), DType.FLOAT64)
    # NOTE: rounding may give the upper bound itself.
    whole = context.node("Min", [context.node("Floor", [drawn]), context.scalar(high - 1, drawn)])
    context.bind(op, "Out", context.cast(whole, element_type(op.attrs.get("dtype"), DType.INT64)))


@lowers("randperm")
def randperm(op: SourceOp, context: Context) -> None:
    """Draw a permutation: the order of random numbers."""
    count = int(op.attrs["n"])
    like = context.builder.constant(np.zeros(count, np.float32))
    numbers = _uniform(op, context, like, 0.0, 1.0, DType.FLOAT64)
    order = context.nodes("TopK", [numbers, context.builder.ints(count)], {"axis": 0}, outputs=2)[1]
    context.bind(op, "Out", context.cast(order, element_type(op.attrs.get("dtype"), DType.INT64)))


@lowers("bernoulli")
def bernoulli(op: SourceOp, context: Context) -> None:
    context.emit(op, "Bernoulli", [context.input(op, "X")])


@lowers("sampling_id")
def sampling_id(op: SourceOp, context: Context) -> None:
    """Draw a column for each row of probabilities [N, C]: where their sums pass a random number."""
    x = context.any_input(op, "X", "0")
    low, high = (float(op.attrs.get(name, default)) for name, default in (("min", 0.0), ("max", 1.0)))
    first = context.node("Slice", [x, *(context.builder.ints(n) for n in (0, 1, 1))])
    sums = context.node("CumSum", [x, context.scalar(1, DType.INT64)])
    passed = context.node("Less", [_uniform(op, context, first, low, high, x.dtype), sums])
    # ArgMax returns the first column that is passed; the last one if rounding lets none be.
    is_last = context.node("Not", [context.node("ReduceMax", [passed, context.builder.ints(1)], {"keepdims": 0})])
    found = context.node("ArgMax", [context.cast(passed, DType.INT32)], {"axis": 1, "keepdims": 0})
    width = context.node("Shape", [x], {"start": 1, "end": 2})
    last = context.node("Sub", [width, context.builder.ints(1)])
    context.emit(op, "Where", [is_last, last, found])
