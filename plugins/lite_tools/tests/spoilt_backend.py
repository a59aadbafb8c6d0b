"""A backend that computes by the references, and then spoils the results of chosen nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lite_core.backend import Backend, Buffer, Device, Executable, No, Options, Partition, Yes
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Node
from lite_core.observing import Observable, Observer
from lite_core.ops.evaluate import evaluate_graph

__all__ = ["Spoil", "SpoiltBackend", "chain"]

Array = np.ndarray[Any, Any]
#: Changes the result of a node, given the options that its partition was compiled with.
Spoil = Callable[[Array, Options], Array]


class SpoiltBackend(Backend):
    """The backend ``spoilt``.

    Args:
        spoils: what is done to the result of a node, by its name.
        name: the backend's name.
        refuses: names of nodes that it refuses.
        fails: names of nodes that it accepts, and fails to compile.
    """

    def __init__(
        self,
        spoils: Mapping[str, Spoil],
        name: str = "spoilt",
        refuses: Sequence[str] = (),
        fails: Sequence[str] = (),
    ) -> None:
        self.name = name
        self._spoils, self._refuses, self._fails = spoils, refuses, fails
        #: The options of every partition, with the names of its nodes.
        self.compiled: list[tuple[Options, list[str]]] = []

    def probe(self) -> list[Device]:
        return [Device(self.name)]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return No("it was told to") if node.name in self._refuses or node.subgraphs else Yes()

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        if any(node.name in self._fails for node in part.graph.nodes):
            raise ValueError("out of registers")
        self.compiled.append((options, [node.name for node in part.graph.nodes]))
        return _Run(part, options, self._spoils)


class _Run(Observable):
    scratch_bytes = 0

    def __init__(self, part: Partition, options: Options, spoils: Mapping[str, Spoil]) -> None:
        self._graph, self._options, self._spoils = part.graph, options, spoils

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        self._run(inputs, outputs, lambda node: None)

    def run_observed(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None, observer: Observer
    ) -> None:
        self._run(inputs, outputs, lambda node: observer.starts(f"spoilt_{node.op.lower()}", [node.name]))

    def _run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], starts: Callable[[Node], None]) -> None:
        def spoil(node: Node, results: list[Array]) -> None:
            starts(node)
            if node.name in self._spoils:
                results[0] = np.asarray(self._spoils[node.name](results[0], self._options), results[0].dtype)

        results = evaluate_graph(self._graph, [buffer.data for buffer in inputs], observe=spoil)
        for buffer, result in zip(outputs, results):
            buffer.store(result)


def chain(length: int) -> Graph:
    """Return a graph of nodes ``n0``, ``n1``, ... that each pass on their input of whole, positive numbers."""
    b = GraphBuilder("chain")
    x = b.input("x", "float32", [4])
    for number in range(length):
        x = b.add("Abs" if number % 2 else "Relu", [x], name=f"n{number}")
    b.output(x, "y")
    return b.build()
