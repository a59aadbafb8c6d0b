"""Functions of Paddle-Lite that no program of Paddle 3 has."""

from __future__ import annotations

from lite_core.ir import Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.registry import lowers
from lite_paddle.source import SourceOp


@lowers("negative")
def negative(op: SourceOp, context: Context) -> None:
    context.emit(op, "Neg", [context.input(op, "X")])


@lowers("relu_clipped")
def relu_clipped(op: SourceOp, context: Context) -> None:
    x = context.input(op, "X")
    most = float(context.attribute(op, "Relu_clipped_coef"))
    context.emit(op, "Clip", [x, context.scalar(0, x), context.scalar(most, x)])


@lowers("axpy")
def axpy(op: SourceOp, context: Context) -> None:
    """Multiply the channels of X [N, C, H, W] by Scale [N, C, 1, 1], and add Bias [N, C, H, W]."""
    product = context.node("Mul", [context.reshape(context.input(op, "Scale"), [0, -1, 1, 1]), context.input(op, "X")])
    context.emit(op, "Add", [product, context.input(op, "Bias")])


@lowers("cos_sim")
def cos_sim(op: SourceOp, context: Context) -> None:
    """Return the cosines [N, 1] between the rows of X and those of Y, or its only row; and the lengths of the rows."""
    x, y = context.input(op, "X"), context.input(op, "Y")

    def norm(rows: Value) -> Value:
        return context.node("ReduceL2", [rows, context.builder.ints(1)], {"keepdims": 1})

    product = context.node("ReduceSum", [context.node("Mul", [x, y]), context.builder.ints(1)], {"keepdims": 1})
    norms = norm(x), norm(y)
    context.emit(op, "Div", [product, context.node("Mul", list(norms))])
    for slot, value in zip(("XNorm", "YNorm"), norms):
        context.bind(op, slot, value)
