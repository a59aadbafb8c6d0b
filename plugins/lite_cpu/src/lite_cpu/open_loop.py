"""Loops whose number of iterations is known only when they end: the stacked outputs grow while the loop runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from lite_core.backend import Buffer
from lite_core.ir import DType, Graph, Node, TensorType, Value
from lite_core.observing import Observer, observed_buffers
from lite_cpu.addresses import address_of
from lite_cpu.control_shapes import has_open_results, replaced_values
from lite_cpu.executable import CompiledProgram, CpuExecutable
from lite_cpu.runtime import ALIGNMENT
from lite_cpu.runtime.layout import StepField

__all__ = ["OpenLoopExecutable", "open_loop"]

Array = np.ndarray[Any, Any]

#: Bytes of a stacked output at first, and its iterations at least.
_FIRST_BYTES, _FIRST_ITERATIONS = 1 << 16, 16


def open_loop(graph: Graph) -> Graph | None:
    """Return a graph that can be compiled; None unless it is one Loop that decides only the shapes of its results.

    Its node takes the number of iterations for which there is memory instead of M. Further outputs are the number of
    iterations that have run, and the condition. The stacked outputs have one iteration in the graph; the executable
    provides memory for more. Values that the body replaces have no initial value, and the type after an iteration.
    """
    node = graph.nodes[0]
    if len(graph.nodes) != 1 or node.op != "Loop" or not has_open_results(node):
        return None
    body: Any = node.attributes["body"]
    replaced = replaced_values(node)
    limit = Value("limit", TensorType(DType.INT64, ()))
    counter, condition = Value("counter", TensorType(DType.INT64, ())), Value("condition", TensorType(DType.BOOL, ()))
    known: dict[Value, Value] = {}
    for i, (value, inside) in enumerate(zip(node.outputs, body.outputs[1:])):
        if value is not None and i in replaced:
            known[value] = Value(value.name, inside.type)
        elif value is not None and i >= len(node.inputs) - 2:
            known[value] = Value(value.name, inside.type.with_shape((1, *inside.shape)))
    needed = set(graph.outputs)
    results = [None if value is None or value not in needed else known.get(value, value) for value in node.outputs]
    initial = [None if i in replaced else value for i, value in enumerate(node.inputs[2:])]
    loop = Node(
        "OpenLoop", [limit, node.inputs[1], *initial], [*results, counter, condition], node.attributes,
        domain="lite_cpu", name=node.name, origin=node.origin,
    )  # fmt: skip
    outputs = [known.get(value, value) for value in graph.outputs]
    return Graph(
        graph.name,
        inputs=[*graph.inputs, limit],
        outputs=[*outputs, counter, condition],
        nodes=[loop],
        constants=graph.constants,
    )


class OpenLoopExecutable(CpuExecutable):
    """An executable of one Loop whose number of iterations is unknown.

    A run goes on until the loop ends or the memory of the stacked outputs is full. Then they get twice the memory, and
    the run continues with the next iteration.

    Args:
        compiled: the program of :func:`open_loop`.
        threads: maximum number of threads of a run.
        peak_flops: see :class:`CpuExecutable`.
        graph: the graph of the loop.
    """

    def __init__(self, compiled: CompiledProgram, threads: int, peak_flops: Callable[[], float], graph: Graph) -> None:
        super().__init__(compiled, threads, peak_flops)
        self._graph = graph
        node = graph.nodes[0]
        body: Any = node.attributes["body"]
        #: For each output of the graph the shape that an iteration computes, and its number among those of the node.
        numbers = [node.outputs.index(value) for value in graph.outputs]
        self._shapes = [tuple(body.outputs[1 + number].shape) for number in numbers]
        self._types = [value.dtype.numpy for value in graph.outputs]
        #: Which outputs are stacked, and the initial values of those that the body replaces.
        self._stacked = [number >= len(node.inputs) - 2 for number in numbers]
        replaced = replaced_values(node)
        self._initial = [node.inputs[2 + number] if number in replaced else None for number in numbers]
        jumps = self._program.tables.steps[:, StepField.JUMP]
        last = int(np.flatnonzero(jumps < 0)[-1])
        self._next_iteration = last + int(jumps[last])
        sizes = [prod(s) * t.itemsize for s, t, stacked in zip(self._shapes, self._types, self._stacked) if stacked]
        self._first = max(_FIRST_ITERATIONS, _FIRST_BYTES // max([1, *sizes]))

    def run(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None, times: Array | None = None
    ) -> None:
        """Run the loop, and allocate the stacked outputs."""
        arrays = [np.asarray(buffer.data, order="C") for buffer in inputs]
        most = self._most_iterations(arrays)
        capacity = min(self._first, most)
        results: list[Array] = []
        for buffer, shape, dtype, stacked in zip(outputs, self._shapes, self._types, self._stacked):
            if stacked:
                results.append(np.empty((capacity, *shape), dtype))
            else:
                results.append(np.empty(shape, dtype) if buffer.data is None else buffer.data)
        limit, counter, condition = np.array(capacity), np.array(0), np.array(True)
        record = np.zeros(2, np.int64)
        arena = 0 if scratch is None else -(-address_of(scratch.data) // ALIGNMENT) * ALIGNMENT
        first = 0
        while True:
            arguments = [*arrays, limit, *results, counter, condition, record]
            self._program.run([arena, 0, *map(address_of, arguments)], self._threads, times, first)
            capacity = int(limit)
            if capacity == most or int(counter) < capacity or not condition:
                break
            limit[...] = min(2 * capacity, most)
            results = [_grown(r, int(limit)) if stacked else r for r, stacked in zip(results, self._stacked)]
            first = self._next_iteration
        self._check(record)
        for buffer, result, stacked, initial in zip(outputs, results, self._stacked, self._initial):
            if stacked:
                buffer.store(result[: int(counter)])
            elif initial is not None:
                buffer.store(result if counter else self._array(initial, arrays))

    def _most_iterations(self, arrays: Sequence[Array]) -> int:
        value = self._graph.nodes[0].inputs[0]
        return int(np.iinfo(np.int64).max) if value is None else max(0, int(self._array(value, arrays).item()))

    def _array(self, value: Value, arrays: Sequence[Array]) -> Array:
        """Return the array of an operand of the node."""
        constants = self._graph.constants
        return constants[value] if value in constants else arrays[self._graph.inputs.index(value)]

    def run_observed(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None, observer: Observer
    ) -> None:
        """Run the loop, and show an observer its results."""
        names = [node.name for node in self._graph.nodes]
        observer.starts("loop", names)
        self.run(inputs, outputs, scratch)
        observer.computed(observed_buffers("loop", names, self._graph.outputs, outputs))


def _grown(array: Array, length: int) -> Array:
    """Return an array with the same elements, and memory for more along its first dimension."""
    longer = np.empty((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
