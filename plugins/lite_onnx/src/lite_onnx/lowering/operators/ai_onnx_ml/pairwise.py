"""Probabilities of classes from those of pairs of them.

The second method of T.-F. Wu, C.-J. Lin and R. C. Weng, "Probability estimates for multi-class classification by
pairwise coupling", 2004, as LIBSVM and ONNX Runtime have it, with their rules for when to stop.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from lite_core.ir import DType, Graph, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.operators.ai_onnx_ml.attributes import Array

__all__ = ["coupled"]

_MOST_ROUNDS = 100
_LEAST = 1e-7


def coupled(scores: Value, slopes: Array, shifts: Array, classes: int, context: Context) -> Value:
    """[N, classes]: probabilities.

    Args:
        scores: of each pair of classes [N, pairs]; positive ones are for the first of the two.
        slopes: of the sigmoid that makes a probability of the score of a pair.
        shifts: of the same.
        classes: how many.
        context: to add nodes to.
    """
    turned = context.add("Add", [context.add("Mul", [scores, context.constant(slopes)]), context.constant(shifts)])
    chances = context.add("Sigmoid", [context.add("Neg", [turned])])
    low, high = (context.scalar_like(n, scores) for n in (_LEAST, 1 - _LEAST))
    chances = context.add("Clip", [chances, low, high])
    q = _matrix(chances, classes, context)
    batch = context.add("Shape", [scores], {"start": 0, "end": 1})
    shape = context.add("Concat", [batch, context.ints(classes)], {"axis": 0})
    first = context.add("Expand", [context.scalar_like(1 / classes, scores), shape])
    rounds = context.constant(np.array(max(_MOST_ROUNDS, classes), np.int64))
    goes_on = context.constant(np.array(True))
    body = _round(first, q, classes, context)
    return context.add("Loop", [rounds, goes_on, first], {"body": body})


def _matrix(chances: Value, classes: int, context: Context) -> Value:
    """Q [N, classes, classes]: ``sum of r_ji^2`` on the diagonal, ``-r_ji r_ij`` elsewhere."""
    pairs = list(combinations(range(classes), 2))
    ahead, behind = np.zeros((2, len(pairs), classes * classes), np.float32)
    for row, (first, second) in enumerate(pairs):
        ahead[row, first * classes + second] = behind[row, second * classes + first] = 1
    rest = context.add("Sub", [context.scalar_like(1, chances), chances])
    # r [N, classes, classes]: how likely each class is against each other one; zeros on the diagonal.
    flat = context.add(
        "Add",
        [
            context.add("MatMul", [chances, context.constant(ahead)]),
            context.add("MatMul", [rest, context.constant(behind)]),
        ],
    )
    r = context.add("Reshape", [flat, context.ints(-1, classes, classes)])
    other = context.add("Transpose", [r], {"perm": (0, 2, 1)})
    squares = context.add("ReduceSumSquare", [other, context.ints(2)], {"keepdims": 1})
    diagonal = context.add("Mul", [squares, context.constant(np.eye(classes, dtype=np.float32))])
    return context.add("Sub", [diagonal, context.add("Mul", [r, other])])


def _round(like: Value, q: Value, classes: int, context: Context) -> Graph:
    """One round over all classes, for the rows that are not done; the loop ends when all rows are."""
    inner = context.inner("couple")
    builder = inner.builder
    builder.input(builder.unique_name("round"), DType.INT64, ())
    builder.input(builder.unique_name("goes_on"), DType.BOOL, ())
    p = builder.input(builder.unique_name("p"), like.dtype, like.shape)

    def part(x: Value, at: int) -> Value:
        return inner.add("Slice", [x, inner.ints(at), inner.ints(at + 1), inner.ints(1)])

    def total(x: Value) -> Value:
        return inner.add("ReduceSum", [x, inner.ints(1)], {"keepdims": 1})

    qp = inner.add("Squeeze", [inner.add("MatMul", [q, inner.add("Unsqueeze", [p, inner.ints(2)])]), inner.ints(2)])
    pqp = total(inner.add("Mul", [p, qp]))
    errors = inner.add("Abs", [inner.add("Sub", [qp, pqp])])
    error = inner.add("ReduceMax", [errors, inner.ints(1)], {"keepdims": 1})
    is_open = inner.add("GreaterOrEqual", [error, inner.scalar_like(0.005 / classes, error)])
    new = p
    for at in range(classes):
        row = inner.add("Squeeze", [part(q, at), inner.ints(1)])
        own = part(row, at)
        change = inner.add("Div", [inner.add("Sub", [pqp, part(qp, at)]), own])
        size = inner.add("Add", [change, inner.scalar_like(1, change)])
        unit = np.zeros((1, classes), np.float32)
        unit[0, at] = 1
        new = inner.add("Div", [inner.add("Add", [new, inner.add("Mul", [change, inner.constant(unit)])]), size])
        doubled = inner.add("Mul", [part(qp, at), inner.scalar_like(2, change)])
        gained = inner.add("Mul", [change, inner.add("Add", [inner.add("Mul", [change, own]), doubled])])
        pqp = inner.add("Div", [inner.add("Div", [inner.add("Add", [pqp, gained]), size]), size])
        qp = inner.add("Div", [inner.add("Add", [qp, inner.add("Mul", [change, row])]), size])
    goes_on = inner.add("ReduceMax", [inner.add("Cast", [is_open], {"to": DType.INT32})], {"keepdims": 0})
    builder.output(inner.add("Cast", [goes_on], {"to": DType.BOOL}))
    builder.output(inner.add("Where", [is_open, new, p]))
    return builder.build()
