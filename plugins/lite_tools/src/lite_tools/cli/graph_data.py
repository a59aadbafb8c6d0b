"""Conversion of a graph to plain data, for JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Attribute, DType, Graph, Node, Value

__all__ = ["graph_to_dict"]


def graph_to_dict(graph: Graph) -> dict[str, Any]:
    """Convert a graph to JSON-ready data. Constants are represented by their types and sizes, without elements."""
    return {
        "name": graph.name,
        "metadata": dict(graph.metadata),
        "inputs": [_value_to_dict(v) for v in graph.inputs],
        "outputs": [_value_to_dict(v) for v in graph.outputs],
        "constants": [{**_value_to_dict(v), "bytes": array.nbytes} for v, array in graph.constants.items()],
        "nodes": [_node_to_dict(n) for n in graph.nodes],
    }


def _value_to_dict(value: Value) -> dict[str, Any]:
    shape = value.type.shape
    dims = None if shape is None else [d if isinstance(d, int) else str(d) for d in shape]
    return {"name": value.name, "dtype": value.dtype.value, "shape": dims}


def _node_to_dict(node: Node) -> dict[str, Any]:
    return {
        "name": node.name,
        "op": node.op,
        "domain": node.domain,
        "inputs": [None if v is None else v.name for v in node.inputs],
        "outputs": [None if v is None else _value_to_dict(v) for v in node.outputs],
        "attributes": {k: _attribute_to_json(a) for k, a in node.attributes.items()},
        "origin": None if node.origin is None else {"op": node.origin.op, "name": node.origin.name},
    }


def _attribute_to_json(attribute: Attribute) -> Any:
    if isinstance(attribute, Graph):
        return graph_to_dict(attribute)
    if isinstance(attribute, DType):
        return attribute.value
    if isinstance(attribute, np.ndarray):
        return {"dtype": attribute.dtype.name, "shape": list(attribute.shape)}
    return list(attribute) if isinstance(attribute, tuple) else attribute
