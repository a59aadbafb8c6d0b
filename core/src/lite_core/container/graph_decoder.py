"""Decoding of graphs from JSON.

The document is ``{"types": [type, ...], "packed": [packed, ...], "graph": graph}``. Types are encoded as in
:mod:`lite_core.container.types_decoder`; all other parts refer to a type by its number in that list, and to an array by
the number of its section. ``packed`` lists the arrays that programs read in another order, each as ``[array, split,
order, depth, columns, width, lanes]`` with the fields of :class:`~lite_core.ir.PanelLayout`; the first entry of an
array is the order in which its section stores it. ``"stripped": [array, ...]`` lists the arrays that the file leaves
out. ``"packages": {"domain": [distribution, version], ...}`` names the packages whose plugins provided operators when
the file was written; it is omitted if all are Lite's own. A graph is::

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
from functools import partial
from typing import Any

from lite_core.container.types_decoder import decode_type
from lite_core.ir import Array, Attribute, DType, Graph, Node, Origin, PanelLayout, TensorType, Value

__all__ = ["MOST_NESTING", "GraphDecoder", "decode_packed"]

# Limit of nested graphs: functions that visit them recurse, and must not exhaust the stack.
MOST_NESTING = 32
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


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
        self.graph = self._graph(document["graph"], MOST_NESTING)

    def _graph(self, data: Any, nesting: int) -> Graph:
        if not nesting:
            raise ValueError(f"graphs are nested more than {MOST_NESTING} deep")
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
        domain, name = _text(data.get("domain", "")), _text(data.get("name", ""))
        origin = Origin(*map(_text, data["from"])) if "from" in data else None
        return Node(_text(data["op"]), inputs, outputs, attributes, domain=domain, name=name, origin=origin)

    def _attribute(self, kind: str, data: Any, nesting: int) -> Attribute:
        if kind == "graph":
            return self._inner_graph(data, nesting - 1)
        if kind == "tensor":
            type, number = data
            return self._array_of(number, self._types[type])
        if kind in ("ints", "floats", "strs"):
            return tuple([_SCALARS[kind[:-1]](element) for element in data])  # type: ignore[return-value]
        if kind not in _SCALARS:
            raise ValueError(f"{kind!r} is not a kind of attribute")
        return _SCALARS[kind](data)

    def _inner_graph(self, data: Any, nesting: int) -> Graph:
        first = self._count
        graph = self._graph(data, nesting)
        for number in range(first, self._count):  # its values are not visible outside
            if (value := self._values.pop(number, None)) is not None:
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


def decode_packed(document: Any) -> list[tuple[int, PanelLayout]]:
    """Return the packed arrays of a document: the number of each, and the order of its elements.

    Raises:
        LookupError, TypeError, ValueError: the JSON is not a list of them.
    """
    found = []
    for number, split, order, *sizes in document.get("packed", []):
        depth, columns, width, lanes = map(_integer, sizes)
        layout = PanelLayout(_tuple_of(int, split), _tuple_of(int, order), depth, columns, width, lanes)
        found.append((_integer(number), layout))
    return found


def _expect(wanted: Any, data: Any) -> Any:
    if type(data) is not wanted:
        raise TypeError(f"{wanted.__name__} is expected, found {data!r:.200}")
    return data


_text: Callable[[Any], str] = partial(_expect, str)
_integer: Callable[[Any], int] = partial(_expect, int)


def _tuple_of(wanted: Any, data: Iterable[Any]) -> tuple[Any, ...]:
    found = tuple(data)
    if not {*map(type, found)} <= {wanted}:
        raise TypeError(f"{wanted.__name__} is expected, found {found!r:.200}")
    return found


def _decode_float(data: Any) -> float:
    if type(data) is float:
        return data
    return _NOT_FINITE[data] if type(data) is str else float(_integer(data))


_SCALARS: Mapping[str, Callable[[Any], Attribute]]
_SCALARS = {"int": _integer, "float": _decode_float, "str": _text, "dtype": DType}
