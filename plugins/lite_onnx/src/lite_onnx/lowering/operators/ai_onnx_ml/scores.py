"""Final transforms of the scores of classes or targets."""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import SourceNode
from lite_onnx.lowering.operators.ai_onnx_ml.attributes import string
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = [
    "TRANSFORMS",
    "above_threshold",
    "apply_target_transform",
    "apply_transform",
    "best_class",
    "post_transform",
    "second_class",
]

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")

#: SOFTMAX_ZERO treats scores with absolute values up to this limit as zeros.
_NEAR = 1e-7


def post_transform(node: SourceNode) -> str:
    """Return the name in the attribute ``post_transform``."""
    return string(node, "post_transform", *TRANSFORMS)


def apply_transform(scores: Value, kind: str, context: Context) -> Value:
    """Apply a transform to scores [N, scores] along the last axis."""
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


def apply_target_transform(scores: Value, targets: int, kind: str, context: Context) -> Value:
    """Apply a transform to the targets of a regression. A single target is only changed by PROBIT."""
    return scores if targets == 1 and kind != "PROBIT" else apply_transform(scores, kind, context)


def _softmax_zero(scores: Value, context: Context) -> Value:
    """Apply softmax to the nonzero elements; zeros stay zeros and do not count in the sum."""
    highest = context.add("ReduceMax", [scores, context.ints(-1)], {"keepdims": 1})
    absolute = context.add("Abs", [scores])
    is_zero = context.add("LessOrEqual", [absolute, context.scalar_like(_NEAR, scores)])
    powers = context.add("Exp", [context.add("Sub", [scores, highest])])
    counted = context.add("Where", [is_zero, context.scalar_like(0, scores), powers])
    total = context.add("ReduceSum", [counted, context.ints(-1)], {"keepdims": 1})
    kept = context.add("Mul", [scores, context.add("Exp", [context.add("Neg", [highest])])])
    return context.add("Div", [context.add("Where", [is_zero, kept, counted]), total])


def _probit(scores: Value, context: Context) -> Value:
    """Compute ``sqrt(2) * erfinv(2 x - 1)``, with S. Winitzki's approximation (2008) of the inverse error function."""

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
    """Return the scores [N, 2] of two classes from the scores [N, 1] of the second class.

    Args:
        scores: the scores of the second class.
        kind: the transform; softmax does not change the scores.
        is_signed: True if scores may be negative; False if they are probabilities.
        context: the context to add nodes to.
    """
    if kind == "PROBIT":  # probit(1 - x) = -probit(x)
        scores, is_signed = apply_transform(scores, kind, context), True
    negative = context.add("Neg", [scores])
    if kind == "LOGISTIC":
        first, scores = context.add("Sigmoid", [negative]), context.add("Sigmoid", [scores])
    else:
        first = negative if is_signed else context.add("Add", [negative, context.scalar_like(1, scores)])
    return context.add("Concat", [first, scores], {"axis": 1})


def best_class(scores: Value, context: Context) -> Value:
    """Return the index [N] of the largest score of each row, the first one of equal scores."""
    return context.add("ArgMax", [scores], {"axis": 1, "keepdims": 0})


def above_threshold(scores: Value, limit: float, context: Context) -> Value:
    """Return 1 where the score [N, 1] is above a limit, 0 elsewhere: a vector [N]."""
    is_above = context.add("Greater", [scores, context.scalar_like(limit, scores)])
    return context.add("Cast", [context.add("Squeeze", [is_above, context.ints(1)])], {"to": DType.INT64})
