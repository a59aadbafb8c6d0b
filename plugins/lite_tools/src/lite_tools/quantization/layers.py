"""Layers of a graph that can be computed with 8-bit integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core import ops
from lite_core.ir import DType, Graph, Node, Value

__all__ = ["OPERATORS", "Layer", "channel_axis", "find_layers", "rounded_weights", "weight_scales"]

Array = np.ndarray[Any, Any]

#: Operators of layers: a product of an activation, input 0, and trained weights, input 1.
OPERATORS = ("Conv", "Gemm", "MatMul")


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """A node that multiplies an activation by trained weights.

    Attributes:
        node: the node.
        activation: its first input.
        weights: its second input, a constant.
        axis: the axis of the weights' output channels.
        output: its result, whose name identifies the layer.
    """

    node: Node
    activation: Value
    weights: Value
    axis: int
    output: Value

    @property
    def name(self) -> str:
        """The name of its result, which is unique in the graph."""
        return self.output.name

    @property
    def bias(self) -> Value | None:
        """Its third input, or None."""
        return self.node.inputs[2] if len(self.node.inputs) > 2 else None


def find_layers(graph: Graph) -> tuple[list[Layer], dict[str, str]]:
    """Return the layers that can be quantized, and the reasons for others, by the names of their results.

    Nodes in sub-graphs are not looked at: they stay as they are.
    """
    layers, reasons = [], {}
    for node in graph.nodes:
        output = node.outputs[0] if node.outputs else None
        if node.domain or node.op not in OPERATORS or output is None:
            continue
        reason = _refusal(graph, node)
        if reason:
            reasons[output.name] = reason
            continue
        activation, weights = node.inputs[0], node.inputs[1]
        assert activation is not None
        assert weights is not None
        layers.append(Layer(node, activation, weights, channel_axis(node, len(weights.shape)), output))
    return layers, reasons


def _refusal(graph: Graph, node: Node) -> str:
    """Return the reason why a product cannot be quantized; empty if it can."""
    activation, weights = node.inputs[0], node.inputs[1]
    if activation is None or weights is None or activation in graph.constants:
        return "its first input is a constant"
    array = graph.constants.get(weights)
    if array is None:
        return "it multiplies two values that are computed, no trained weights"
    if DType.of(array) is not DType.FLOAT32 or activation.dtype is not DType.FLOAT32:
        return f"it computes in {activation.dtype}; only float32 is quantized"
    if array.ndim < 2:
        return "its weights are a vector"
    if not np.isfinite(array).all():
        return "some of its weights are not finite"
    attributes = ops.attributes_of(node)
    if node.op == "Gemm" and (attributes["alpha"] != 1 or attributes["beta"] != 1 or attributes["transA"]):
        return "its alpha, beta or transA is not the default"
    return ""


def channel_axis(node: Node, rank: int) -> int:
    """Return the axis of the output channels of a layer's weights."""
    if node.op == "Conv":
        return 0
    if node.op == "Gemm":
        return 0 if ops.attributes_of(node)["transB"] else 1
    return rank - 1


def weight_scales(array: Array, axis: int) -> Array:
    """Return ``max |w| / 127`` of each output channel, float32; 1 for a channel of zeros."""
    others = tuple(d for d in range(array.ndim) if d != axis)
    scales: Array = (np.abs(array).max(axis=others) / np.float32(127)).astype(np.float32)
    scales[~(scales > np.finfo(np.float32).tiny)] = 1
    return scales


def rounded_weights(array: Array, scales: Array, axis: int) -> Array:
    """Return weights as int8 from -127 to 127."""
    shape: Sequence[int] = [-1 if d == axis else 1 for d in range(array.ndim)]
    return np.clip(np.rint(array / scales.reshape(shape)), -127, 127).astype(np.int8)
