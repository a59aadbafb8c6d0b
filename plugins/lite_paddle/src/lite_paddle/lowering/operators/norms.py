"""Bounds of norms, inverses of matrices, and the logarithm of the gamma function."""

from __future__ import annotations

import math

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.integers import normalized
from lite_paddle.lowering.registry import lowers
from lite_paddle.source import SourceOp

#: Lanczos' coefficients for g = 7; P. Godfrey, "A note on the computation of the convergent Lanczos complex Gamma
#: approximation" (2001). The error is below 1e-14.
_G = 7.0
_LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip


@lowers("renorm")
def renorm(op: SourceOp, context: Context) -> None:
    """Scale each slice along an axis whose p-norm is above ``max_norm`` down to it."""
    x, p, most = context.input(op, "X"), float(op.attrs["p"]), float(op.attrs["max_norm"])
    rank = context.rank(x, "its axis is counted from the end")
    (axis,) = normalized([int(op.attrs["axis"])], rank)
    others = context.builder.ints(*(a for a in range(rank) if a != axis))
    powers = context.node("Pow", [context.node("Abs", [x]), context.scalar(p, x)])
    total = context.node("ReduceSum", [powers, others], {"keepdims": 1})
    norm = context.node("Pow", [total, context.scalar(1 / p, x)])
    limit = context.scalar(most, x)
    factor = context.node("Div", [limit, context.node("Add", [norm, context.scalar(1e-7, x)])])
    is_above = context.node("Greater", [norm, limit])
    factor = context.node("Where", [is_above, factor, context.scalar(1, x)])
    context.emit(op, "Mul", [x, factor])


@lowers("spectral_norm")
def spectral_norm(op: SourceOp, context: Context) -> None:
    """Divide a weight, as a matrix with the axis ``dim`` as its rows, by its greatest singular value.

    It is found by power iteration from the vectors ``U`` [rows] and ``V`` [columns].
    """
    weight = context.input(op, "Weight")
    rank = context.rank(weight, "one of its axes has the rows")
    (axis,) = normalized([int(op.attrs["dim"])], rank)
    matrix = context.transpose(weight, [axis, *(a for a in range(rank) if a != axis)])
    matrix = context.node("Flatten", [matrix], {"axis": 1})
    swapped = context.transpose(matrix, (1, 0))
    u, v = (context.reshape(context.input(op, slot), [-1, 1]) for slot in ("U", "V"))

    def unit(vector: Value) -> Value:
        norm = context.node("ReduceL2", [vector], {"keepdims": 0})
        return context.node("Div", [vector, context.node("Add", [norm, context.scalar(float(op.attrs["eps"]), norm)])])

    for _ in range(int(op.attrs["power_iters"])):
        v = unit(context.node("MatMul", [swapped, u]))
        u = unit(context.node("MatMul", [matrix, v]))
    product = context.node("MatMul", [matrix, v])
    greatest = context.node("ReduceSum", [context.node("Mul", [u, product])], {"keepdims": 0})
    context.emit(op, "Div", [weight, greatest])


@lowers("inverse")
def inverse(op: SourceOp, context: Context) -> None:
    context.emit(op, "Inverse", [context.input(op, "Input")], domain="lite", slot="Output")


@lowers("lgamma", "gammaln")
def log_gamma(op: SourceOp, context: Context) -> None:
    """Compute ``log |gamma(x)|`` in float64, because near 1 and 2 its terms cancel.

    Below 0.5 it is ``log(pi / |sin(pi x)|) - log |gamma(1 - x)|``. At 0 and the integers below it is infinite.
    """
    original = context.any_input(op, "X", "x")
    x = context.cast(original, DType.FLOAT64)
    one, half, pi = (context.scalar(n, x) for n in (1.0, 0.5, math.pi))
    is_low = context.node("Less", [x, half])
    y = context.node("Sub", [context.node("Where", [is_low, context.node("Sub", [one, x]), x]), one])
    total = context.scalar(_LANCZOS[0], x)
    for number, coefficient in enumerate(_LANCZOS[1:], 1):
        divisor = context.node("Add", [y, context.scalar(number, x)])
        total = context.node("Add", [total, context.node("Div", [context.scalar(coefficient, x), divisor])])
    t = context.node("Add", [y, context.scalar(_G + 0.5, x)])
    power = context.node("Mul", [context.node("Add", [y, half]), context.node("Log", [t])])
    constant = context.scalar(0.5 * math.log(2 * math.pi), x)
    logarithm = context.node("Add", [context.node("Log", [total]), constant])
    above = context.node("Add", [context.node("Sub", [power, t]), logarithm])
    # The distance to the nearest integer keeps the digits of the sine.
    distance = context.node("Sub", [x, context.node("Round", [x])])
    sine = context.node("Abs", [context.node("Sin", [context.node("Mul", [pi, distance])])])
    below = context.node("Sub", [context.node("Log", [context.node("Div", [pi, sine])]), above])
    result = context.node("Where", [is_low, below, above])
    infinity = context.scalar(np.inf, x)
    is_infinite = context.node("Equal", [context.node("Abs", [x]), infinity])
    result = context.node("Where", [is_infinite, infinity, result])
    result = context.cast(result, original.dtype)
    context.bind(op, "Out", result)
    context.bind(op, "out", result)


@lowers("polygon_box_transform")
def polygon_box_transform(op: SourceOp, context: Context) -> None:
    """Turn offsets of corners [batch, 2 * corners, height, width] into positions, four pixels for each cell."""
    x = context.input(op, "Input")
    height, width = (context.node("Shape", [x], {"start": a, "end": a + 1}) for a in (2, 3))
    zero, one, four = (context.scalar(n, DType.INT64) for n in (0, 1, 4))

    def positions(size: Value, shape: tuple[int, ...]) -> Value:
        indices = context.node("Range", [zero, context.node("Squeeze", [size]), one])
        return context.reshape(context.cast(context.node("Mul", [indices, four]), x.dtype), shape)

    columns, rows = positions(width, (1, 1, 1, -1)), positions(height, (1, 1, -1, 1))
    pairs = context.node(
        "Reshape", [x, context.node("Concat", [context.builder.ints(0, -1, 2), height, width], {"axis": 0})]
    )
    parts = context.nodes("Split", [pairs], {"axis": 2, "num_outputs": 2}, outputs=2)
    corners = [context.node("Sub", [context.node("Unsqueeze", [at, context.builder.ints(0)]), part])
               for at, part in zip((columns, rows), parts)]  # fmt: skip
    joined = context.node("Concat", corners, {"axis": 2})
    context.bind(op, "Output", context.node("Reshape", [joined, context.node("Shape", [x])]))
