"""What scores of classes or targets become at the end."""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import SourceNode
from lite_onnx.lowering.operators.ai_onnx_ml.attributes import text
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["TRANSFORMS", "above", "best", "second_class", "transform_of", "transformed", "transformed_targets"]

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")

#: Scores no further from zero are zeros to SOFTMAX_ZERO.
_NEAR = 1e-7


def transform_of(node: SourceNode) -> str:
    """The attribute ``post_transform``, by its name."""
    return text(node, "post_transform", *TRANSFORMS)


def transformed(scores: Value, kind: str, context: Context) -> Value:
    """[N, scores] after a transform along the last axis."""
    if kind == "NONE":
        return scores
    if kind == "SOFTMAX":
        return context.add("Softmax", [scores], {"axis": -1})
    if kind == "LOGISTIC":
        return context.add("Sigmoid", [scores])
    if kind == "SOFTMAX_ZERO":
        return _softmax_zero(scores, context)
    if kind == "PROBIT":
        return _probit(scores, context)
    raise Unlowerable(f"its post_transform is {kind!r}, not one of {', '.join(TRANSFORMS)}")


def transformed_targets(scores: Value, targets: int, kind: str, context: Context) -> Value:
    """As :func:`transformed`, of a regression; a single target stays what it is but for a probit."""
    return scores if targets == 1 and kind != "PROBIT" else transformed(scores, kind, context)


def _softmax_zero(scores: Value, context: Context) -> Value:
    """Softmax of the elements that are not zero; zeros count for nothing and stay what they are."""
    highest = context.add("ReduceMax", [scores, context.ints(-1)], {"keepdims": 1})
    absolute = context.add("Abs", [scores])
    is_zero = context.add("LessOrEqual", [absolute, context.scalar_like(_NEAR, scores)])
    powers = context.add("Exp", [context.add("Sub", [scores, highest])])
    counted = context.add("Where", [is_zero, context.scalar_like(0, scores), powers])
    total = context.add("ReduceSum", [counted, context.ints(-1)], {"keepdims": 1})
    kept = context.add("Mul", [scores, context.add("Exp", [context.add("Neg", [highest])])])
    return context.add("Div", [context.add("Where", [is_zero, kept, counted]), total])


def _probit(scores: Value, context: Context) -> Value:
    """``sqrt(2) * erfinv(2 x - 1)``, with the inverse error function by S. Winitzki's approximation of 2008."""

    def scalar(number: float) -> Value:
        return context.scalar_like(number, scores)

    a = 0.147
    x = context.add("Sub", [context.add("Mul", [scores, scalar(2)]), scalar(1)])
    log = context.add("Log", [context.add("Sub", [scalar(1), context.add("Mul", [x, x])])])
    first = context.add("Add", [context.add("Mul", [log, scalar(0.5)]), scalar(2 / (np.pi * a))])
    under = context.add("Sub", [context.add("Mul", [first, first]), context.add("Mul", [log, scalar(1 / a)])])
    size = context.add("Sqrt", [context.add("Sub", [context.add("Sqrt", [under]), first])])
    return context.add("Mul", [context.add("Mul", [context.add("Sign", [x]), size]), scalar(2**0.5)])


def second_class(scores: Value, kind: str, is_signed: bool, context: Context) -> Value:
    """[N, 2] from the scores [N, 1] of the second of two classes.

    Args:
        scores: of the class.
        kind: the transform; softmax leaves both as they are.
        is_signed: whether scores have both signs; else they are probabilities.
        context: to add nodes to.
    """
    if kind == "PROBIT":  # that of 1 - x is the negative of that of x
        scores, is_signed = transformed(scores, kind, context), True
    negative = context.add("Neg", [scores])
    if kind == "LOGISTIC":
        first, scores = context.add("Sigmoid", [negative]), context.add("Sigmoid", [scores])
    else:
        first = negative if is_signed else context.add("Add", [negative, context.scalar_like(1, scores)])
    return context.add("Concat", [first, scores], {"axis": 1})


def best(scores: Value, context: Context) -> Value:
    """[N]: where the largest of each row of scores is, the first one of equals."""
    return context.add("ArgMax", [scores], {"axis": 1, "keepdims": 0})


def above(scores: Value, limit: float, context: Context) -> Value:
    """[N]: 1 where the score [N, 1] is above a limit, 0 elsewhere."""
    is_above = context.add("Greater", [scores, context.scalar_like(limit, scores)])
    return context.add("Cast", [context.add("Squeeze", [is_above, context.ints(1)])], {"to": DType.INT64})
