"""Subnormal numbers, which a backend may flush to zero, in inputs and in results; all other elements must be right.

A result that is normal only if a subnormal input is not flushed, such as the reciprocal of one, may have any value.
A subnormal result is rounded like any other, halves to even, or flushed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    activation,
    comparison,
    convolution,
    elementwise_binary,
    elementwise_unary,
    matmul,
    normalization,
    pooling,
    reduction,
    softmax,
)
from lite_conformance.cases.tensors import Array, Tensor, const, ints, normal, t, uniform, values
from lite_conformance.judge.tolerances import smallest_normal
from lite_core.ir import DType

#: A type that is computed in, and one that is only stored.
_DTYPES = ("float32", "float16")


def _subnormals(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return standard normal numbers, half of which are replaced by subnormal ones of either sign."""
    array = normal(random, shape, dtype)
    fractions = random.uniform(-0.06, 0.06, shape) * smallest_normal(dtype)
    return np.where(random.random(shape) < 0.5, array, np.asarray(fractions).astype(dtype.numpy))


def _is_subnormal(*arrays: Array) -> Array:
    found: Any = False
    for array in arrays:
        least = smallest_normal(DType.of(array.dtype))
        wide = array.astype(np.float64)
        found = found | ((wide != 0) & (np.abs(wide) < least))
    return np.asarray(found)


def _add(op: str, *inputs: Tensor | None, label: str = "", **attributes: Any) -> None:
    attributes.setdefault("dtypes", _DTYPES)
    table_of(op)(f"subnormal{label}", *inputs, **attributes)


_x, _y = t(9, 37, init=_subnormals), t(9, 37, init=_subnormals)
for _op in ("Add", "Sub", "Mul", "Max", "Min", "Sum", "Mean"):
    _add(_op, _x, _y)
_add("Mul", _x, values(0.5, constant=True), label=",constant")
_add("Div", _x, _y, unspecified=lambda a, b: _is_subnormal(a) | _is_subnormal(b))
_add("Div", t(257, init=_subnormals), values(2, constant=True), label=",constant")
_add("Clip", _x, values(-0.5, constant=True), values(0.5, constant=True))
_SMOOTH = (
    "Sigmoid",
    "Tanh",
    "Erf",
    "Gelu",
    "Softplus",
    "Mish",
    "Softsign",
    "Exp",
    "Sin",
    "Cos",
    "Tan",
    "Sinh",
    "Asinh",
)
for _op in (*_SMOOTH, "Relu", "HardSwish", "Elu", "Selu", "Celu", "Abs", "Neg", "Atan"):
    _add(_op, t(257, init=_subnormals))
for _op in ("LeakyRelu", "HardSigmoid"):
    _add(_op, t(257, init=_subnormals), alpha=0.25)
# The rest decides by the sign or the magnitude of the subnormal number.
for _op in ("Sqrt", "Log", "Reciprocal", "Sign", "Ceil", "Floor", "Round"):
    _add(_op, t(257, init=_subnormals), unspecified=_is_subnormal)
for _op in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
    _add(_op, _x, values([[0]] * 4 + [[0.25]] * 5), unspecified=lambda a, b: _is_subnormal(a))
for _op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1"):
    _add(_op, _x, ints(1))
_add("Softmax", _x)
_add("MatMul", _x, const(37, 5, init=uniform(-0.2, 0.2)))
_add("Gemm", _x, const(37, 5, init=uniform(-0.2, 0.2)), const(5))
_add("Conv", t(1, 3, 6, 7, init=_subnormals), const(4, 3, 3, 3, init=uniform(-0.2, 0.2)))
_add("MaxPool", t(1, 3, 6, 7, init=_subnormals), kernel_shape=(2, 2))
_add("AveragePool", t(1, 3, 6, 7, init=_subnormals), kernel_shape=(2, 2))
