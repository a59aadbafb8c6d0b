"""Graphs without sizes: of single nodes, equal for nodes that ONNX Runtime supports equally, and of partitions."""

from __future__ import annotations

from lite_core.ir import Graph, Node, TensorType, Value, fresh_dim

__all__ = ["single_node", "without_sizes"]


def single_node(node: Node) -> Graph:
    """Return a graph of one node, with canonical names and without sizes.

    The operator, its attributes, element types and ranks remain: they determine if there is a kernel. Many nodes of a
    model have equal graphs, and one answer of ONNX Runtime serves all of them.
    """
    inputs: dict[Value, Value] = {}
    for index, value in enumerate(dict.fromkeys(node.used())):
        inputs[value] = Value(f"input_{index}", _rank_only(value.type))
    outputs = [
        None if value is None else Value(f"output_{index}", value.type.with_shape(None))
        for index, value in enumerate(node.outputs)
    ]
    attributes = {key: a.copy() if isinstance(a, Graph) else a for key, a in node.attributes.items()}
    operands = [None if value is None else inputs[value] for value in node.inputs]
    copy = Node(node.op, operands, outputs, attributes, domain=node.domain, name=node.op)
    graph = Graph("one node", inputs=inputs.values(), nodes=[copy], outputs=[v for v in outputs if v is not None])
    graph.replace_uses(inputs)
    return graph


def without_sizes(graph: Graph) -> Graph:
    """Return a copy of a graph that takes inputs of any size."""
    copy = graph.copy()
    for value in copy.inputs:
        value.type = _rank_only(value.type)
    return copy


def _rank_only(type: TensorType) -> TensorType:
    return type.with_shape(None if type.shape is None else tuple(fresh_dim("size") for _ in type.shape))
