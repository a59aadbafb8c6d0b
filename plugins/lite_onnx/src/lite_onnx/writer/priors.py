"""Prior boxes of feature maps, which are written as constants: they depend only on sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lite_core.ir import Node, Value
from lite_core.ops.evaluate import evaluate_node
from lite_onnx.writer.problems import Unwritable

__all__ = ["is_prior", "prior_constants"]

_PRIORS = ("PriorBox", "DensityPriorBox", "AnchorGenerator")


def is_prior(node: Node) -> bool:
    """Return True for a node of the domain ``lite`` that depends only on the sizes of its inputs."""
    return node.op in _PRIORS


def prior_constants(node: Node) -> Iterator[tuple[Value, np.ndarray[Any, Any]]]:
    """Yield the outputs of a node of :func:`is_prior` with their elements.

    Raises:
        Unwritable: the sizes are not known.
    """
    if not all(value is None or value.type.is_static for value in node.inputs):
        raise Unwritable(
            "its boxes are constants in ONNX, and the sizes of its inputs are not known",
            "fix the shapes of the model's inputs",
        )
    inputs = [None if v is None else np.broadcast_to(np.zeros((), v.dtype.numpy), v.shape) for v in node.inputs]
    for value, array in zip(node.outputs, evaluate_node(node, inputs)):
        if value is not None:
            yield value, np.ascontiguousarray(array)
