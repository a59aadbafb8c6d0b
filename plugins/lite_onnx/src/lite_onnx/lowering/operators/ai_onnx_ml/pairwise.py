"""Probabilities of classes from probabilities of pairs of classes.

This is the second method of T.-F. Wu, C.-J. Lin and R. C. Weng, "Probability estimates for multi-class classification
by pairwise coupling", 2004, as LIBSVM and ONNX Runtime implement it, with their rules for termination.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from lite_core.ir import DType, Graph, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.operators.ai_onnx_ml.attributes import Array

__all__ = ["pairwise_probabilities"]

_MAX_ROUNDS = 100
_MIN_PROBABILITY = 1e-7


def pairwise_probabilities(scores: Value, slopes: Array, shifts: Array, classes: int, context: Context) -> Value:
    """Return the probabilities [N, classes].

    Args:
        scores: the scores [N, pairs] of each pair of classes; positive ones are for the first class of the pair.
        slopes: the slopes of the sigmoid that converts the score of a pair to a probability.
        shifts: the shifts of the same sigmoid.
        classes: the number of classes.
        context: the context to add nodes to.
    """
    shifted = context.add("Add", [context.add("Mul", [scores, context.constant(slopes)]), context.constant(shifts)])
    chances = context.add("Sigmoid", [context.add("Neg", [shifted])])
    low, high = (context.scalar_like(n, scores) for n in (_MIN_PROBABILITY, 1 - _MIN_PROBABILITY))
    chances = context.add("Clip", [chances, low, high])
    q = _matrix(chances, classes, context)
    batch = context.add("Shape", [scores], {"start": 0, "end": 1})
    shape = context.add("Concat", [batch, context.ints(classes)], {"axis": 0})
    first = context.add("Expand", [context.scalar_like(1 / classes, scores), shape])
    rounds = context.constant(np.array(max(_MAX_ROUNDS, classes), np.int64))
    goes_on = context.constant(np.array(True))
    body = _round(first, q, classes, context)
    return context.add("Loop", [rounds, goes_on, first], {"body": body})


def _matrix(chances: Value, classes: int, context: Context) -> Value:
    """Return Q [N, classes, classes]: ``sum of r_ji^2`` on the diagonal, ``-r_ji r_ij`` elsewhere."""
    # r [N, classes, classes]: the probability of each class against each other one; zeros on the diagonal.
    pairs = list(combinations(range(classes), 2))
    column = np.zeros((classes, classes), np.int64)
    for number, (first, second) in enumerate(pairs):
        column[first, second], column[second, first] = number, len(pairs) + number
    rest = context.add("Sub", [context.scalar_like(1, chances), chances])
    both = context.add("Concat", [chances, rest], {"axis": 1})
    gathered = context.add("Gather", [both, context.constant(column)], {"axis": 1})
    r = context.add("Mul", [gathered, context.constant(1 - np.eye(classes, dtype=np.float32))])
    other = context.add("Transpose", [r], {"perm": (0, 2, 1)})
    squares = context.add("ReduceSumSquare", [other, context.ints(2)], {"keepdims": 1})
    diagonal = context.add("Mul", [squares, context.constant(np.eye(classes, dtype=np.float32))])
    return context.add("Sub", [diagonal, context.add("Mul", [r, other])])


def _round(like: Value, q: Value, classes: int, context: Context) -> Graph:
    """Build the loop's body: one round over all classes for rows that have not converged."""
    inner = context.inner("couple")
    builder = inner.builder
    builder.input(builder.unique_name("round"), DType.INT64, ())
    builder.input(builder.unique_name("goes_on"), DType.BOOL, ())
    p = builder.input(builder.unique_name("p"), like.dtype, like.shape)

    def part(x: Value, index: int) -> Value:
        return inner.add("Slice", [x, inner.ints(index), inner.ints(index + 1), inner.ints(1)])

    def total(x: Value) -> Value:
        return inner.add("ReduceSum", [x, inner.ints(1)], {"keepdims": 1})

    qp = inner.add("Squeeze", [inner.add("MatMul", [q, inner.add("Unsqueeze", [p, inner.ints(2)])]), inner.ints(2)])
    pqp = total(inner.add("Mul", [p, qp]))
    errors = inner.add("Abs", [inner.add("Sub", [qp, pqp])])
    error = inner.add("ReduceMax", [errors, inner.ints(1)], {"keepdims": 1})
    is_active = inner.add("GreaterOrEqual", [error, inner.scalar_like(0.005 / classes, error)])
    new = p
    for index in range(classes):
        row = inner.add("Squeeze", [part(q, index), inner.ints(1)])
        own = part(row, index)
        change = inner.add("Div", [inner.add("Sub", [pqp, part(qp, index)]), own])
        size = inner.add("Add", [change, inner.scalar_like(1, change)])
        unit = np.zeros((1, classes), np.float32)
        unit[0, index] = 1
        new = inner.add("Div", [inner.add("Add", [new, inner.add("Mul", [change, inner.constant(unit)])]), size])
        doubled = inner.add("Mul", [part(qp, index), inner.scalar_like(2, change)])
        gained = inner.add("Mul", [change, inner.add("Add", [inner.add("Mul", [change, own]), doubled])])
        pqp = inner.add("Div", [inner.add("Div", [inner.add("Add", [pqp, gained]), size]), size])
        qp = inner.add("Div", [inner.add("Add", [qp, inner.add("Mul", [change, row])]), size])
    goes_on = inner.add("ReduceMax", [inner.add("Cast", [is_active], {"to": DType.INT32})], {"keepdims": 0})
    builder.output(inner.add("Cast", [goes_on], {"to": DType.BOOL}))
    builder.output(inner.add("Where", [is_active, new, p]))
    return builder.build()
