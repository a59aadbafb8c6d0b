"""The nodes between results that two runs share: the smallest parts of a network whose errors can be told apart."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from lite_core.ir import Graph, Node, Value

__all__ = ["Network", "Region"]

Array = np.ndarray[Any, Any]


class Region(NamedTuple):
    """Nodes that compute a result from results that are known.

    Attributes:
        graph: the graph that contains them: the model's, or a body of a control node.
        nodes: the nodes, in the graph's order.
        inputs: the known values that they read, in order; constants are not among them.
        constants: the constants that they read, by name.
        output: the value that they compute.
    """

    graph: Graph
    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    constants: Mapping[str, Array]
    output: Value

    @property
    def ops(self) -> str:
        """The operators, joined by ``+``, each once."""
        return "+".join(dict.fromkeys(node.qualified_op for node in self.nodes))


class Network:
    """A graph whose nodes are found by the values that they compute, also those in bodies of control nodes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._producers: dict[str, tuple[Graph, int]] = {}
        self._constants: dict[str, Array] = {}
        for scope in graph.walk():
            self._constants.update((value.name, array) for value, array in scope.constants.items())
            for index, node in enumerate(scope.nodes):
                for value in node.outputs:
                    if value is not None:
                        self._producers.setdefault(value.name, (scope, index))

    def region(self, name: str, known: Collection[str]) -> Region | None:
        """Return the nodes that compute a value from known values, constants and the inputs of its graph.

        Args:
            name: the value; it need not be known.
            known: names of values at which the search ends.
        """
        found = self._producers.get(name)
        if found is None:
            return None
        scope = found[0]
        chosen: set[int] = set()
        inputs: dict[Value, None] = {}
        constants: dict[str, Array] = {}
        waiting = [found[1]]
        while waiting:
            index = waiting.pop()
            if index in chosen:
                continue
            chosen.add(index)
            for value in scope.nodes[index].used():
                producer = self._producers.get(value.name)
                if value.name in self._constants:
                    constants[value.name] = self._constants[value.name]
                elif value.name in known or producer is None or producer[0] is not scope:
                    inputs[value] = None
                else:
                    waiting.append(producer[1])
        output = next(v for v in scope.nodes[found[1]].outputs if v is not None and v.name == name)
        return Region(scope, tuple(scope.nodes[i] for i in sorted(chosen)), tuple(inputs), constants, output)
