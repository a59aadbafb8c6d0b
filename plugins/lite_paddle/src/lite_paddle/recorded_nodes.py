"""The nodes that Paddle's operators become: recorded ones, which backends can be asked about without a model.

``recorded_nodes.json`` has them for every operator that lite-paddle lowers: those of small programs with drawn
attributes, after the passes that every model goes through. ``scripts/record_paddle_nodes.py`` writes it. The file has

* ``nodes``: each different node as ``[operator, inputs, outputs, attributes]``. A type is ``"float32[2,3]"``; sizes
  that only the run knows are ``?0``, ``?1`` ..., ``float32`` alone has an unknown rank, and null stands for an omitted
  value.
* ``operators``: the numbers of the nodes of each of Paddle's operators; none if nothing is left to compute.
* ``graphs``: sub-graphs of nodes (``If``, ``Loop``), which attributes name by their number: the types of their values,
  which of these are inputs and outputs, and nodes whose inputs and outputs are numbers of values.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from lite_core.ir import DType, Graph, Node, TensorType, Value
from lite_core.ir.dims import SymbolicDim

__all__ = ["Recorder", "recorded_nodes", "recorded_operators"]


@cache
def _document() -> dict[str, Any]:
    text = pkgutil.get_data("lite_paddle", "recorded_nodes.json")
    assert text is not None, "the package was installed without its recorded_nodes.json"
    document: dict[str, Any] = json.loads(text)
    return document


def recorded_operators() -> dict[str, list[int]]:
    """Return for each of Paddle's operators the numbers of its nodes."""
    found: dict[str, list[int]] = _document()["operators"]
    return found


@cache
def recorded_nodes() -> list[Node]:
    """Return all recorded nodes; the inputs and outputs of each are values of its own."""
    decoder = _Decoder(_document()["graphs"])
    return [decoder.node(data, str(number)) for number, data in enumerate(_document()["nodes"])]


class Recorder:
    """Collects nodes, each different one once."""

    def __init__(self) -> None:
        self._nodes: dict[str, int] = {}
        self._graphs: dict[str, int] = {}
        self._operators: dict[str, set[int]] = {}

    def add(self, operator: str, nodes: Iterable[Node]) -> None:
        """Record that an operator of Paddle becomes these nodes."""
        found = self._operators.setdefault(operator, set())
        for node in nodes:
            symbols: dict[str, str] = {}
            inputs, outputs = ([_type_text(v, symbols) for v in vs] for vs in (node.inputs, node.outputs))
            text = json.dumps([node.qualified_op, inputs, outputs, self._attributes(node)], sort_keys=True)
            found.add(self._nodes.setdefault(text, len(self._nodes)))

    def text(self) -> str:
        """Return the file: a line for each node, graph and operator, in an order that additions change little."""
        nodes = sorted(self._nodes)
        place = {self._nodes[text]: position for position, text in enumerate(nodes)}
        lines = (
            f"{json.dumps(name)}: {json.dumps(sorted(place[n] for n in numbers))}"
            for name, numbers in sorted(self._operators.items())
        )
        return (
            '{"nodes": [\n' + ",\n".join(nodes) + '\n],\n"graphs": [\n' + ",\n".join(self._graphs)
            + '\n],\n"operators": {\n' + ",\n".join(lines) + "\n}}\n"
        )  # fmt: skip

    def _attributes(self, node: Node) -> dict[str, Any]:
        return {name: self._attribute(value) for name, value in node.attributes.items()}

    def _attribute(self, value: Any) -> Any:
        if isinstance(value, Graph):
            return {"graph": self._graph(value)}
        if isinstance(value, DType):
            return {"type": value.value}
        if isinstance(value, np.ndarray):
            return {"array": value.dtype.name, "elements": value.tolist()}
        if isinstance(value, float):
            return {"float": repr(value)}
        return list(value) if isinstance(value, tuple) else value

    def _graph(self, graph: Graph) -> int:
        """Record a sub-graph, with the values that it captures; return its number."""
        values = list(dict.fromkeys([*graph.captured(), *graph.defined(), *graph.outputs]))
        place = {value: number for number, value in enumerate(values)}
        nodes = [
            [
                node.qualified_op,
                *([None if v is None else place[v] for v in group] for group in (node.inputs, node.outputs)),
                self._attributes(node),
            ]
            for node in graph.nodes
        ]
        symbols: dict[str, str] = {}
        data = {
            "values": [_type_text(value, symbols) for value in values],
            "inputs": [place[value] for value in graph.inputs],
            "outputs": [place[value] for value in graph.outputs],
            "nodes": nodes,
        }
        return self._graphs.setdefault(json.dumps(data, sort_keys=True), len(self._graphs))


def _type_text(value: Value | None, symbols: dict[str, str]) -> str | None:
    """Return a type; ``symbols`` has the sizes that were named before."""
    if value is None:
        return None
    if value.type.rank is None:
        return value.dtype.value
    sizes = [str(d) if isinstance(d, int) else symbols.setdefault(str(d), f"?{len(symbols)}") for d in value.shape]
    return f"{value.dtype.value}[{','.join(sizes)}]"


class _Decoder:
    """Makes nodes of their recorded form."""

    def __init__(self, graphs: list[dict[str, Any]]) -> None:
        self._graphs = graphs
        self._count = 0

    def node(self, data: list[Any], name: str) -> Node:
        operator, inputs, outputs, attributes = data
        return self._node(operator, [[self._value(text) for text in ts] for ts in (inputs, outputs)], attributes, name)

    def _node(self, operator: str, values: list[list[Value | None]], attributes: dict[str, Any], name: str) -> Node:
        domain, _, op = operator.rpartition(".")
        made = {key: self._attribute(value) for key, value in attributes.items()}
        return Node(op, values[0], values[1], made, domain=domain, name=name)

    def _value(self, text: str | None) -> Value | None:
        return None if text is None else self._typed(text)

    def _typed(self, text: str) -> Value:
        self._count += 1
        dtype, bracket, sizes = text.partition("[")
        dims = [d for d in sizes.rstrip("]").split(",") if d]
        shape = tuple(SymbolicDim.named(f"n{d[1:]}") if d[0] == "?" else int(d) for d in dims)
        return Value(f"v{self._count}", TensorType(DType.of(dtype), shape if bracket else None))

    def _attribute(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(value)
        if not isinstance(value, dict):
            return value
        if "graph" in value:
            return self._graph(self._graphs[value["graph"]])
        if "type" in value:
            return DType.of(value["type"])
        if "float" in value:
            return float(value["float"])
        return np.array(value["elements"], value["array"])

    def _graph(self, data: dict[str, Any]) -> Graph:
        values = [self._typed(text) for text in data["values"]]
        inputs, outputs = ([values[n] for n in data[key]] for key in ("inputs", "outputs"))
        graph = Graph("body", inputs=inputs, outputs=outputs)
        for number, (operator, *groups, attributes) in enumerate(data["nodes"]):
            chosen = [[None if n is None else values[n] for n in group] for group in groups]
            graph.nodes.append(self._node(operator, chosen, attributes, f"inner{number}"))
        return graph
