"""SVMRegressor and SVMClassifier."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators.ai_onnx_ml.attributes import (
    MACHINE_LEARNING,
    Array,
    array,
    as_real,
    rows,
    shaped,
    text,
)
from lite_onnx.lowering.operators.ai_onnx_ml.labels import class_labels, labelled
from lite_onnx.lowering.operators.ai_onnx_ml.pairwise import coupled
from lite_onnx.lowering.operators.ai_onnx_ml.scores import above, best, second_class, transform_of, transformed
from lite_onnx.lowering.reading import number
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable


@lowers("SVMRegressor", domain=MACHINE_LEARNING)
def svm_regressor(node: SourceNode, context: Context) -> Sequence[Item]:
    """The products with support vectors, weighted; their sign where there is one class only."""
    x, count = rows(as_real(context.value(node, 0), context), context), int(number(node, "n_supports", 0))
    width = context.size(x, 1)
    if count:
        x = _kernel(node, x, shaped(node, "support_vectors", np.float32, count, width), context)
    weights = shaped(node, "coefficients", np.float32, 1, count or width)
    scores = context.add("Gemm", [x, context.constant(weights), context.constant(_rho(node)[:1])], {"transB": 1})
    if number(node, "one_class", 0):
        is_inside = context.add("Greater", [scores, context.scalar_like(0, scores)])
        return [context.add("Where", [is_inside, context.scalar_like(1, scores), context.scalar_like(-1, scores)])]
    return [scores]


@lowers("SVMClassifier", domain=MACHINE_LEARNING)
def svm_classifier(node: SourceNode, context: Context) -> Sequence[Item]:
    """One machine for each pair of classes, which then vote; or a linear one for each class."""
    labels, kind = class_labels(node, context), transform_of(node)
    x = rows(as_real(context.value(node, 0), context), context)
    sizes = array(node, "vectors_per_class", np.int64)
    if not sizes.size:
        return _linear(node, x, labels, kind, context)
    pairs = list(combinations(range(len(sizes)), 2))
    total = int(sizes.sum())
    support = shaped(node, "support_vectors", np.float32, total, context.size(x, 1))
    weights = _pair_weights(shaped(node, "coefficients", np.float32, len(sizes) - 1, total), sizes, pairs)
    rho = _rho(node)
    if len(rho) != len(pairs):
        raise Unlowerable(f"its attribute 'rho' has {len(rho)} elements for {len(pairs)} pairs of classes")
    products = _kernel(node, x, support, context)
    scores = context.add("Gemm", [products, context.constant(weights), context.constant(rho)])
    # NOTE: the label is by votes also where there are probabilities, as scikit-learn and ONNX Runtime have it.
    chosen = labelled(best(_votes(scores, len(sizes), pairs, context), context), labels, context)
    if "prob_a" in node.attributes:
        slopes, shifts = (shaped(node, name, np.float32, len(pairs)) for name in ("prob_a", "prob_b"))
        return [chosen, transformed(coupled(scores, slopes, shifts, len(sizes), context), kind, context)]
    if len(pairs) > 1:
        return [chosen, transformed(scores, kind, context)]
    return [chosen, second_class(scores, kind, kind == "NONE", context)]


def _linear(node: SourceNode, x: Value, labels: Array, kind: str, context: Context) -> list[Item]:
    weights = shaped(node, "coefficients", np.float32, len(labels), context.size(x, 1))
    scores = context.add("Gemm", [x, context.constant(weights), context.constant(_rho(node)[:1])], {"transB": 1})
    chosen = best(scores, context)
    if len(labels) == 2:
        # NOTE: the second class also where it is the lower one, if any score is positive: so ONNX Runtime has it.
        highest = context.add("ReduceMax", [scores, context.ints(1)], {"keepdims": 1})
        chosen = context.add("Max", [chosen, above(highest, 0.0, context)])
    return [labelled(chosen, labels, context), transformed(scores, kind, context)]


def _rho(node: SourceNode) -> Array:
    rho = array(node, "rho", np.float32)
    if not rho.size:
        raise Unlowerable("it has no attribute 'rho'")
    return rho


def _kernel(node: SourceNode, x: Value, support: Array, context: Context) -> Value:
    """[N, vectors]: how alike each row and each support vector are."""
    kind = text(node, "kernel_type", "LINEAR", "POLY", "RBF", "SIGMOID")
    products = context.add("MatMul", [x, context.constant(np.ascontiguousarray(support.T))])
    if kind == "LINEAR":
        return products
    gamma, offset, degree = (float(p) for p in shaped(node, "kernel_params", np.float32, 3))

    def scalar(number_: float) -> Value:
        return context.scalar_like(number_, products)

    if kind == "RBF":  # |x - v|^2 = x^2 - 2 x v + v^2
        squares = context.add("ReduceSumSquare", [x, context.ints(1)], {"keepdims": 1})
        lengths = context.constant((support.astype(np.float64) ** 2).sum(1).astype(np.float32))
        both = context.add("Add", [squares, lengths])
        distances = context.add("Sub", [both, context.add("Mul", [products, scalar(2)])])
        return context.add("Exp", [context.add("Mul", [distances, scalar(-gamma)])])
    inner = context.add("Add", [context.add("Mul", [products, scalar(gamma)]), scalar(offset)])
    return context.add("Pow", [inner, scalar(degree)]) if kind == "POLY" else context.add("Tanh", [inner])


def _pair_weights(coefficients: Array, sizes: Array, pairs: list[tuple[int, int]]) -> Array:
    """[vectors, pairs] from the coefficients [classes - 1, vectors] of each vector against each other class."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    weights = np.zeros((coefficients.shape[1], len(pairs)), np.float32)
    for column, (first, second) in enumerate(pairs):
        for own, other in ((first, second - 1), (second, first)):
            vectors = slice(starts[own], starts[own + 1])
            weights[vectors, column] = coefficients[other, vectors]
    return weights


def _votes(scores: Value, classes: int, pairs: list[tuple[int, int]], context: Context) -> Value:
    """[N, classes]: how many pairs each class wins."""
    wins, losses = np.zeros((2, len(pairs), classes), np.float32)
    for row, (first, second) in enumerate(pairs):
        wins[row, first] = losses[row, second] = 1
    is_first = context.add(
        "Cast", [context.add("Greater", [scores, context.scalar_like(0, scores)])], {"to": scores.dtype}
    )
    return context.add("Gemm", [is_first, context.constant(wins - losses), context.constant(losses.sum(0))])
