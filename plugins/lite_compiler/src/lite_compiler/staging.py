"""Partitions whose shapes depend on data: compiled stage by stage, as shapes become known. For any backend."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from lite_core.backend import (
    Buffer,
    Executable,
    HasNotes,
    KernelTime,
    Memory,
    MemoryUse,
    ProfilesKernels,
    ReportsMemoryUse,
)
from lite_core.ir import Graph, Node, TensorType
from lite_core.memory import HostMemory
from lite_core.memory.scratch import ScratchPool
from lite_core.ops.evaluate import evaluate_node
from lite_core.ops.infer import infer_graph
from lite_core.schedule.partition import cut

__all__ = ["Compile", "StagedExecutable", "Undecided", "is_static"]

Array = np.ndarray[Any, Any]
#: Compiles a graph whose shapes are all known.
Compile = Callable[[Graph], Executable]
#: Which nodes of a graph a backend cannot compile although shapes are known: they need elements (the axes of a
#: reduction, say) that depend on data.
Undecided = Callable[[Graph], Collection[Node]]

_MOST_SHAPES = 16


def is_static(graph: Graph, undecided: Undecided = lambda graph: ()) -> bool:
    """Whether a graph can be compiled as a whole: every shape is known, and no node is undecided."""
    return all(v.type.is_static for v in graph.defined()) and not undecided(graph)


class StagedExecutable(ProfilesKernels, HasNotes, ReportsMemoryUse):
    """Runs a graph in stages. May be used by several threads at once.

    A stage is what can be compiled once the shapes of the graph's inputs are known. The nodes that then decide further
    shapes from data (a Reshape to a computed shape, say) run on the host by their references, and what follows is a
    graph of its own, whose inputs' shapes are now known. Stages are kept by those shapes. Tensors stay in the device's
    memory; only what a node on the host reads or makes is copied.

    There is no ``save``: what follows the first stage is compiled by the process that runs it in any case, and to find
    the first one again, restoring would have to infer every shape. Kernels are found in the backend's cache, if any.

    Args:
        graph: with dimensions that depend on data. Where its inputs' shapes are known, the first stage is compiled at
            once, so that it fails, if it does, while another backend can still take its place.
        memory: where the tensors lie.
        compile: compiles a graph whose shapes are all known.
        undecided: nodes that have to wait for more than shapes.
    """

    #: What stages need is known during a run only; a pool of their own provides it.
    scratch_bytes = 0

    def __init__(self, graph: Graph, memory: Memory, compile: Compile, undecided: Undecided = lambda graph: ()) -> None:
        self._memory = memory
        self._scratch = ScratchPool()
        self._lock = threading.Lock()
        # NOTE: no method is kept: what is compiled would be freed by the collector of cycles only.
        self._stages = lru_cache(_MOST_SHAPES)(partial(_make_stage, graph, memory, compile, undecided))
        self._latest: list[tuple[Graph, Executable]] = []
        if all(v.type.is_static for v in graph.inputs):
            self._stage([v.type for v in graph.inputs])

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        self._run(inputs, outputs, None)

    def run_profiled(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None
    ) -> Sequence[KernelTime]:
        """As :meth:`run`, and says what the kernels of all stages took, and each node on the host with its copies."""
        times: list[KernelTime] = []
        self._run(inputs, outputs, times)
        return times

    @property
    def notes(self) -> Sequence[str]:
        """What the backend says of the stages that were used last."""
        said = (note for _, executable in self._latest if isinstance(executable, HasNotes) for note in executable.notes)
        return tuple(dict.fromkeys(("compiled in stages: shapes depend on data", *said)))

    def memory_use(self) -> MemoryUse:
        """Of the stages that were used last, all together."""
        told = [executable.memory_use() for _, executable in self._latest if isinstance(executable, ReportsMemoryUse)]
        uses = [use for use in told if any(use)]
        intervals = uses[0].intervals if len(uses) == 1 else ()
        arenas, scratch = sum(u.arena_bytes for u in uses), sum(u.scratch_bytes for u in uses)
        return MemoryUse(arenas, intervals, scratch, sum(u.weight_bytes for u in uses))

    def _stage(self, types: Sequence[TensorType]) -> _Stage:
        with self._lock:  # so that no thread compiles what another is compiling
            stage = self._stages(tuple(type.shape for type in types))
            self._latest = stage.parts
            return stage

    def _run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], times: list[KernelTime] | None) -> None:
        memory, stage = self._memory, self._stage([b.type for b in inputs])
        # Results of the partition are made where the caller wants them, by whichever part makes them.
        values = dict(zip((*stage.graph.inputs, *stage.graph.outputs), (*inputs, *outputs)))
        for graph, executable in stage.parts:
            for value in graph.outputs:
                type, buffer = value.type, values.get(value)
                if buffer is None:
                    values[value] = _Between(type, memory, memory.allocate(type) if type.is_static else None)
                elif buffer.data is None and type.is_static:
                    buffer.allocate(value.shape)
            size = executable.scratch_bytes
            block = self._scratch.take(memory, size) if size else None
            scratch = None if block is None else block.at(0, size)
            arguments = [values[v] for v in graph.inputs], [values[v] for v in graph.outputs], scratch
            if times is not None and isinstance(executable, ProfilesKernels):
                times += executable.run_profiled(*arguments)
            else:
                executable.run(*arguments)
            if block is not None:  # after a failure it is not kept: who knows what still writes there
                self._scratch.give_back(block)


class _Stage(NamedTuple):
    """A graph for known shapes of its inputs: what is compiled, what decides shapes, and what comes after that."""

    graph: Graph
    parts: list[tuple[Graph, Executable]]


class _Between(Buffer):
    """A tensor between parts, nobody else's: in main memory, the array that a reference made is taken as it is."""

    __slots__ = ()

    def store(self, array: Array) -> None:
        if self.data is None and self.memory.space == HostMemory.space:
            self.type, self.data = self.type.with_shape(array.shape), np.asarray(array, order="C")
        else:
            super().store(array)


class _OnHost(ProfilesKernels):
    """Runs nodes by their references, of which none reads what another one makes."""

    scratch_bytes = 0

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        self.run_profiled(inputs, outputs, scratch)

    def run_profiled(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None
    ) -> Sequence[KernelTime]:
        times, start, graph = [], time.perf_counter(), self._graph
        values, targets = dict(graph.constants), dict(zip(graph.outputs, outputs))
        for value, buffer in zip(graph.inputs, inputs):
            is_host = buffer.memory.space == HostMemory.space
            values[value] = buffer.data if is_host else buffer.memory.download(buffer.data)
        for node in graph.nodes:
            results = evaluate_node(node, [None if v is None else values[v] for v in node.inputs], values)
            for target, array in zip(node.outputs, results):
                if target in targets:
                    targets[target].store(array)
            end = time.perf_counter()
            times.append(KernelTime("host reference", (node.name,), end - start))
            start = end
        return times


def _make_stage(
    graph: Graph, memory: Memory, compile: Compile, undecided: Undecided, shapes: tuple[Any, ...]
) -> _Stage:
    graph = graph.copy()
    infer_graph(graph, {v.name: v.type.with_shape(shape) for v, shape in zip(graph.inputs, shapes)})
    waits, available = set(undecided(graph)), {*graph.inputs, *graph.constants}
    ready: list[Node] = []
    waiting: list[Node] = []
    for node in graph.nodes:
        made = [v for v in node.outputs if v is not None]
        is_clear = node not in waits and all(v.type.is_static for v in made)
        if is_clear and available.issuperset(node.used()):
            ready.append(node)
            available.update(made)
        else:
            waiting.append(node)
    deciding = [n for n in waiting if available.issuperset(n.used())]
    rest = [n for n in waiting if n not in deciding]
    follow = partial(StagedExecutable, memory=memory, compile=compile, undecided=undecided)
    makers: Sequence[tuple[Compile, list[Node]]] = (compile, ready), (_OnHost, deciding), (follow, rest)
    pieces = [(make, cut(graph, graph.name, nodes)) for make, nodes in makers if nodes]
    return _Stage(graph, [(piece, make(piece)) for make, piece in pieces])
