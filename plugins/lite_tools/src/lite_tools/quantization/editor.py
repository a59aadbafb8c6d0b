"""Editing of a graph whose layers become quantized: new nodes, constants, and the forms of activations and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_core.ir import Attribute, DType, Graph, Node, TensorType, Value
from lite_tools.quantization.layers import Layer, rounded_weights, weight_scales
from lite_tools.quantization.ranges import Parameters

__all__ = ["Editor"]

Array = np.ndarray[Any, Any]

#: Larger numbers of steps would overflow int32 sums when products are added to them.
_LARGEST_BIAS = 2**30


class Editor:
    """Editor of a graph, which is changed: new nodes are appended to ``nodes``, constants are added at once.

    Args:
        graph: the graph. When all is appended, :meth:`finish` gives it the nodes.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[Node] = []
        #: The values of the graph by name.
        self.values = {value.name: value for value in graph.defined()}
        self._names = {value.name for scope in graph.walk() for value in scope.defined()}
        self._parameters: dict[Parameters, tuple[Value, Value]] = {}
        self._weights: dict[tuple[str, int], tuple[Value, Value, Array]] = {}

    def finish(self) -> Graph:
        """Return the graph with the appended nodes, without constants that no node reads."""
        graph = self.graph
        graph.nodes = self.nodes
        used = {*graph.outputs, *(v for scope in graph.walk() for node in scope.nodes for v in node.used())}
        graph.constants = {value: array for value, array in graph.constants.items() if value in used}
        return graph

    def add(
        self, op: str, inputs: Sequence[Value | None], type: TensorType, name: str, **attributes: Attribute
    ) -> Value:
        """Append a node with one result, and return the result."""
        result = self.value(name, type)
        self.nodes.append(Node(op, inputs, [result], attributes, name=result.name))
        return result

    def value(self, name: str, type: TensorType) -> Value:
        """Return a new value; a number is appended to a name that is taken."""
        unique, number = name, 1
        while unique in self._names:
            unique, number = f"{name}_{number}", number + 1
        self._names.add(unique)
        return Value(unique, type)

    def constant(self, name: str, array: Array) -> Value:
        """Add a constant."""
        array = np.array(array, order="C")
        array.flags.writeable = False
        value = self.value(name, TensorType.of_array(array))
        self.graph.constants[value] = array
        return value

    def quantized(self, value: Value, parameters: Parameters) -> Value:
        """Return a value as uint8."""
        scale, zero = self._parameter_values(value, parameters)
        return self.add(
            "QuantizeLinear", [value, scale, zero], value.type.with_dtype(DType.UINT8), f"{value.name}.uint8"
        )

    def dequantized(self, stored: Value, value: Value, parameters: Parameters) -> Value:
        """Return float32 numbers from ``stored``, the uint8 form of ``value``."""
        scale, zero = self._parameter_values(value, parameters)
        return self.add("DequantizeLinear", [stored, scale, zero], value.type, f"{value.name}.rounded")

    def layer_inputs(self, layer: Layer, activation: Value, parameters: Parameters) -> list[Value | None]:
        """Return the inputs of a layer that computes with 8-bit numbers.

        Args:
            layer: the layer.
            activation: its activation, dequantized.
            parameters: the parameters of the activation.
        """
        stored, scales, array = self._stored_weights(layer)
        weights = layer.weights
        widened = self.add(
            "DequantizeLinear", [stored, scales], weights.type, f"{weights.name}.rounded", axis=layer.axis
        )
        inputs: list[Value | None] = [activation, widened]
        if layer.bias is not None:
            inputs.append(self._bias(layer, self.values[layer.bias.name], array, parameters))
        return inputs

    def _parameter_values(self, value: Value, parameters: Parameters) -> tuple[Value, Value]:
        if parameters not in self._parameters:
            scale = self.constant(f"{value.name}.scale", np.asarray(parameters.scale))
            self._parameters[parameters] = (
                scale,
                self.constant(f"{value.name}.zero_point", np.asarray(parameters.zero_point)),
            )
        return self._parameters[parameters]

    def _stored_weights(self, layer: Layer) -> tuple[Value, Value, Array]:
        key = layer.weights.name, layer.axis
        if key not in self._weights:
            array = self.graph.constants[self.values[layer.weights.name]]
            scales = weight_scales(array, layer.axis)
            stored = self.constant(f"{layer.weights.name}.int8", rounded_weights(array, scales, layer.axis))
            self._weights[key] = stored, self.constant(f"{layer.weights.name}.scale", scales), scales
        return self._weights[key]

    def _bias(self, layer: Layer, bias: Value, scales: Array, parameters: Parameters) -> Value:
        """Return a bias in the steps of the layer's sums; the bias itself if it cannot be stored so."""
        array = self.graph.constants.get(bias)
        if array is None or array.shape != scales.shape:
            return bias
        steps = scales.astype(np.float64) * float(parameters.scale)
        stored = np.rint(array / steps)
        if not np.abs(stored).max(initial=0) <= _LARGEST_BIAS:
            return bias
        narrow = self.constant(f"{layer.name}.bias.int32", stored.astype(np.int32))
        scale = self.constant(f"{layer.name}.bias.scale", steps.astype(np.float32))
        return self.add("DequantizeLinear", [narrow, scale], bias.type, f"{layer.name}.bias", axis=0)
