"""Partitions whose shapes depend on data: compiled piece by piece, as shapes become known."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core.backend import Buffer
from lite_core.ir import DType, Graph, Node, TensorType, Value
from lite_core.ops.evaluate import evaluate_node
from lite_core.ops.infer import infer_graph
from lite_opencl.executable import OpenClExecutable
from lite_opencl.lowering.known import known_values
from lite_opencl.lowering.registry import needs_known
from lite_opencl.memory import DeviceArray, DeviceMemory

__all__ = ["StagedExecutable", "is_static"]

Array = np.ndarray[Any, Any]

_MOST_SHAPES = 16


def is_static(graph: Graph) -> bool:
    """Whether every shape in the graph is known, and every element that must be known to lower its nodes."""
    if not all(v.type.is_static for v in graph.defined()):
        return False
    needed = [v for node in graph.nodes for v in needs_known(node)]
    return not needed or known_values(graph).issuperset(needed)


class StagedExecutable:
    """Runs a graph in stages.

    A stage is what can be compiled once the shapes of the graph's inputs are known. The nodes that then decide further
    shapes from data (a Reshape to a computed shape, say) run on the host by their references, and what follows is a
    graph of its own, whose inputs' shapes are now known. Stages are kept by those shapes.

    Args:
        graph: with dimensions that depend on data.
        memory: of the device.
        compile: compiles a graph whose shapes are all known.
    """

    scratch_bytes = 0

    def __init__(self, graph: Graph, memory: DeviceMemory, compile: Callable[[Graph], OpenClExecutable]) -> None:
        self._graph = graph
        self._memory = memory
        self._compile = compile
        self._lock = threading.Lock()
        self._stages: OrderedDict[tuple[tuple[int, ...], ...], _Stage] = OrderedDict()

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        results = self.run_arrays([b.data for b in inputs])
        for buffer, result in zip(outputs, results):
            buffer.store(self._memory.download(result))

    def run_arrays(self, inputs: Sequence[DeviceArray]) -> list[DeviceArray]:
        """Run on storage; results are in storage of their own."""
        memory = self._memory
        stage = self._stage(tuple(a.shape for a in inputs))
        values: dict[Value, DeviceArray] = dict(zip(stage.graph.inputs, inputs))
        if stage.ready is not None:
            arena = memory.allocate_bytes(stage.ready.scratch_bytes)
            scratch = DeviceArray(arena, 0, TensorType(DType.UINT8, (stage.ready.scratch_bytes,)))
            results = [memory.allocate(v.type) for v in stage.ready_graph.outputs]
            stage.ready.run_arrays([*(values[v] for v in stage.ready_graph.inputs), *results, scratch])
            values.update(zip(stage.ready_graph.outputs, results))

        def on_host(value: Value) -> Array:
            constant = stage.graph.constants.get(value)
            return memory.download(values[value]) if constant is None else constant

        def on_device(value: Value) -> DeviceArray:
            return values[value] if value in values else memory.uploaded(stage.graph.constants[value])

        for node in stage.deciding:
            arrays = [None if v is None else on_host(v) for v in node.inputs]
            made = zip(node.outputs, evaluate_node(node, arrays))
            values.update((v, memory.uploaded(a)) for v, a in made if v is not None)
        if stage.rest is not None:
            graph = stage.rest._graph
            values.update(zip(graph.outputs, stage.rest.run_arrays([on_device(v) for v in graph.inputs])))
        return [on_device(v) for v in stage.graph.outputs]

    def _stage(self, shapes: tuple[tuple[int, ...], ...]) -> _Stage:
        with self._lock:
            stage = self._stages.get(shapes)
            if stage is None:
                stage = self._stages[shapes] = self._make_stage(shapes)
                while len(self._stages) > _MOST_SHAPES:
                    self._stages.popitem(last=False)
            else:
                self._stages.move_to_end(shapes)
            return stage

    def _make_stage(self, shapes: tuple[tuple[int, ...], ...]) -> _Stage:
        graph = self._graph.copy()
        infer_graph(graph, {v.name: v.type.with_shape(s) for v, s in zip(graph.inputs, shapes)})
        available, known = {*graph.inputs, *graph.constants}, known_values(graph)
        ready: list[Node] = []
        waiting: list[Node] = []
        for node in graph.nodes:
            made = [v for v in node.outputs if v is not None]
            is_clear = all(v.type.is_static for v in made) and known.issuperset(needs_known(node))
            if is_clear and all(v in available for v in node.used()):
                ready.append(node)
                available.update(made)
            else:
                waiting.append(node)
        deciding = [n for n in waiting if all(v in available for v in n.used())]
        rest = [n for n in waiting if n not in deciding]
        ready_graph = _cut(graph, ready, waiting)
        return _Stage(
            graph,
            ready_graph,
            self._compile(ready_graph) if ready else None,
            deciding,
            StagedExecutable(_cut(graph, rest, []), self._memory, self._compile) if rest else None,
        )


@dataclass(frozen=True)
class _Stage:
    """A graph for known shapes of its inputs: what is compiled, what decides shapes, and what comes after."""

    graph: Graph
    ready_graph: Graph
    ready: OpenClExecutable | None
    deciding: list[Node]
    rest: StagedExecutable | None


def _cut(graph: Graph, nodes: list[Node], readers: list[Node]) -> Graph:
    """Some nodes as a graph, whose outputs are what ``readers`` and the whole graph's outputs need of them."""
    made = [v for n in nodes for v in n.outputs if v is not None]
    used = dict.fromkeys(v for n in nodes for v in n.used() if v not in set(made))
    wanted = {*graph.outputs, *(v for n in readers for v in n.used())}
    return Graph(
        graph.name,
        inputs=[v for v in used if v not in graph.constants],
        outputs=[v for v in dict.fromkeys(made) if v in wanted],
        nodes=nodes,
        constants={v: graph.constants[v] for v in used if v in graph.constants},
    )
