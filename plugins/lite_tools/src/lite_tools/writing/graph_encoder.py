"""Encoding of graphs as the JSON that :mod:`lite_core.container.graph_decoder` describes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lite_core.container.graph_decoder import MOST_NESTING
from lite_core.container.records import PackedConstant
from lite_core.errors import GraphError
from lite_core.ir import Attribute, DType, Graph, Node, TensorType, Value
from lite_core.ops.missing import packages
from lite_tools.writing.record_encoder import encode_type

__all__ = ["GraphEncoder"]

Array = np.ndarray[Any, Any]


class GraphEncoder:
    """Encoder of a graph as JSON.

    Args:
        graph: a valid graph.
        names: the name in the file of each symbol.
        packed: arrays with the orders in which programs read them.

    Attributes:
        document: the JSON.
        arrays: the arrays, by their numbers in the document; an array that is used twice is listed once.

    Raises:
        GraphError: an attribute has an unsupported type, or graphs are nested too deep.
    """

    def __init__(self, graph: Graph, names: Mapping[str, str], packed: Sequence[PackedConstant] = ()) -> None:
        self.arrays: list[Array] = []
        self._array_numbers: dict[int, int] = {}
        self._types: dict[TensorType, int] = {}
        self._values: dict[Value, int] = {}
        encoded = self._graph(graph, MOST_NESTING)
        self.document: dict[str, Any] = {
            "types": [encode_type(type, names) for type in self._types],
            "packed": [[self._array(constant.array), *constant.layout] for constant in packed],
            "graph": encoded,
        }
        if named := packages({node.domain for scope in graph.walk() for node in scope.nodes}):
            self.document["packages"] = {domain: [*package] for domain, package in named.items()}

    def _graph(self, graph: Graph, nesting: int) -> Any:
        if not nesting:
            raise GraphError(f"graph {graph.name!r} is nested more than {MOST_NESTING} deep, the limit of a file")
        return {
            "name": graph.name,
            **({"meta": {str(k): str(v) for k, v in graph.metadata.items()}} if graph.metadata else {}),
            "inputs": [self._define(v) for v in graph.inputs],
            "constants": [[*self._define(v), self._array(array)] for v, array in graph.constants.items()],
            "nodes": [self._node(node, nesting) for node in graph.nodes],
            "outputs": [self._values[v] for v in graph.outputs],
        }

    def _node(self, node: Node, nesting: int) -> Any:
        attributes = {k: self._attribute(node, k, a, nesting) for k, a in node.attributes.items()}
        optional = {"domain": node.domain, "name": node.name, "attrs": attributes}
        return {
            "op": node.op,
            **{key: data for key, data in optional.items() if data},
            "in": [None if v is None else self._values[v] for v in node.inputs],
            "out": [None if v is None else self._define(v) for v in node.outputs],
            **({"from": [node.origin.op, node.origin.name]} if node.origin else {}),
        }

    def _attribute(self, node: Node, key: str, attribute: Attribute, nesting: int) -> Any:
        if isinstance(attribute, DType):
            return ["dtype", attribute.value]
        if isinstance(attribute, Graph):
            return ["graph", self._graph(attribute, nesting - 1)]
        if isinstance(attribute, np.ndarray):
            return ["tensor", [self._type(TensorType.of_array(attribute)), self._array(attribute)]]
        if isinstance(attribute, (int, np.integer)):
            return ["int", int(attribute)]
        if isinstance(attribute, (float, np.floating)):
            return ["float", _encode_float(attribute)]
        if isinstance(attribute, str):
            return ["str", attribute]
        if isinstance(attribute, tuple):
            if all(isinstance(a, (int, np.integer)) for a in attribute):
                return ["ints", [int(a) for a in attribute]]
            if all(isinstance(a, (float, np.floating)) for a in attribute):
                return ["floats", [_encode_float(a) for a in attribute]]
            if all(isinstance(a, str) for a in attribute):
                return ["strs", list(attribute)]
        raise GraphError(f"{node.describe()}: a file cannot hold the type of attribute {key!r}: {attribute!r:.200}")

    def _define(self, value: Value) -> list[Any]:
        self._values[value] = len(self._values)
        return [value.name, self._type(value.type)]

    def _type(self, type: TensorType) -> int:
        return self._types.setdefault(type, len(self._types))

    def _array(self, array: Array) -> int:
        number = self._array_numbers.setdefault(id(array), len(self.arrays))
        if number == len(self.arrays):
            self.arrays.append(array)
        return number


def _encode_float(number: Any) -> float | str:
    number = float(number)
    return number if math.isfinite(number) else str(number)
