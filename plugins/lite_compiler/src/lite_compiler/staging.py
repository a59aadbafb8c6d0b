"""Execution of partitions whose shapes depend on data: compiled stage by stage, as shapes become known."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
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
from lite_core.forking import new_lock, undivided
from lite_core.ir import Graph, Node, TensorType, Value, fresh_dim
from lite_core.memory import HostMemory
from lite_core.memory.scratch import ScratchPool
from lite_core.observing import Observable, Observer, observed_arrays, observed_buffers
from lite_core.ops.evaluate import evaluate_node
from lite_core.ops.infer import infer_graph
from lite_core.reports import StatesPrecision
from lite_core.schedule.partition import cut

__all__ = [
    "Compile",
    "FindDataDependent",
    "HostExecutable",
    "ResizedPart",
    "StagedExecutable",
    "can_compile_whole",
]

Array = np.ndarray[Any, Any]
#: Compiles a graph whose shapes are all known.
Compile = Callable[[Graph], Executable]
#: Returns the nodes of a graph that a backend cannot compile even with known shapes, because they need elements (such
#: as the axes of a reduction) that depend on data.
FindDataDependent = Callable[[Graph], Collection[Node]]

#: The arguments of a run: inputs, outputs and scratch memory.
Arguments = tuple[Sequence[Buffer], Sequence[Buffer], "Buffer | None"]
#: Runs a part of a stage: its executable on these arguments.
RunPart = Callable[[Graph, Executable, Arguments], None]

#: An executable for other shapes of its inputs, and the shape of each output: None if it depends on data.
ResizedPart = tuple[Executable, Sequence["tuple[int, ...] | None"]]

_MAX_STAGES = 16
#: So many compiled stages are kept to make others from.
_MAX_ORIGINS = 4
#: The name of the kernel of a node on the host.
_LABEL = "host reference"


def can_compile_whole(graph: Graph, data_dependent_nodes: FindDataDependent = lambda graph: ()) -> bool:
    """Return True if a graph can be compiled as a whole: every shape is known, and no node is data-dependent."""
    return all(v.type.is_static for v in graph.defined()) and not data_dependent_nodes(graph)


class StagedExecutable(ProfilesKernels, HasNotes, ReportsMemoryUse, StatesPrecision, Observable):
    """An executable that runs a graph in stages. Thread-safe.

    A stage contains the nodes that can be compiled once the shapes of the graph's inputs are known. The nodes that
    compute further shapes from data (such as a Reshape to a computed shape) run on the host by their references. The
    nodes after them form a separate graph, whose input shapes are now known. Stages are cached by their input shapes.
    A stage for other shapes is made from a compiled one, without compiling, if each of its executables has a method
    ``resized``, which receives the shapes of its inputs and returns a :data:`ResizedPart`, or None if they must be
    compiled. Tensors stay in the device's memory; only the inputs and outputs of nodes on the host are
    copied.

    Stages are not saved, only their kernels, if the backend saves kernels: restoring the first stage would require
    inferring every shape, and the others are compiled by the process that runs them anyway.

    Args:
        graph: a graph with dimensions that depend on data. If the shapes of its inputs are known, the first stage is
            compiled immediately, so that a failure occurs while the nodes can still move to another backend.
        memory: the memory space of the tensors.
        compile: compiles a graph whose shapes are all known.
        data_dependent_nodes: returns the nodes that cannot be compiled even with known shapes.
        compile_data_dependent: compiles a node whose results have shapes that depend on data, or that cannot be
            compiled.
    """

    #: The scratch memory of stages is known only during a run; a separate pool provides it.
    scratch_bytes = 0

    def __init__(
        self,
        graph: Graph,
        memory: Memory,
        compile: Compile,
        data_dependent_nodes: FindDataDependent = lambda graph: (),
        compile_data_dependent: Compile | None = None,
    ) -> None:
        self._memory = memory
        self._scratch = ScratchPool()
        self._lock = new_lock()
        # NOTE: the cache holds no bound method: a reference cycle would delay freeing executables until the garbage
        # collector runs.
        how = memory, compile, data_dependent_nodes, compile_data_dependent or HostExecutable
        self._stages = lru_cache(_MAX_STAGES)(_Stages(partial(_make_stage, graph, *how)))
        self._latest: list[tuple[Graph, Executable]] = []
        if all(v.type.is_static for v in graph.inputs):
            self._stage([v.type for v in graph.inputs])

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        self._run(inputs, outputs, lambda graph, executable, arguments: executable.run(*arguments))

    def run_profiled(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None
    ) -> Sequence[KernelTime]:
        """Run, and return the times of the kernels of all stages and of each node on the host with its copies."""
        times: list[KernelTime] = []

        def run_part(graph: Graph, executable: Executable, arguments: Arguments) -> None:
            if isinstance(executable, ProfilesKernels):
                times.extend(executable.run_profiled(*arguments))
            else:
                executable.run(*arguments)

        self._run(inputs, outputs, run_part)
        return times

    def run_observed(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None, observer: Observer
    ) -> None:
        """Run, and show an observer the values of all stages, and those of each node on the host."""

        def run_part(graph: Graph, executable: Executable, arguments: Arguments) -> None:
            if isinstance(executable, Observable):
                executable.run_observed(*arguments, observer)
                return
            nodes = [node.name for node in graph.nodes]
            observer.starts(graph.name, nodes)
            executable.run(*arguments)
            observer.computed(observed_buffers(graph.name, nodes, graph.outputs, arguments[1]))

        self._run(inputs, outputs, run_part)

    @property
    def notes(self) -> Sequence[str]:
        """The notes of the stages that ran last."""
        notes = (
            note for _, executable in self._latest if isinstance(executable, HasNotes) for note in executable.notes
        )
        return tuple(dict.fromkeys(("compiled in stages: shapes depend on data", *notes)))

    @property
    def computes(self) -> str:
        """The types that the stages that ran last compute in; empty before the first run."""
        said = (executable.computes for _, executable in self._latest if isinstance(executable, StatesPrecision))
        return "; ".join(dict.fromkeys(filter(None, said)))

    def memory_use(self) -> MemoryUse:
        """Return the total memory use of the stages that ran last."""
        reported = [e.memory_use() for _, e in self._latest if isinstance(e, ReportsMemoryUse)]
        uses = [use for use in reported if any(use)]
        intervals = uses[0].intervals if len(uses) == 1 else ()
        arenas, scratch = sum(u.arena_bytes for u in uses), sum(u.scratch_bytes for u in uses)
        return MemoryUse(arenas, intervals, scratch, sum(u.weight_bytes for u in uses))

    def _stage(self, types: Sequence[TensorType]) -> _Stage:
        with undivided(), self._lock:  # no two threads compile the same stage
            stage = self._stages(tuple(type.shape for type in types))
            self._latest = stage.parts
            return stage

    def _run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], run_part: RunPart) -> None:
        memory, stage = self._memory, self._stage([b.type for b in inputs])
        # The part that computes an output of the partition writes it directly into the caller's buffer.
        values = dict(zip((*stage.graph.inputs, *stage.graph.outputs), (*inputs, *outputs)))
        for graph, executable in stage.parts:
            for value in graph.outputs:
                type, buffer = value.type, values.get(value)
                if buffer is None:
                    values[value] = _IntermediateBuffer(type, memory, memory.allocate(type) if type.is_static else None)
                elif buffer.data is None and type.is_static:
                    buffer.allocate(value.shape)
            size = executable.scratch_bytes
            block = self._scratch.take(memory, size) if size else None
            scratch = None if block is None else block.at(0, size)
            run_part(
                graph, executable, ([values[v] for v in graph.inputs], [values[v] for v in graph.outputs], scratch)
            )
            if block is not None:  # after a failure the block is not reused: the device may still write to it
                self._scratch.give_back(block)


class _Stage(NamedTuple):
    """A graph with known input shapes, and its parts: compiled nodes, nodes on the host, and the graph after them."""

    graph: Graph
    parts: list[tuple[Graph, Executable]]


class _Stages:
    """The stages of a graph by the shapes of its inputs. Not thread-safe.

    Args:
        compile: compiles the stage for shapes.
    """

    def __init__(self, compile: Callable[[tuple[Any, ...]], _Stage]) -> None:
        self._compile = compile
        #: The latest stages that were compiled, from which others are made.
        self._compiled: list[_Stage] = []

    def __call__(self, shapes: tuple[Any, ...]) -> _Stage:
        for stage in self._compiled:
            found = _resized(stage, shapes)
            if found is not None:
                return found
        stage = self._compile(shapes)
        self._compiled = [stage, *self._compiled[: _MAX_ORIGINS - 1]]
        return stage


def _resized(stage: _Stage, shapes: Sequence[tuple[int, ...]]) -> _Stage | None:
    """Return a stage for other shapes of its inputs; None if one of its parts must be compiled for them.

    A part that runs on the host, and the graph behind the stage, take any shapes.
    """
    graph = stage.graph
    values = {v: Value(v.name, v.type.with_shape(shape)) for v, shape in zip(graph.inputs, shapes)}
    parts: list[tuple[Graph, Executable]] = []
    for part, executable in stage.parts:
        results: Sequence[tuple[int, ...] | None] = [None] * len(part.outputs)
        if not isinstance(executable, (HostExecutable, StagedExecutable)):
            resize = getattr(executable, "resized", None)
            found = None if resize is None else resize(tuple([values[v].shape for v in part.inputs]))
            if found is None:
                return None
            executable, results = found
        values.update((v, Value(v.name, _type_of(v, shape))) for v, shape in zip(part.outputs, results))
        parts.append((_outline(part, values), executable))
    return _Stage(_outline(graph, values), parts)


def _type_of(value: Value, shape: tuple[int, ...] | None) -> TensorType:
    """Return the type of a value of another shape; None stands for a shape that depends on data."""
    if shape is None and value.shape is not None:
        return value.type.with_shape(tuple([fresh_dim("rows") for _ in value.shape]))
    return value.type.with_shape(shape)


def _outline(graph: Graph, values: Mapping[Value, Value]) -> Graph:
    """Return a graph with other inputs and outputs. Its nodes read and write the old ones: they only have names."""
    return Graph(
        graph.name, inputs=[values[v] for v in graph.inputs], outputs=[values.get(v, v) for v in graph.outputs],
        nodes=graph.nodes,
    )  # fmt: skip


class _IntermediateBuffer(Buffer):
    """A tensor between two parts. In main memory it adopts the array that a reference returns, without a copy."""

    __slots__ = ()

    def store(self, array: Array) -> None:
        if self.data is None and self.memory.space == HostMemory.space:
            self.type, self.data = self.type.with_shape(array.shape), np.asarray(array, order="C")
        else:
            super().store(array)


class HostExecutable(ProfilesKernels, Observable):
    """An executable that runs the nodes of a graph by their references."""

    scratch_bytes = 0

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        self._run(inputs, outputs)

    def run_profiled(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None
    ) -> Sequence[KernelTime]:
        times: list[KernelTime] = []
        ends = [time.perf_counter()]

        def measure(node: Node) -> None:
            ends.append(time.perf_counter())
            times.append(KernelTime(_LABEL, (node.name,), ends[-1] - ends[-2]))

        self._run(inputs, outputs, stored=measure)
        return times

    def run_observed(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None, observer: Observer
    ) -> None:
        def show(node: Node, values: dict[Value, Array]) -> None:
            observer.starts(_LABEL, [node.name])  # it has just run: a reference cannot end the process
            results = [value for value in node.outputs if value is not None]
            observer.computed(observed_arrays(_LABEL, [node.name], values, results))

        self._run(inputs, outputs, computed=show)

    def _run(
        self,
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        computed: Callable[[Node, dict[Value, Array]], None] = lambda node, values: None,
        stored: Callable[[Node], None] = lambda node: None,
    ) -> None:
        """Run all nodes.

        ``computed`` is called with each node that has run and all values, of which it may replace the node's results;
        ``stored`` is called with the node when those that are outputs of the graph are stored.
        """
        graph = self._graph
        values, destinations = dict(graph.constants), dict(zip(graph.outputs, outputs))
        for value, buffer in zip(graph.inputs, inputs):
            is_host = buffer.memory.space == HostMemory.space
            values[value] = buffer.data if is_host else buffer.memory.download(buffer.data)
        for node in graph.nodes:
            results = evaluate_node(node, [None if v is None else values[v] for v in node.inputs], values)
            values.update((output, array) for output, array in zip(node.outputs, results) if output is not None)
            computed(node, values)
            for output in node.outputs:
                if output is not None and output in destinations:
                    destinations[output].store(values[output])
            stored(node)


def _make_stage(
    graph: Graph,
    memory: Memory,
    compile: Compile,
    data_dependent_nodes: FindDataDependent,
    compile_data_dependent: Compile,
    shapes: tuple[Any, ...],
) -> _Stage:
    """Return the stage of a graph whose inputs have these shapes: compile the nodes that can be compiled."""
    graph = graph.copy()
    infer_graph(graph, {v.name: v.type.with_shape(shape) for v, shape in zip(graph.inputs, shapes)})
    data_dependent, available = set(data_dependent_nodes(graph)), {*graph.inputs, *graph.constants}
    ready: list[Node] = []
    waiting: list[Node] = []
    for node in graph.nodes:
        outputs = [v for v in node.outputs if v is not None]
        can_compile = node not in data_dependent and all(v.type.is_static for v in outputs)
        if can_compile and available.issuperset(node.used()):
            ready.append(node)
            available.update(outputs)
        else:
            waiting.append(node)
    on_host = [n for n in waiting if available.issuperset(n.used())]
    rest = [n for n in waiting if n not in on_host]
    how = (compile, data_dependent_nodes, compile_data_dependent)
    compilers: Sequence[tuple[Compile, list[Node]]] = (
        (compile, ready),
        *((compile_data_dependent, [node]) for node in on_host),
        (lambda rest: StagedExecutable(rest, memory, *how), rest),
    )
    graphs = [(compile_part, cut(graph, graph.name, nodes)) for compile_part, nodes in compilers if nodes]
    return _Stage(graph, [(part, compile_part(part)) for compile_part, part in graphs])
