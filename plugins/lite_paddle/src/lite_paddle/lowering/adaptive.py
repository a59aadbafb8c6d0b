"""Adaptive pooling: bins that cover the input evenly, with sizes that may differ by one.

Bin i of n over an axis of size L is ``floor(i * L / n)`` up to ``ceil((i + 1) * L / n)``; neighbours may overlap.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension
from lite_paddle.lowering.limits import check_parts, check_table

__all__ = ["adaptive_average", "adaptive_maximum", "bins"]


def bins(size: int, count: int) -> list[tuple[int, int]]:
    """Return the begin and end of each bin of an axis of known size."""
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def adaptive_average(context: Context, x: Value, sizes: list[int]) -> Value:
    """Average over the bins: an ordinary pool where all bins have one size, else a product with averaging matrices."""
    # The mean over a box is the mean of its rows' means, as all rows of a bin have the same length.
    return _pooled(context, x, sizes, "Average", _average_axis)


def adaptive_maximum(context: Context, x: Value, sizes: list[int]) -> Value:
    """Take the maximum over the bins: an ordinary pool where all bins have one size, else one slice for each bin."""
    return _pooled(context, x, sizes, "Max", _maximum_axis)


def _pooled(
    context: Context, x: Value, sizes: list[int], kind: str, pool_axis: Callable[[Context, Value, int, int], Value]
) -> Value:
    """Pool with one ONNX operator where possible, else one axis after another."""
    if all(n == 1 for n in sizes):
        return context.node(f"Global{kind}Pool", [x])
    kernel = _even_kernel(x, sizes)
    if kernel is not None:
        return context.node(f"{kind}Pool", [x], {"kernel_shape": kernel, "strides": kernel})
    for axis, count in enumerate(sizes, start=2):
        if x.shape[axis] != count:
            x = pool_axis(context, x, axis, count)
    return x


def _even_kernel(x: Value, sizes: list[int]) -> tuple[int, ...] | None:
    kernel = []
    for size, count in zip(x.shape[2:], sizes):
        if not isinstance(size, int) or size % count:
            return None
        kernel.append(size // count)
    return tuple(kernel)


def _average_axis(context: Context, x: Value, axis: int, count: int) -> Value:
    """Multiply one axis of x, [.., L, ..], by an averaging matrix [count, L]."""
    rank = context.rank(x, "its adaptive pool depends on the size")
    matrix = _averaging_matrix(context, x, axis, count)
    if axis == rank - 2:
        return context.node("MatMul", [matrix, x])
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    product = context.node("MatMul", [context.transpose(x, order), context.transpose(matrix, [1, 0])])
    return context.transpose(product, order)


def _averaging_matrix(context: Context, x: Value, axis: int, count: int) -> Value:
    """Return a matrix [count, L] whose row i has ``1 / size`` at the elements of bin i, and zeros elsewhere."""
    size = dimension(context, x, axis)
    if isinstance(size, int):
        check_table(count, size)
        matrix = np.zeros((count, size), x.dtype.numpy)
        for row, (begin, end) in enumerate(bins(size, count)):
            matrix[row, begin:end] = 1 / (end - begin)
        return context.builder.constant(matrix)
    begins, ends = _bin_vectors(context, size, count)
    zero, one = context.scalar(0, DType.INT64), context.scalar(1, DType.INT64)
    positions = context.node("Range", [zero, context.reshape(size, []), one])
    column = context.builder.ints(1)
    begins, ends = (context.node("Unsqueeze", [v, column]) for v in (begins, ends))
    inside = context.node(
        "And",
        [context.node("GreaterOrEqual", [positions, begins]), context.node("Less", [positions, ends])],
    )
    lengths = context.cast(context.node("Sub", [ends, begins]), x.dtype)
    return context.node("Div", [context.cast(inside, x.dtype), lengths])


def _bin_vectors(context: Context, size: Value, count: int) -> tuple[Value, Value]:
    """Return begin and end of each bin, int64 [count], of an axis whose size is computed when the model runs."""
    check_table(count)
    numbers = context.builder.ints(*range(count))
    divisor = context.builder.ints(count)
    begins = context.node("Div", [context.node("Mul", [numbers, size]), divisor])
    following = context.node("Mul", [context.builder.ints(*range(1, count + 1)), size])
    ends = context.node("Div", [context.node("Add", [following, context.builder.ints(count - 1)]), divisor])
    return begins, ends


def _maximum_axis(context: Context, x: Value, axis: int, count: int) -> Value:
    check_parts(count)
    size = dimension(context, x, axis)
    axes = context.builder.ints(axis)
    if isinstance(size, int):
        bounds = [(context.builder.ints(b), context.builder.ints(e)) for b, e in bins(size, count)]
    else:
        vectors = [
            context.nodes("Split", [v], {"axis": 0, "num_outputs": count}, outputs=count)
            for v in _bin_vectors(context, size, count)
        ]
        bounds = list(zip(*vectors))
    parts = [context.node("ReduceMax", [context.node("Slice", [x, begin, end, axes]), axes]) for begin, end in bounds]
    return parts[0] if count == 1 else context.node("Concat", parts, {"axis": axis})
