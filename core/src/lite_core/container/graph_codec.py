"""Encoding and decoding graphs as JSON.

The document is ``{"types": [type, ...], "graph": graph}``. Types are encoded as in
:mod:`lite_core.container.types_codec`; all other parts refer to a type by its number in that list, and to an array by
the number of its section. A graph is::

    {"name": "main", "meta": {"key": "value", ...},
     "inputs": [[name, type], ...],
     "constants": [[name, type, array], ...],
     "nodes": [node, ...],
     "outputs": [value, ...]}

and a node, where ``domain``, ``name``, ``attrs`` and ``from`` (operator and name in the model that was read) are
omitted if empty::

    {"op": "Conv", "domain": "", "name": "conv1", "in": [value or null, ...], "out": [[name, type] or null, ...],
     "attrs": {"group": ["int", 1], ...}, "from": ["conv2d", "conv2d_0"]}

A value is a number. Values are numbered through the whole document in the order of definition: inputs, constants, and
for each node the values of the graphs in its attributes, then its outputs; a null output has no number. Graphs in
attributes refer to values of enclosing graphs by their numbers.

An attribute is ``[kind, data]``; the kinds are ``int``, ``float``, ``str``, ``dtype`` (an element type's name),
``ints``, ``floats``, ``strs``, ``tensor`` (``[type, array]``) and ``graph``. Non-finite floats, which JSON lacks, are
the texts ``nan``, ``inf`` and ``-inf``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from lite_core.container.types_codec import decode_type, encode_type
from lite_core.errors import GraphError
from lite_core.ir import Attribute, DType, Graph, Node, Origin, TensorType, Value

__all__ = ["GraphDecoder", "GraphEncoder"]

Array = np.ndarray[Any, Any]
# Limit of nested graphs: functions that visit them recurse, and must not exhaust the stack.
_MOST_NESTING = 32
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class GraphEncoder:
    """Encoder of a graph as JSON.

    Args:
        graph: a valid graph.
        names: the name in the file of each symbol.

    Attributes:
        document: the JSON.
        arrays: the arrays, by their numbers in the document; an array that is used twice is listed once.

    Raises:
        GraphError: an attribute has an unsupported type, or graphs are nested too deep.
    """

    def __init__(self, graph: Graph, names: Mapping[str, str]) -> None:
        self.arrays: list[Array] = []
        self._array_numbers: dict[int, int] = {}
        self._types: dict[TensorType, int] = {}
        self._values: dict[Value, int] = {}
        encoded = self._graph(graph, _MOST_NESTING)
        self.document = {"types": [encode_type(type, names) for type in self._types], "graph": encoded}

    def _graph(self, graph: Graph, nesting: int) -> Any:
        if not nesting:
            raise GraphError(f"graph {graph.name!r} is nested more than {_MOST_NESTING} deep, the limit of a file")
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


class GraphDecoder:
    """Decoder of a graph from JSON.

    The graph satisfies every rule of :func:`lite_core.ir.verify_structure`. The rules are checked during decoding,
    which is cheaper than verifying afterwards.

    Args:
        document: the JSON.
        array_of: returns the array with a number and a type; raises ValueError if they do not match.
        names: the name in this process of each symbol.

    Raises:
        ArithmeticError, AttributeError, LookupError, TypeError, ValueError: the JSON is not a graph.
    """

    def __init__(self, document: Any, array_of: Callable[[int, TensorType], Array], names: Mapping[str, str]) -> None:
        self._array_of = array_of
        # Dicts by number, not lists, so that -1 is an error.
        self._types = dict(enumerate([decode_type(data, names) for data in document["types"]]))
        self._values: dict[int, Value] = {}  # values that are visible to the next node
        self._names: set[str] = set()
        self._count = 0
        self.graph = self._graph(document["graph"], _MOST_NESTING)

    def _graph(self, data: Any, nesting: int) -> Graph:
        if not nesting:
            raise ValueError(f"graphs are nested more than {_MOST_NESTING} deep")
        graph = Graph(_text(data["name"]), inputs=[self._define(*value) for value in data["inputs"]])
        graph.metadata = {_text(key): _text(text) for key, text in data.get("meta", {}).items()}
        for name, type, number in data["constants"]:
            value = self._define(name, type)
            graph.constants[value] = self._array_of(number, value.type)
        graph.nodes = [self._node(node, nesting) for node in data["nodes"]]
        graph.outputs = [self._values[number] for number in data["outputs"]]
        return graph

    def _node(self, data: Any, nesting: int) -> Node:
        values = self._values
        inputs = [None if number is None else values[number] for number in data["in"]]
        attributes = {key: self._attribute(kind, a, nesting) for key, (kind, a) in data.get("attrs", {}).items()}
        outputs = [None if value is None else self._define(*value) for value in data["out"]]
        if not any(outputs):
            raise ValueError(f"a node {data['op']!r} writes nothing, every node must have at least one output")
        return Node(
            _text(data["op"]),
            inputs,
            outputs,
            attributes,
            domain=_text(data.get("domain", "")),
            name=_text(data.get("name", "")),
            origin=Origin(*map(_text, data["from"])) if "from" in data else None,
        )

    def _attribute(self, kind: str, data: Any, nesting: int) -> Attribute:
        if kind == "ints":
            return _tuple_of(int, data)
        if kind == "int":
            return _integer(data)
        if kind == "graph":
            return self._inner_graph(data, nesting - 1)
        if kind == "tensor":
            type, number = data
            return self._array_of(number, self._types[type])
        if kind == "floats":
            return tuple([_decode_float(number) for number in data])
        if kind == "strs":
            return _tuple_of(str, data)
        if kind not in _SCALARS:
            raise ValueError(f"{kind!r} is not a kind of attribute")
        return _SCALARS[kind](data)

    def _inner_graph(self, data: Any, nesting: int) -> Graph:
        first = self._count
        graph = self._graph(data, nesting)
        for number in range(first, self._count):  # its values are not visible outside
            value = self._values.pop(number, None)
            if value is not None:
                self._names.discard(value.name)
        return graph

    def _define(self, name: str, type: int) -> Value:
        if not _text(name) or name in self._names:
            raise ValueError(f"a value's name must be unique and not empty, is {name!r}")
        value = Value(name, self._types[type])
        self._names.add(name)
        self._values[self._count] = value
        self._count += 1
        return value


def _text(data: Any) -> str:
    if type(data) is not str:
        raise TypeError(f"a text is expected, found {data!r:.200}")
    return data


def _integer(data: Any) -> int:
    if type(data) is not int:
        raise TypeError(f"an integer is expected, found {data!r:.200}")
    return data


def _tuple_of(wanted: Any, data: Iterable[Any]) -> tuple[Any, ...]:
    found = tuple(data)
    if not {*map(type, found)} <= {wanted}:
        raise TypeError(f"{wanted.__name__} is expected, found {found!r:.200}")
    return found


def _decode_float(data: Any) -> float:
    if type(data) is float:
        return data
    return _NOT_FINITE[data] if type(data) is str else float(_integer(data))


_SCALARS: Mapping[str, Callable[[Any], Attribute]] = {"float": _decode_float, "str": _text, "dtype": DType}
