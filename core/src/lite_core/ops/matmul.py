"""Products of real and of quantized matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import DType, Shape, fresh_dim
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, broadcast_shapes, fail
from lite_core.ops.registry import op
from lite_core.ops.rounding import round_to, wrap_to_int32
from lite_core.ops.shape_checks import differ, format_shape

Array = np.ndarray[Any, Any]

_MATRIX_TYPES = (*FLOATS, DType.INT32, DType.INT64, DType.UINT32, DType.UINT64)
_BYTES = (DType.INT8, DType.UINT8)


def multiply_matrices(a: Array, b: Array) -> Array:
    """Multiply like ``np.matmul``, after copying operands whose layout BLAS does not support."""
    return np.asarray(np.matmul(_for_blas(a), _for_blas(b)))


def _for_blas(a: Array) -> Array:
    # NOTE: without a unit stride along rows or columns NumPy may fall back to its own loops, which are
    # a hundred times slower than the copy.
    if a.ndim >= 2 and a.itemsize not in a.strides[-2:]:
        return np.ascontiguousarray(a)
    return a


# **** Gemm ****


def _matrix(shape: Shape | None, transposed: int, what: str) -> Shape:
    if shape is None:
        return (fresh_dim("rows"), fresh_dim("columns"))
    if len(shape) != 2:
        raise fail(f"{what} must be a matrix, is {format_shape(shape)}")
    return shape[::-1] if transposed else shape


def _infer_gemm(inference: Inference) -> list[Shape | None]:
    attributes = inference.attributes
    a = _matrix(inference.shape(0), attributes["transA"], "A")
    b = _matrix(inference.shape(1), attributes["transB"], "B")
    if differ(a[1], b[0]):
        raise fail(
            f"A' {format_shape(a)} and B' {format_shape(b)} (transA={attributes['transA']}, "
            f"transB={attributes['transB']}) do not multiply: {a[1]} columns, {b[0]} rows"
        )
    result = (a[0], b[1])
    if inference.has(2):
        c = inference.shape(2)
        spread = broadcast_shapes(c, result)
        if spread is not None and (len(spread) != 2 or any(differ(m, n) for m, n in zip(spread, result))):
            raise fail(f"C {format_shape(c)} must broadcast to {format_shape(result)}")
    return [result]


@op(
    "Gemm",
    "A: T, B: T, C: T? -> Y: T",
    types={"T": _MATRIX_TYPES},
    attributes={"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0},
    infer=_infer_gemm,
)
def gemm(a: Array, b: Array, c: Array | None, *, alpha: float, beta: float, transA: int, transB: int) -> Array:
    """``alpha * A' @ B' + beta * C``; A' and B' are matrices, transposed with transA and transB, and C broadcasts."""
    y = multiply_matrices(a.T if transA else a, b.T if transB else b)
    if alpha != 1:
        y = y * alpha
    if c is not None and beta != 0:
        y = y + (c if beta == 1 else c * beta)
    return y


# **** MatMul ****


def product_shape(a: Shape | None, b: Shape | None) -> Shape | None:
    """Return the shape of ``np.matmul``: vectors lose their axis, axes before the last two broadcast.

    Raises:
        GraphError: an operand is a scalar, or the shapes do not multiply.
    """
    for shape, what in ((a, "A"), (b, "B")):
        if shape == ():
            raise fail(f"{what} is a scalar; a matrix product needs vectors, matrices, or stacks of them")
    if a is None or b is None:
        return None
    inner_a, inner_b = a[-1], b[-2] if len(b) > 1 else b[0]
    if differ(inner_a, inner_b):
        raise fail(f"A {format_shape(a)} and B {format_shape(b)} do not multiply: {inner_a} columns, {inner_b} rows")
    stack = broadcast_shapes(a[:-2], b[:-2])
    assert stack is not None
    return (*stack, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


@op(
    "MatMul",
    "A: T, B: T -> Y: T",
    types={"T": _MATRIX_TYPES},
    infer=lambda inference: [product_shape(inference.shape(0), inference.shape(1))],
)
def matmul(a: Array, b: Array) -> Array:
    """The matrix product of the last two axes, as ``numpy.matmul``."""
    return multiply_matrices(a, b)


# **** quantized products ****


def _per_row(parameter: Array) -> Array:
    """Reshape a scale or zero point of the left operand or the result; a vector has one element per row."""
    if parameter.size == 1:
        return parameter.reshape(())
    return parameter[:, None] if parameter.ndim == 1 else parameter


def _per_column(parameter: Array) -> Array:
    """Reshape a scale or zero point of the right operand; a vector has one element per column."""
    return parameter.reshape(()) if parameter.size == 1 else parameter


def _check_parameter(inference: Inference, index: int, operand: Shape | None, what: str, *, rows: bool) -> None:
    if not inference.has(index) or operand is None:
        return
    shape = inference.shape(index)
    if shape is None or all(isinstance(d, int) and d == 1 for d in shape):
        return
    per = "row" if rows else "column"
    if len(shape) == 1:
        length = (operand[-2] if len(operand) > 1 else 1) if rows else operand[-1]
        if differ(shape[0], length):
            raise fail(f"{what} must be a scalar or one element per {per}, [{length}]; it is {format_shape(shape)}")
        return
    expected = (*operand[:-1], 1) if rows else (*operand[:-2], 1, operand[-1])
    if len(shape) != len(expected) or any(differ(m, n) for m, n in zip(shape, expected)):
        raise fail(
            f"{what} must be a scalar or one element per {per}, {format_shape(expected)}; it is {format_shape(shape)}"
        )


def _exact_product(a: Array, a_zero_point: Array | None, b: Array, b_zero_point: Array | None) -> Array:
    # Exact: products of bytes and their sums are far below 2**53, and BLAS supports float64.
    left, right = a.astype(np.float64), b.astype(np.float64)
    if a_zero_point is not None:
        left = left - _per_row(a_zero_point)
    if b_zero_point is not None:
        right = right - _per_column(b_zero_point)
    return multiply_matrices(left, right)


def _infer_matmul_integer(inference: Inference) -> list[Shape | None]:
    a, b = inference.shape(0), inference.shape(1)
    result = product_shape(a, b)
    _check_parameter(inference, 2, a, "a_zero_point", rows=True)
    _check_parameter(inference, 3, b, "b_zero_point", rows=False)
    return [result]


@op(
    "MatMulInteger",
    "A: T1, B: T2, a_zero_point: T1?, b_zero_point: T2? -> Y: int32",
    types={"T1": _BYTES, "T2": _BYTES},
    infer=_infer_matmul_integer,
)
def matmul_integer(a: Array, b: Array, a_zero_point: Array | None, b_zero_point: Array | None) -> Array:
    """``(A - a_zero_point) @ (B - b_zero_point)`` with 32-bit sums, which wrap around."""
    return wrap_to_int32(_exact_product(a, a_zero_point, b, b_zero_point))


def _infer_qlinear_matmul(inference: Inference) -> list[Shape | None]:
    a, b = inference.shape(0), inference.shape(3)
    result = product_shape(a, b)
    for index, operand, what, rows in (
        (1, a, "a_scale", True),
        (2, a, "a_zero_point", True),
        (4, b, "b_scale", False),
        (5, b, "b_zero_point", False),
        (6, result, "y_scale", True),
        (7, result, "y_zero_point", True),
    ):
        _check_parameter(inference, index, operand, what, rows=rows)
    return [result]


@op(
    "QLinearMatMul",
    "a: T1, a_scale: TS, a_zero_point: T1, b: T2, b_scale: TS, b_zero_point: T2, "
    "y_scale: TS, y_zero_point: T3 -> y: T3",
    types={
        "T1": _BYTES,
        "T2": _BYTES,
        "T3": _BYTES,
        "TS": (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16),
    },
    infer=_infer_qlinear_matmul,
)
def qlinear_matmul(
    a: Array,
    a_scale: Array,
    a_zero_point: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
) -> Array:
    """The product of quantized matrices with a quantized result.

    ``y = saturate(round((a - a_zero_point) @ (b - b_zero_point) * a_scale * b_scale / y_scale) +
    y_zero_point)``; scales and zero points are scalars, or have one element per row for ``a`` and ``y``
    and one per column for ``b``.
    """
    sums = _exact_product(a, a_zero_point, b, b_zero_point)
    scaled = sums * _per_row(a_scale) * _per_column(b_scale) / _per_row(y_scale)
    return round_to(scaled, _per_row(y_zero_point), y_zero_point.dtype)
