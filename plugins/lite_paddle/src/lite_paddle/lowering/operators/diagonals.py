"""Diagonals of matrices, extracted or inserted: diagonal, trace, diag, diag_v2, diag_embed."""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, dimensions, shape_vector, size_vector
from lite_paddle.lowering.integers import Element, add_elements, normalized
from lite_paddle.lowering.limits import check_table
from lite_paddle.lowering.operators.constant import filled
from lite_paddle.lowering.operators.reduction import reduced
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp


def _coordinates(context: Context, length: Element, offset: int) -> Value:
    """Return row and column of each element of a diagonal, int64 [length, 2]. Positive offsets lie to the right."""
    corner = np.array([max(-offset, 0), max(offset, 0)], np.int64)
    if isinstance(length, int):
        check_table(length, 2)
        return context.builder.constant(np.arange(max(length, 0))[:, None] + corner)
    zero, one = (context.scalar(n, DType.INT64) for n in (0, 1))
    steps = context.node("Range", [zero, context.reshape(length, []), one])
    column = context.node("Unsqueeze", [steps, context.builder.ints(1)])
    return context.node("Add", [column, context.builder.constant(corner)])


def _diagonal(context: Context, x: Value, offset: int, axis1: int, axis2: int) -> Value:
    """Extract the diagonal over two axes, as the new last axis."""
    rank = context.rank(x, "a diagonal over two of its axes is taken")
    axis1, axis2 = normalized([axis1, axis2], rank)
    if axis1 == axis2:
        raise Unlowerable(f"its two axes are both {axis1}")
    rows = add_elements(context, dimension(context, x, axis1), min(offset, 0))
    columns = add_elements(context, dimension(context, x, axis2), -max(offset, 0))
    length: Element
    if isinstance(rows, int) and isinstance(columns, int):
        length = max(min(rows, columns), 0)
    else:
        vectors = [size_vector(context, e) for e in (rows, columns)]
        length = context.node("Max", [context.node("Min", vectors), context.builder.ints(0)])
    matrices = context.transpose(x, [axis1, axis2, *(a for a in range(rank) if a not in (axis1, axis2))])
    found = context.node("GatherND", [matrices, _coordinates(context, length, offset)])
    return context.transpose(found, [*range(1, rank - 1), 0])


def _diagonal_of_input(op: SourceOp, context: Context) -> Value:
    offset, axis1, axis2 = (int(op.attrs[name]) for name in ("offset", "axis1", "axis2"))
    return _diagonal(context, context.input(op, "Input"), offset, axis1, axis2)


@lowers("diagonal")
def diagonal(op: SourceOp, context: Context) -> None:
    context.bind(op, "Out", _diagonal_of_input(op, context))


@lowers("trace")
def trace(op: SourceOp, context: Context) -> None:
    context.bind(op, "Out", reduced(context, "ReduceSum", _diagonal_of_input(op, context), [-1], False))


def _embed_diagonal(context: Context, x: Value, offset: int, padding: float) -> Value:
    """Make the first axis of x the diagonal of two new first axes, with ``padding`` in all other elements."""
    length = dimension(context, x, 0)
    size = add_elements(context, length, abs(offset))
    shape = shape_vector(context, [size, size, *dimensions(context, x, 1, len(x.shape))])
    empty = filled(context, shape, np.full(1, padding).astype(x.dtype.numpy))
    return context.node("ScatterND", [empty, _coordinates(context, length, offset), x])


@lowers("diag", "diag_v2")
def diag(op: SourceOp, context: Context) -> None:
    """Make a diagonal matrix from a vector, or extract the diagonal of a matrix."""
    x, offset = context.any_input(op, "X", "Diagonal"), int(op.attrs.get("offset", 0))
    rank = context.rank(x, "diag does different things to vectors and matrices")
    if rank not in (1, 2):
        raise Unlowerable(f"its input has rank {rank}, expected 1 or 2")
    if rank == 2:
        context.bind(op, "Out", _diagonal(context, x, offset, 0, 1))
    else:
        context.bind(op, "Out", _embed_diagonal(context, x, offset, float(op.attrs.get("padding_value", 0))))


@lowers("diag_embed")
def diag_embed(op: SourceOp, context: Context) -> None:
    """Make the last axis a diagonal over the axes ``dim1`` and ``dim2`` of the result, with zeros elsewhere."""
    x, attrs = context.input(op, "Input"), op.attrs
    rank = context.rank(x, "its last axis becomes a diagonal")
    dim1, dim2 = normalized([int(attrs["dim1"]), int(attrs["dim2"])], rank + 1)
    if dim1 == dim2:
        raise Unlowerable(f"its two dimensions are both {dim1}")
    matrices = _embed_diagonal(context, context.transpose(x, [rank - 1, *range(rank - 1)]), int(attrs["offset"]), 0)
    others = iter(range(2, rank + 1))
    order = [0 if axis == dim1 else 1 if axis == dim2 else next(others) for axis in range(rank + 1)]
    context.bind(op, "Out", context.transpose(matrices, order))
