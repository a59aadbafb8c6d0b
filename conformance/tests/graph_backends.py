"""Correct backends that run graphs node by node, with methods that tests override to add errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lite_conformance.cases.case import Case, Context, Settings
from lite_conformance.drive.subject import Subject
from lite_conformance.judge.outcome import Replay
from lite_conformance.reports.record import Record
from lite_conformance.run.executor import execute
from lite_core.backend import Buffer, Device, Executable, No, Options, Partition, Yes
from lite_core.builtin import HostBackend
from lite_core.ir import Graph, Node, TensorType
from lite_core.ops.evaluate import evaluate_node

Array = np.ndarray[Any, Any]
# Values to arrays, without omitted inputs (None).
Values = dict[Any, Array]


class Walker(HostBackend):
    """A backend that runs each node by its reference; subclasses override one of its methods."""

    name = "walker"
    #: The operators it supports; all if empty.
    takes: frozenset[str] = frozenset()

    def probe(self) -> list[Device]:
        return [Device(self.name)]

    def supports(self, node: Node, device: Device) -> Yes | No:
        if self.takes and node.op not in self.takes:
            return No(f"{self.name} has no {node.op}")
        return super().supports(node, device)

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return _Walk(self, part.graph)

    def begin(self, graph: Graph, known: Values) -> None:
        """Called before the first node, with the inputs and constants."""

    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        """Return the outputs of one node."""
        return evaluate_node(node, [None if v is None else known[v] for v in node.inputs], known)

    def finish(self, graph: Graph, known: Values) -> list[Array]:
        """Return the outputs of the graph."""
        return [known[v] for v in graph.outputs]

    def array_of(self, buffer: Buffer) -> Array:
        array: Array = buffer.data
        return array


def producer(graph: Graph, node: Node) -> Node | None:
    """Return the node that produces the first input of another, or None."""
    first = node.inputs[0] if node.inputs else None
    return None if first is None else graph.producers().get(first)


class _Walk:
    scratch_bytes = 0

    def __init__(self, backend: Walker, graph: Graph) -> None:
        self._backend = backend
        self._graph = graph

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        backend, graph = self._backend, self._graph
        known: Values = {v: backend.array_of(b) for v, b in zip(graph.inputs, inputs)}
        known.update(graph.constants)
        backend.begin(graph, known)
        for node in graph.nodes:
            results = backend.compute(graph, node, known)
            known.update((v, a) for v, a in zip(node.outputs, results) if v is not None)
        for buffer, array in zip(outputs, backend.finish(graph, known)):
            buffer.store(np.ascontiguousarray(array).reshape(array.shape))


class Storage:
    """Storage of a device that is not an array, so that code that uses it as one fails."""

    def __init__(self, content: Array) -> None:
        self.content = content


class FarMemory:
    """A memory space other than main memory."""

    space = "far"

    def allocate(self, type: TensorType) -> Storage:
        return Storage(np.empty([int(d) for d in type.shape or ()], type.dtype.numpy))  # type: ignore[arg-type]

    def upload(self, array: Array, data: Storage) -> None:
        np.copyto(data.content, array)

    def download(self, data: Storage) -> Array:
        copy: Array = data.content.copy()
        return copy


class FarWalker(Walker):
    """A backend whose tensors are in :class:`FarMemory`."""

    name = "far"
    tensors = FarMemory()

    def memory(self, device: Device) -> FarMemory:
        return self.tensors

    def array_of(self, buffer: Buffer) -> Array:
        array: Array = buffer.data.content
        return array


def record_of(
    cases: dict[str, Case], name: str, backend: HostBackend | Subject, keep: Callable[[Replay], object] | None = None
) -> Record:
    """Run a case on a backend and return the record."""
    subject = backend if isinstance(backend, Subject) else subject_of(backend)
    return execute(cases[name], Context(subject, Settings(subject.backend.name)), keep)


def subject_of(backend: HostBackend) -> Subject:
    """Return the first device of a backend as a subject."""
    devices = backend.probe()
    assert isinstance(devices, list)
    return Subject(backend, devices[0])
