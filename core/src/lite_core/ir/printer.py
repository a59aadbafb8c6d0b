"""A graph as text for people and as plain data for programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir.graph import Attribute, Graph, Node, Value
from lite_core.ir.types import DType

__all__ = ["format_attribute", "format_graph", "graph_to_dict"]

_LONGEST_TENSOR = 8  # elements of a tensor attribute or constant that are spelled out


def format_graph(graph: Graph, *, origins: bool = False) -> str:
    """The graph as text, one line a node.

    Args:
        graph: what to print; sub-graphs are indented below their node.
        origins: add where each node comes from in the model that was read.
    """
    return "\n".join(_lines(graph, "", origins))


def _lines(graph: Graph, indent: str, origins: bool) -> list[str]:
    inputs = ", ".join(repr(v) for v in graph.inputs)
    lines = [f"{indent}graph {graph.name}({inputs}) {{"]
    lines += [f"{indent}  const %{v.name}: {_constant(v, array)}" for v, array in graph.constants.items()]
    for node in graph.nodes:
        lines += _node_lines(node, indent + "  ", origins)
    lines.append(f"{indent}  return {', '.join(repr(v) for v in graph.outputs)}")
    return [*lines, f"{indent}}}"]


def _node_lines(node: Node, indent: str, origins: bool) -> list[str]:
    results = ", ".join("_" if v is None else repr(v) for v in node.outputs)
    arguments = ", ".join("_" if v is None else f"%{v.name}" for v in node.inputs)
    plain = {k: a for k, a in node.attributes.items() if not isinstance(a, Graph)}
    attributes = ", ".join(f"{k}={format_attribute(a)}" for k, a in plain.items())
    line = f"{indent}{results} = {node.qualified_op}({arguments})"
    if attributes:
        line += f" {{{attributes}}}"
    if origins and node.origin:
        line += f"  # {node.origin}"
    lines = [line]
    for key, attribute in node.attributes.items():
        if isinstance(attribute, Graph):
            lines.append(f"{indent}  {key} =")
            lines += _lines(attribute, indent + "    ", origins)
    return lines


def _constant(value: Value, array: np.ndarray[Any, Any]) -> str:
    return f"{value.type} = {_array(array)}" if array.size <= _LONGEST_TENSOR else str(value.type)


def _array(array: np.ndarray[Any, Any]) -> str:
    return np.array2string(array, separator=", ", threshold=_LONGEST_TENSOR).replace("\n", "")


def format_attribute(attribute: Attribute) -> str:
    """An attribute's value as it stands in the printed graph."""
    if isinstance(attribute, DType):
        return attribute.value
    if isinstance(attribute, np.ndarray):
        if attribute.size <= _LONGEST_TENSOR:
            return f"{attribute.dtype.name}{_array(attribute)}"
        return f"{attribute.dtype.name}{list(attribute.shape)}"
    if isinstance(attribute, tuple):
        return "[" + ", ".join(format_attribute(a) for a in attribute) + "]"
    if isinstance(attribute, float):
        return f"{attribute:.9g}"
    return repr(attribute) if isinstance(attribute, str) else str(attribute)


def graph_to_dict(graph: Graph) -> dict[str, Any]:
    """The graph as JSON-ready data. Constants appear by type only, never their numbers."""
    return {
        "name": graph.name,
        "metadata": dict(graph.metadata),
        "inputs": [_value_to_dict(v) for v in graph.inputs],
        "outputs": [_value_to_dict(v) for v in graph.outputs],
        "constants": [_value_to_dict(v) for v in graph.constants],
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
