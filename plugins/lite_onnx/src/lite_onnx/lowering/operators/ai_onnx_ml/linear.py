"""LinearRegressor and LinearClassifier."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators.ai_onnx_ml.attributes import MACHINE_LEARNING, array, as_real, rows, shaped
from lite_onnx.lowering.operators.ai_onnx_ml.labels import class_labels, labelled
from lite_onnx.lowering.operators.ai_onnx_ml.scores import (
    above,
    best,
    second_class,
    transform_of,
    transformed,
    transformed_targets,
)
from lite_onnx.lowering.reading import number
from lite_onnx.lowering.registry import lowers


@lowers("LinearRegressor", domain=MACHINE_LEARNING)
def linear_regressor(node: SourceNode, context: Context) -> Sequence[Item]:
    """``x W^T + b`` for each target."""
    targets, kind = int(number(node, "targets", 1)), transform_of(node)
    return [transformed_targets(_scores(node, targets, context), targets, kind, context)]


@lowers("LinearClassifier", domain=MACHINE_LEARNING)
def linear_classifier(node: SourceNode, context: Context) -> Sequence[Item]:
    """The label of the highest score, and the scores after a transform."""
    labels, kind = class_labels(node, context), transform_of(node)
    count = array(node, "intercepts", np.float32).size
    scores = _scores(node, count, context)
    if count > 1:
        return [labelled(best(scores, context), labels, context), transformed(scores, kind, context)]
    chosen = above(scores, 0.0, context)
    if len(labels) != 2:  # one class, which is there or not
        return [chosen, transformed(scores, kind, context)]
    return [labelled(chosen, labels, context), second_class(scores, kind, False, context)]


def _scores(node: SourceNode, count: int, context: Context) -> Value:
    """[N, count]."""
    x = rows(as_real(context.value(node, 0), context), context)
    weights = shaped(node, "coefficients", np.float32, count, context.size(x, 1))
    intercepts = array(node, "intercepts", np.float32)
    inputs = [x, context.constant(weights)] + ([context.constant(intercepts)] if intercepts.size else [])
    return context.add("Gemm", inputs, {"transB": 1})
