"""SVMRegressor and SVMClassifier."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number
from lite_onnx.lowering.operators.ai_onnx_ml.attributes import (
    MACHINE_LEARNING,
    Array,
    array,
    as_float32,
    as_rows,
    shaped_array,
    string,
)
from lite_onnx.lowering.operators.ai_onnx_ml.labels import class_labels, labels_at
from lite_onnx.lowering.operators.ai_onnx_ml.pairwise import pairwise_probabilities
from lite_onnx.lowering.operators.ai_onnx_ml.scores import (
    above_threshold,
    apply_transform,
    best_class,
    post_transform,
    second_class,
)
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable

#: The tables for votes and coefficients grow with the cube of the number of classes.
_MOST_CLASSES = 300


@lowers("SVMRegressor", domain=MACHINE_LEARNING)
def svm_regressor(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower the weighted sum of kernel products with support vectors; for a one-class model, its sign."""
    x, count = as_rows(as_float32(context.value(node, 0), context), context), int(number(node, "n_supports", 0))
    width = context.size(x, 1)
    if count:
        x = _kernel(node, x, shaped_array(node, "support_vectors", np.float32, count, width), context)
    weights = shaped_array(node, "coefficients", np.float32, 1, count or width)
    scores = context.add("Gemm", [x, context.constant(weights), context.constant(_rho(node)[:1])], {"transB": 1})
    if number(node, "one_class", 0):
        is_inside = context.add("Greater", [scores, context.scalar_like(0, scores)])
        return [context.add("Where", [is_inside, context.scalar_like(1, scores), context.scalar_like(-1, scores)])]
    return [scores]


@lowers("SVMClassifier", domain=MACHINE_LEARNING)
def svm_classifier(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower a machine for each pair of classes, which then vote, or a linear one for each class."""
    labels, kind = class_labels(node, context), post_transform(node)
    x = as_rows(as_float32(context.value(node, 0), context), context)
    sizes = array(node, "vectors_per_class", np.int64)
    if not sizes.size:
        return _linear(node, x, labels, kind, context)
    rho, count = _rho(node), len(sizes) * (len(sizes) - 1) // 2
    if len(rho) != count:
        raise Unlowerable(f"its attribute 'rho' has {len(rho)} elements for {count} pairs of classes")
    if len(sizes) > _MOST_CLASSES:
        raise Unlowerable(f"it has {len(sizes)} classes; Lite compares the pairs of at most {_MOST_CLASSES}")
    pairs = list(combinations(range(len(sizes)), 2))
    total = int(sizes.sum())
    support = shaped_array(node, "support_vectors", np.float32, total, context.size(x, 1))
    weights = _pair_weights(shaped_array(node, "coefficients", np.float32, len(sizes) - 1, total), sizes, pairs)
    products = _kernel(node, x, support, context)
    scores = context.add("Gemm", [products, context.constant(weights), context.constant(rho)])
    # NOTE: votes decide the label even if there are probabilities, as in scikit-learn and ONNX Runtime.
    chosen = labels_at(best_class(_votes(scores, len(sizes), pairs, context), context), labels, context)
    if "prob_a" in node.attributes:
        slopes, shifts = (shaped_array(node, name, np.float32, len(pairs)) for name in ("prob_a", "prob_b"))
        return [
            chosen,
            apply_transform(pairwise_probabilities(scores, slopes, shifts, len(sizes), context), kind, context),
        ]
    if len(pairs) > 1:
        return [chosen, apply_transform(scores, kind, context)]
    return [chosen, second_class(scores, kind, kind == "NONE", context)]


def _linear(node: SourceNode, x: Value, labels: Array, kind: str, context: Context) -> list[Item]:
    weights = shaped_array(node, "coefficients", np.float32, len(labels), context.size(x, 1))
    scores = context.add("Gemm", [x, context.constant(weights), context.constant(_rho(node)[:1])], {"transB": 1})
    chosen = best_class(scores, context)
    if len(labels) == 2:
        # NOTE: if any score is positive, the second class wins even if its score is lower, as in ONNX Runtime.
        highest = context.add("ReduceMax", [scores, context.ints(1)], {"keepdims": 1})
        chosen = context.add("Max", [chosen, above_threshold(highest, 0.0, context)])
    return [labels_at(chosen, labels, context), apply_transform(scores, kind, context)]


def _rho(node: SourceNode) -> Array:
    rho = array(node, "rho", np.float32)
    if not rho.size:
        raise Unlowerable("it has no attribute 'rho'")
    return rho


def _kernel(node: SourceNode, x: Value, support: Array, context: Context) -> Value:
    """Return the kernel products [N, vectors] of rows and support vectors."""
    kind = string(node, "kernel_type", "LINEAR", "POLY", "RBF", "SIGMOID")
    products = context.add("MatMul", [x, context.constant(np.ascontiguousarray(support.T))])
    if kind == "LINEAR":
        return products
    gamma, offset, degree = (float(p) for p in shaped_array(node, "kernel_params", np.float32, 3))

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
    """Return weights [vectors, pairs] from the coefficients [classes - 1, vectors] against each other class."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    weights = np.zeros((coefficients.shape[1], len(pairs)), np.float32)
    for column, (first, second) in enumerate(pairs):
        for own, other in ((first, second - 1), (second, first)):
            vectors = slice(starts[own], starts[own + 1])
            weights[vectors, column] = coefficients[other, vectors]
    return weights


def _votes(scores: Value, classes: int, pairs: list[tuple[int, int]], context: Context) -> Value:
    """Return the number [N, classes] of pairs that each class wins."""
    wins, losses = np.zeros((2, len(pairs), classes), np.float32)
    for row, (first, second) in enumerate(pairs):
        wins[row, first] = losses[row, second] = 1
    is_first = context.add(
        "Cast", [context.add("Greater", [scores, context.scalar_like(0, scores)])], {"to": scores.dtype}
    )
    return context.add("Gemm", [is_first, context.constant(wins - losses), context.constant(losses.sum(0))])
