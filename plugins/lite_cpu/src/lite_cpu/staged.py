"""Partitions whose shapes depend on data: compiled piece by piece, as shapes become known."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core.backend import Buffer
from lite_core.ir import Graph, Node, Value
from lite_core.ops.evaluate import evaluate_node
from lite_core.ops.infer import infer_graph
from lite_cpu.executable import CpuExecutable

__all__ = ["StagedExecutable", "is_static"]

Array = np.ndarray[Any, Any]
_MOST_SHAPES = 16


def is_static(graph: Graph) -> bool:
    """Whether every shape in the graph is known."""
    return all(v.type.is_static for v in graph.defined())


class StagedExecutable:
    """Runs a graph in stages.

    A stage is what can be compiled once the shapes of the graph's inputs are known. The nodes that then decide
    further shapes from data (a Reshape to a computed shape, say) run by their references, and what follows is a
    graph of its own, whose inputs' shapes are now known. Stages are kept by those shapes.

    Args:
        graph: with dimensions that depend on data.
        compile: compiles a graph whose shapes are all known.
    """

    scratch_bytes = 0

    def __init__(self, graph: Graph, compile: Callable[[Graph], CpuExecutable]) -> None:
        self._graph = graph
        self._compile = compile
        self._lock = threading.Lock()
        self._stages: OrderedDict[tuple[tuple[int, ...], ...], _Stage] = OrderedDict()

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        results = self._run([b.data for b in inputs])
        for buffer, array in zip(outputs, results):
            buffer.store(array)

    def _run(self, inputs: Sequence[Array]) -> list[Array]:
        stage = self._stage(tuple(a.shape for a in inputs))
        values: dict[Value, Array] = dict(zip(stage.graph.inputs, inputs))
        values.update(stage.graph.constants)
        if stage.native is not None:
            made = _run_native(stage.native, stage.native_graph, [values[v] for v in stage.native_graph.inputs])
            values.update(zip(stage.native_graph.outputs, made))
        for node in stage.deciding:
            arrays = [None if v is None else values[v] for v in node.inputs]
            values.update((v, a) for v, a in zip(node.outputs, evaluate_node(node, arrays)) if v is not None)
        if stage.rest is not None:
            made = stage.rest._run([values[v] for v in stage.rest._graph.inputs])
            values.update(zip(stage.rest._graph.outputs, made))
        return [values[v] for v in stage.graph.outputs]

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
        ready = {*graph.inputs, *graph.constants}
        native: list[Node] = []
        waiting: list[Node] = []
        for node in graph.nodes:
            made = [v for v in node.outputs if v is not None]
            if all(v in ready for v in node.used()) and all(v.type.is_static for v in made):
                native.append(node)
                ready.update(made)
            else:
                waiting.append(node)
        deciding = [n for n in waiting if all(v in ready for v in n.used())]
        rest = [n for n in waiting if n not in deciding]
        native_graph = _cut(graph, native, waiting)
        return _Stage(
            graph,
            native_graph,
            self._compile(native_graph) if native else None,
            deciding,
            StagedExecutable(_cut(graph, rest, []), self._compile) if rest else None,
        )


@dataclass(frozen=True)
class _Stage:
    """A graph for known shapes of its inputs: what runs natively, what decides shapes, and what comes after."""

    graph: Graph
    native_graph: Graph
    native: CpuExecutable | None
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


def _run_native(executable: CpuExecutable, graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    outputs = [np.empty(v.shape, v.dtype.numpy) for v in graph.outputs]
    scratch = np.empty(executable.scratch_bytes, np.uint8) if executable.scratch_bytes else None
    executable.run_arrays(inputs, outputs, scratch)
    return outputs
