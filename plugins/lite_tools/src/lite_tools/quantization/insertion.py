"""Graphs in which layers are quantized: QuantizeLinear and DequantizeLinear around them, in ONNX's standard form.

Rules:
    1. The weights of a layer become int8 with a scale for each output channel, followed by a DequantizeLinear.
    2. The activation of a layer becomes uint8 with one scale and zero point, by a QuantizeLinear behind the node that
       computes it. Each layer has a DequantizeLinear of its own. Other nodes read the activation in float32.
    3. A constant bias becomes int32, in the steps of the sums: the activation's scale times those of the weights.
    4. A node that only moves or selects elements, such as MaxPool, does so with uint8 numbers if nothing reads its
       result in float32.

Backends compute the layer with integers, and the element-wise nodes behind it, up to the next QuantizeLinear, in the
same kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lite_core import ops
from lite_core.ir import DType, Graph, Node, Value
from lite_tools.quantization.editor import Editor
from lite_tools.quantization.layers import Layer
from lite_tools.quantization.ranges import Parameters

__all__ = ["insert_quantization"]

#: Operators whose results are elements of their first input (of all inputs, for Concat), whatever their type.
_MOVING = ("Concat", "Flatten", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")


def insert_quantization(graph: Graph, layers: Sequence[Layer], parameters: Mapping[str, Parameters]) -> Graph:
    """Return a copy of a graph in which layers are quantized.

    Args:
        graph: the graph.
        layers: the layers to quantize; all others stay as they are.
        parameters: the parameters of their activations, by name.
    """
    chosen = {layer.name: layer for layer in layers}
    wanted, moved = _wanted_forms(graph, chosen)
    editor = Editor(graph.copy())
    nodes, values = editor.graph.nodes, editor.values
    stored: dict[tuple[str, str], Value] = {}

    def quantize(value: Value) -> None:
        for key in wanted.get(value.name, ()):
            if (value.name, key) not in stored:
                stored[value.name, key] = editor.quantized(value, parameters[key])

    for value in editor.graph.inputs:
        quantize(value)
    for node in nodes:
        name = _result_name(node)
        layer = chosen.get(name)
        if name in moved:
            key = moved[name]
            inputs = [stored.get((v.name, key), v) if v is not None else None for v in node.inputs]
            result = editor.value(f"{name}.uint8", values[name].type.with_dtype(DType.UINT8))
            editor.nodes.append(node.copy_with(inputs, [result], node.attributes))
            stored[name, key] = result
            continue
        if layer is not None:
            own = parameters[layer.activation.name]
            source = layer.activation.name
            activation = editor.dequantized(stored[source, source], values[source], own)
            node.inputs = tuple(editor.layer_inputs(layer, activation, own))
        editor.nodes.append(node)
        for result_ in node.outputs:
            if result_ is not None:
                quantize(result_)
    return editor.finish()


def _wanted_forms(graph: Graph, chosen: Mapping[str, Layer]) -> tuple[dict[str, dict[str, None]], dict[str, str]]:
    """Return how values are needed as uint8, and the nodes that move uint8 numbers.

    Returns:
        For each value that is needed as uint8, the names of the values whose parameters it needs; and for each node
        that moves uint8 numbers, by the name of its result, the name of the value whose parameters they have.
    """
    wanted: dict[str, dict[str, None]] = {}
    moved: dict[str, str] = {}
    read_as_float = {value.name for value in graph.outputs}
    for node in reversed(graph.nodes):
        layer = chosen.get(_result_name(node))
        if layer is not None:
            wanted.setdefault(layer.activation.name, {})[layer.activation.name] = None
            continue
        keys = [*wanted.get(_result_name(node), {})]
        if len(keys) == 1 and _can_move(graph, node) and _result_name(node) not in read_as_float:
            moved[_result_name(node)] = keys[0]
            for value in _moved_inputs(node):
                wanted.setdefault(value.name, {})[keys[0]] = None
            continue
        read_as_float.update(value.name for value in node.used())
    return wanted, moved


def _can_move(graph: Graph, node: Node) -> bool:
    """Return True if a node can do the same with uint8 numbers."""
    if node.domain or node.op not in _MOVING or len([v for v in node.outputs if v is not None]) != 1:
        return False
    if node.op == "MaxPool" and ops.attributes_of(node)["ceil_mode"]:
        return False  # a window may have no elements, whose maximum is the smallest number of the type
    return all(value not in graph.constants and value.dtype is DType.FLOAT32 for value in _moved_inputs(node))


def _moved_inputs(node: Node) -> list[Value]:
    count = len(node.inputs) if node.op == "Concat" else 1
    return [value for value in node.inputs[:count] if value is not None]


def _result_name(node: Node) -> str:
    return node.outputs[0].name if node.outputs and node.outputs[0] is not None else ""
