"""Linear algebra: determinants, systems of equations, powers of matrices, distances, bilinear forms."""

from __future__ import annotations

import math

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp


@lowers("determinant")
def determinant(op: SourceOp, context: Context) -> None:
    context.emit(op, "Det", [context.input(op, "Input")])


@lowers("slogdeterminant")
def sign_and_log_of_determinant(op: SourceOp, context: Context) -> None:
    """Return [2, ...]: signs of determinants, and the logarithms of their sizes, from determinants in float64."""
    x = context.input(op, "Input")
    found = context.node("Det", [context.cast(x, DType.FLOAT64)])
    parts = [context.node("Sign", [found]), context.node("Log", [context.node("Abs", [found])])]
    rows = [context.node("Unsqueeze", [context.cast(part, x.dtype), context.builder.ints(0)]) for part in parts]
    context.emit(op, "Concat", rows, {"axis": 0})


def _solved(context: Context, matrix: Value, known: Value) -> Value:
    return context.node("MatMul", [context.node("Inverse", [matrix], domain="lite"), known])


def _transposed(context: Context, matrix: Value) -> Value:
    rank = context.rank(matrix, "its last two axes are exchanged")
    return context.transpose(matrix, (*range(rank - 2), rank - 1, rank - 2))


@lowers("solve")
def solve(op: SourceOp, context: Context) -> None:
    """Solve ``X @ result = Y`` for a matrix or a vector Y."""
    x, y = context.input(op, "X"), context.input(op, "Y")
    rank = context.rank(y, "it may be a vector or a matrix")
    if rank != 1 and y.shape != x.shape[:-1]:
        context.bind(op, "Out", _solved(context, x, y))
        return
    last = context.builder.ints(-1)
    result = _solved(context, x, context.node("Unsqueeze", [y, last]))
    context.bind(op, "Out", context.node("Squeeze", [result, last]))


def _with_ones(context: Context, x: Value, is_upper: bool) -> Value:
    """Replace the diagonal, and the triangle that is not read, by ones."""
    size = x.shape[-1] if x.type.rank is not None else None
    if not isinstance(size, int):
        raise Unlowerable("the diagonal of its matrix counts as ones (unitriangular), and the matrix has no fixed size")
    strict = np.triu(np.ones((size, size), bool), 1)
    mask = context.builder.constant(strict if is_upper else strict.T)
    return context.node("Where", [mask, x, context.scalar(1, x)])


@lowers("triangular_solve")
def triangular_solve(op: SourceOp, context: Context) -> None:
    """Solve ``X @ result = Y``, where only the upper or the lower triangle of X is read."""
    x, is_upper = context.input(op, "X"), bool(op.attrs["upper"])
    if op.attrs.get("unitriangular"):
        x = _with_ones(context, x, is_upper)
    x = context.node("Trilu", [x], {"upper": int(is_upper)})
    matrix = _transposed(context, x) if op.attrs.get("transpose") else x
    context.bind(op, "Out", _solved(context, matrix, context.input(op, "Y")))


@lowers("cholesky_solve")
def cholesky_solve(op: SourceOp, context: Context) -> None:
    """Solve ``A @ result = X``, where Y is the Cholesky factor of A."""
    is_upper = bool(op.attrs.get("upper"))
    factor = context.node("Trilu", [context.input(op, "Y")], {"upper": int(is_upper)})
    pair = [factor, _transposed(context, factor)]
    matrix = context.node("MatMul", pair[::-1] if is_upper else pair)
    context.bind(op, "Out", _solved(context, matrix, context.input(op, "X")))


@lowers("matrix_power")
def matrix_power(op: SourceOp, context: Context) -> None:
    """Multiply a matrix by itself, by repeated squares; a negative power is that of the inverse."""
    x, power = context.input(op, "X"), int(op.attrs["n"])
    if power == 0:
        context.bind(op, "Out", _identity(context, x))
        return
    square = context.node("Inverse", [x], domain="lite") if power < 0 else x
    result = None
    rest = abs(power)
    while True:
        if rest & 1:
            result = square if result is None else context.node("MatMul", [result, square])
        rest >>= 1
        if not rest:
            break
        square = context.node("MatMul", [square, square])
    assert result is not None, "the highest bit of a number is 1"
    context.bind(op, "Out", result)


def _identity(context: Context, x: Value) -> Value:
    """Return identity matrices in the shape of ``x``."""
    known = [d for d in x.shape if isinstance(d, int)] if x.type.rank is not None else []
    if len(known) < 2 or len(known) != x.type.rank:
        raise Unlowerable("its power 0 is the identity, of an unknown size", "export the model with paddle.eye instead")
    identity = np.broadcast_to(np.eye(known[-1], dtype=x.dtype.numpy), known)
    return context.builder.constant(np.ascontiguousarray(identity))


@lowers("dist")
def distance(op: SourceOp, context: Context) -> None:
    """Return the p-norm of all elements of ``X - Y``."""
    p = float(op.attrs["p"])
    size = context.node("Abs", [context.node("Sub", [context.input(op, "X"), context.input(op, "Y")])])
    if math.isinf(p):
        context.emit(op, "ReduceMax" if p > 0 else "ReduceMin", [size], {"keepdims": 0})
        return
    if p == 0:
        terms = context.cast(context.node("Greater", [size, context.scalar(0, size)]), size.dtype)
    else:
        terms = context.node("Pow", [size, context.scalar(p, size)])
    total = context.node("ReduceSum", [terms], {"keepdims": 0})
    context.bind(op, "Out", total if p == 0 else context.node("Pow", [total, context.scalar(1 / p, total)]))


@lowers("bilinear_tensor_product")
def bilinear(op: SourceOp, context: Context) -> None:
    """Compute ``x @ W[k] @ y + bias[k]`` for rows x [M], y [N] and each matrix W[k] [M, N]."""
    x, y, bias = context.input(op, "X"), context.input(op, "Y"), context.optional(op, "Bias")
    half = context.node("MatMul", [x, context.input(op, "Weight")])  # [K, B, N]
    sums = context.node("ReduceSum", [context.node("Mul", [half, y]), context.builder.ints(-1)], {"keepdims": 0})
    result = context.transpose(sums, (1, 0))
    context.bind(op, "Out", result if bias is None else context.node("Add", [result, bias]))
