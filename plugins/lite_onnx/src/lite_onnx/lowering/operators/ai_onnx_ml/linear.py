"""LinearRegressor and LinearClassifier."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number
from lite_onnx.lowering.operators.ai_onnx_ml.attributes import (
    MACHINE_LEARNING,
    array,
    as_float32,
    as_rows,
    shaped_array,
)
from lite_onnx.lowering.operators.ai_onnx_ml.labels import class_labels, labels_at
from lite_onnx.lowering.operators.ai_onnx_ml.scores import (
    above_threshold,
    apply_target_transform,
    apply_transform,
    best_class,
    post_transform,
    second_class,
)
from lite_onnx.lowering.registry import lowers


@lowers("LinearRegressor", domain=MACHINE_LEARNING)
def linear_regressor(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower ``x W^T + b`` for each target."""
    targets, kind = int(number(node, "targets", 1)), post_transform(node)
    return [apply_target_transform(_scores(node, targets, context), targets, kind, context)]


@lowers("LinearClassifier", domain=MACHINE_LEARNING)
def linear_classifier(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower the label of the highest score, and the transformed scores."""
    labels, kind = class_labels(node, context), post_transform(node)
    count = array(node, "intercepts", np.float32).size
    scores = _scores(node, count, context)
    if count > 1:
        return [labels_at(best_class(scores, context), labels, context), apply_transform(scores, kind, context)]
    chosen = above_threshold(scores, 0.0, context)
    if len(labels) != 2:  # a single class: the label is 1 or 0
        return [chosen, apply_transform(scores, kind, context)]
    return [labels_at(chosen, labels, context), second_class(scores, kind, False, context)]


def _scores(node: SourceNode, count: int, context: Context) -> Value:
    """Return the scores [N, count]."""
    x = as_rows(as_float32(context.value(node, 0), context), context)
    weights = shaped_array(node, "coefficients", np.float32, count, context.size(x, 1))
    intercepts = array(node, "intercepts", np.float32)
    inputs = [x, context.constant(weights)] + ([context.constant(intercepts)] if intercepts.size else [])
    return context.add("Gemm", inputs, {"transB": 1})
