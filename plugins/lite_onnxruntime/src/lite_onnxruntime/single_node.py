"""A graph of one node, the same for nodes that ONNX Runtime cannot answer differently for."""

from __future__ import annotations

from lite_core.ir import Graph, Node, TensorType, Value, fresh_dim

__all__ = ["single_node"]


def single_node(node: Node) -> Graph:
    """A node alone, its tensors the inputs and outputs, sizes and names forgotten.

    What is left tells whether there is a kernel: the operator, its attributes, element types and ranks. So a model
    with a hundred convolutions asks a few times.
    """
    alone: dict[Value, Value] = {}
    for index, value in enumerate(dict.fromkeys(node.used())):
        alone[value] = Value(f"input_{index}", _rank_only(value.type))
    outputs = [
        None if value is None else Value(f"output_{index}", value.type.with_shape(None))
        for index, value in enumerate(node.outputs)
    ]
    attributes = {key: a.copy() if isinstance(a, Graph) else a for key, a in node.attributes.items()}
    inputs = [None if value is None else alone[value] for value in node.inputs]
    made = Node(node.op, inputs, outputs, attributes, domain=node.domain, name=node.op)
    graph = Graph("one node", inputs=alone.values(), nodes=[made], outputs=[v for v in outputs if v is not None])
    graph.replace_uses(alone)
    return graph


def _rank_only(type: TensorType) -> TensorType:
    return type.with_shape(None if type.shape is None else tuple(fresh_dim("size") for _ in type.shape))
