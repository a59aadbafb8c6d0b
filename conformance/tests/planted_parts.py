"""The parts that planted bugs are made of: a correct backend and executable, one method of which a bug overrides.

Every public subclass of :class:`PlantedBackend` or :class:`PlantedExecutable` in the other modules ``planted_...`` is
one bug; its name and docstring say what is wrong. ``test_planted_bugs.py`` says which case of the suite finds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lite_core.backend import Buffer, Device, Executable, Memory, No, Options, Partition, Yes
from lite_core.builtin import HostBackend
from lite_core.ir import Graph, Node, Value
from lite_core.memory import HostMemory
from lite_core.ops.evaluate import evaluate_node

__all__ = ["Array", "PlantedBackend", "PlantedExecutable", "backend_of"]

Array = np.ndarray[Any, Any]


class PlantedExecutable:
    """A correct executable."""

    scratch_bytes = 0

    def __init__(self, graph: Graph, backend: PlantedBackend, options: Options) -> None:
        self.graph = graph
        self.backend = backend
        self.options = options
        self.constants: dict[Value, Array] = self.packed(graph)

    def packed(self, graph: Graph) -> dict[Value, Array]:
        """Return the constants in the form that runs read."""
        return {value: array.copy() for value, array in graph.constants.items()}

    def read(self, inputs: Sequence[Buffer]) -> list[Array]:
        """Return the inputs as arrays."""
        return [buffer.data for buffer in inputs]

    def compute(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs of the graph."""
        known: dict[Value, Array] = {**self.constants, **dict(zip(self.graph.inputs, inputs))}
        for node in self.graph.nodes:
            results = self.node(node, [None if v is None else known[v] for v in node.inputs])
            known.update((v, a) for v, a in zip(node.outputs, results) if v is not None)
        return [known[v] for v in self.graph.outputs]

    def node(self, node: Node, operands: Sequence[Array | None]) -> list[Array]:
        """Return the outputs of one node."""
        return evaluate_node(node, list(operands), {})

    def write(self, results: Sequence[Array], outputs: Sequence[Buffer]) -> None:
        """Store the results."""
        for buffer, array in zip(outputs, results):
            buffer.store(np.ascontiguousarray(array).reshape(array.shape))

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        self.write(self.compute(self.read(inputs)), outputs)


class PlantedBackend(HostBackend):
    """A correct backend with all operators."""

    name = "planted"
    Executable: type[PlantedExecutable] = PlantedExecutable
    tensors: Memory = HostMemory()

    def probe(self) -> list[Device]:
        return [Device(self.name, name="wrong on purpose")]

    def memory(self, device: Device) -> Memory:
        return self.tensors

    def supports(self, node: Node, device: Device) -> Yes | No:
        return super().supports(node, device)

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return self.Executable(part.graph, self, options)


def backend_of(kind: type[PlantedBackend] | type[PlantedExecutable]) -> PlantedBackend:
    """Return a new backend with a bug."""
    if issubclass(kind, PlantedBackend):
        backend = kind()
    else:
        backend = PlantedBackend()
        backend.Executable = kind
    backend.name = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
    return backend


def bugs_of(module: Any) -> list[type[PlantedBackend] | type[PlantedExecutable]]:
    """Return the bugs that a module defines."""
    kinds = (PlantedBackend, PlantedExecutable)
    found: list[Callable[..., Any]] = [
        kind
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, kinds) and kind.__module__ == module.__name__ and name[0] != "_"
    ]
    return found  # type: ignore[return-value]
