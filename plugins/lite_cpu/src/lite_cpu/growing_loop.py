"""Loops whose carried values grow by the same number of elements in each iteration, such as the caches of a decoder."""

from __future__ import annotations

import logging
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lite_core.backend import Buffer, Executable, KernelTime, MemoryUse, Options, ProfilesKernels, ReportsMemoryUse
from lite_core.deadline import check_time
from lite_core.errors import ExecutionError, LiteError
from lite_core.ir import DType, Graph, TensorType, Value
from lite_core.memory import HostMemory
from lite_core.observing import Observable, Observer, observed_buffers
from lite_core.reports import StatesPrecision
from lite_cpu.addresses import address_of
from lite_cpu.iteration import Iterations, iterations_of
from lite_cpu.templates.partition_sizes import graph_of_shapes

if TYPE_CHECKING:
    from lite_compiler.resized_plan import Shapes
    from lite_compiler.staging import ResizedPart
    from lite_cpu.templates.loop_programs import LoopProgram, LoopPrograms
    from lite_cpu.templates.resizing import Arguments

__all__ = ["GrowingLoopExecutable", "growing_loop"]

logger = logging.getLogger("lite.cpu")

Array = np.ndarray[Any, Any]

_HOST = HostMemory()

#: Iterations that there is memory for at first. Capacities are multiples of the second number, so that runs which begin
#: with other lengths mostly have the same ones.
_FIRST_ITERATIONS, _MULTIPLE = 64, 64


def growing_loop(
    graph: Graph, options: Options, arguments: Arguments, threads: int, known: list[LoopPrograms]
) -> GrowingLoopExecutable | None:
    """Return the executable of a graph that consists of a Loop with growing values; None if it is anything else.

    Args:
        graph: the graph; the shapes of its inputs are known.
        options: the options of the session.
        arguments: what else graphs are compiled with.
        threads: maximum number of threads of a run.
        known: the programs of the same partition's loops for other shapes of its inputs; new ones are appended.
    """
    from lite_cpu.templates.loop_programs import LoopPrograms

    try:
        iterations = iterations_of(graph)
        if iterations is None:
            return None
        programs = next((each for each in known if iterations.have_programs_of(each.iterations)), None)
        found = programs or LoopPrograms(iterations, options, arguments, threads)
        executable = GrowingLoopExecutable(graph, iterations, found, threads)
        if programs is None:
            known.append(found)
        return executable
    except (LiteError, ValueError):
        # Its body is then compiled in stages for each of its sizes, which reports what is wrong with it.
        logger.debug("%s: no program of an iteration", graph.name, exc_info=True)
        return None


class GrowingLoopExecutable(Executable, ProfilesKernels, ReportsMemoryUse, StatesPrecision, Observable):
    """An executable of one Loop with values that grow. Thread-safe.

    Each iteration is one native program, and values stay where they are: what an iteration appends is written behind
    the old elements. When their memory is full, they move to twice the memory.

    Args:
        graph: the graph of the loop; the shapes of its inputs are known.
        iterations: its iterations.
        programs: their programs.
        threads: maximum number of threads of a run.

    Raises:
        ValueError: the first iteration cannot be compiled.
    """

    scratch_bytes = 0

    def __init__(self, graph: Graph, iterations: Iterations, programs: LoopPrograms, threads: int) -> None:
        self._graph, self._iterations, self._programs, self._threads = graph, iterations, programs, threads
        node = graph.nodes[0]
        self._numbers = [node.outputs.index(value) for value in graph.outputs]
        self._count = len(node.inputs) - 2
        self._first_sizes = _sizes(iterations, 0, _capacities(iterations, _FIRST_ITERATIONS))
        programs.program(self._first_sizes)

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        """Run the loop, and allocate the outputs whose sizes depend on the number of iterations."""
        self._run(inputs, outputs, None)

    def run_profiled(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None
    ) -> Sequence[KernelTime]:
        """Run the loop, and return the time of each kernel in all iterations together."""
        times = _Times()
        self._run(inputs, outputs, times)
        found = times.kernels
        for sizes, nanoseconds in times.steps.values():
            steps = self._programs.compiled(sizes).steps
            found += [KernelTime(s.kernel, s.nodes, float(t) * 1e-9) for s, t in zip(steps, nanoseconds[1:])]
        return found

    def run_observed(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None, observer: Observer
    ) -> None:
        """Run the loop, and show an observer its results."""
        names = [node.name for node in self._graph.nodes]
        observer.starts("loop", names)
        self.run(inputs, outputs, scratch)
        observer.computed(observed_buffers("loop", names, self._graph.outputs, outputs))

    @property
    def computes(self) -> str:
        """The types that an iteration computes in."""
        return self._programs.compiled(self._first_sizes).computes()

    def memory_use(self) -> MemoryUse:
        """Return the memory that the first iteration uses, without the carried values."""
        compiled = self._programs.compiled(self._first_sizes)
        scratch_bytes = self._threads * compiled.program.thread_scratch_bytes
        return MemoryUse(compiled.program.arena_bytes, compiled.intervals, scratch_bytes, compiled.weight_bytes)

    def resized(self, shapes: Shapes) -> ResizedPart | None:
        """Return the executable for other lengths before the loop, which has the same programs; None otherwise."""
        loop = graph_of_shapes(self._graph, shapes)
        iterations = iterations_of(loop)
        if iterations is None or not iterations.have_programs_of(self._iterations):
            return None
        executable = GrowingLoopExecutable(loop, iterations, self._programs, self._threads)
        return executable, [v.shape if v.type.is_static else None for v in loop.outputs]

    def _run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], times: _Times | None) -> None:
        iterations, node = self._iterations, self._graph.nodes[0]
        scope: dict[Value, Array] = dict(self._graph.constants)
        scope.update((v, np.asarray(b.data, order="C")) for v, b in zip(self._graph.inputs, inputs))
        limit, before, *initial = (None if value is None else scope[value] for value in node.inputs)
        most = int(np.iinfo(np.int64).max) if limit is None else int(limit.reshape(()))
        goes_on = before is None or bool(before.reshape(()))
        outside = [scope[value] for value in iterations.outside]
        if goes_on and most > 0:
            outside += self._run_before(outside, times)
        state = _State(iterations, initial, most, outside)
        state.condition[...] = goes_on
        count, record, block = 0, state.record, np.empty(0, np.uint8)
        bases = b""
        while goes_on and count < most:
            check_time("iteration {}".format, count)
            if count == state.room:
                state.grow(count, most)
                bases = b""
            sizes = _sizes(iterations, count, state.capacities)
            found = self._programs.program(sizes)
            if found.scratch_bytes > block.nbytes:
                block = _HOST.aligned_bytes(found.scratch_bytes + found.scratch_bytes // 4)
                bases = b""
            if not bases:
                addresses = [address_of(block), 0, *map(address_of, state.arrays)]
                bases = struct.pack(f"{len(addresses)}q", *addresses)
            found.program.run_packed(bases, self._threads, None if times is None else times.of(found, sizes))
            if record[0]:
                self._report(sizes, record)
            count += 1
            goes_on = bool(state.goes_on)
        for buffer, number in zip(outputs, self._numbers):
            if number >= self._count:
                buffer.store(state.stacks[iterations.stacked.index(number - self._count)][:count])
            elif count and number in state.states and iterations.is_changed(number):
                buffer.store(state.value(number, count))
            else:
                value = initial[number]
                assert value is not None
                buffer.store(value)

    def _run_before(self, outside: Sequence[Array], times: _Times | None) -> list[Array]:
        """Compute what is the same in each iteration from the values from outside."""
        graph, executable = self._iterations.before, self._programs.before
        if graph is None or executable is None:
            return []
        inputs = [Buffer(value.type, _HOST, array) for value, array in zip(graph.inputs, outside)]
        outputs = [Buffer(value.type, _HOST, _HOST.allocate(value.type)) for value in graph.outputs]
        scratch = TensorType(DType.UINT8, (executable.scratch_bytes,))
        block = Buffer(scratch, _HOST, _HOST.allocate(scratch))
        if times is None:
            executable.run(inputs, outputs, block)
        else:
            times.kernels += executable.run_profiled(inputs, outputs, block)
        return [buffer.data for buffer in outputs]

    def _report(self, sizes: tuple[int, ...], record: Array) -> None:
        message = self._programs.compiled(sizes).faults[int(record[0]) - 1]
        raise ExecutionError(message.replace("{}", str(int(record[1]))))


class _Times:
    """The times of a run.

    Attributes:
        kernels: those of what runs before the first iteration.
        steps: for programs with the same labels of their steps, the sizes of one of them, and the nanoseconds of each
            step in all iterations.
    """

    def __init__(self) -> None:
        self.kernels: list[KernelTime] = []
        self.steps: dict[tuple[str, ...], tuple[tuple[int, ...], Array]] = {}

    def of(self, found: LoopProgram, sizes: tuple[int, ...]) -> Array:
        """Return the array that the times of a program's steps are added to."""
        labels = found.program.labels
        return self.steps.setdefault(labels, (sizes, np.zeros(len(labels) + 1, np.int64)))[1]


class _State:
    """The values of a run that iterations read and write.

    Args:
        iterations: the iterations of the loop.
        initial: the carried values before the loop.
        most: the number of iterations at most.
        outside: the values from outside.

    Attributes:
        room: the number of iterations that there is memory for.
        capacities: the capacity of everything that grows.
        condition: the condition for the next iteration, one bool.
        goes_on: 1 unless the last iteration has ended the loop.
        record: where kernels record a fault.
        states: the memory of the carried values, by their numbers.
        stacks: the memory of the stacked outputs.
    """

    def __init__(
        self, iterations: Iterations, initial: Sequence[Array | None], most: int, outside: Sequence[Array]
    ) -> None:
        self._iterations, self._outside = iterations, outside
        self.room = max(1, min(most, _FIRST_ITERATIONS))
        self.capacities = _capacities(iterations, self.room)
        self._counter, self.condition, self.goes_on = np.array(0), np.array(True), np.array(1)
        self.record = np.zeros(2, np.int64)
        self.states: dict[int, Array] = {}
        for number in iterations.carried:
            value = initial[number]
            assert value is not None
            is_changed = iterations.is_changed(number)
            self.states[number] = self._with_room(number, value) if is_changed else value
        self.stacks = [np.empty((self.room, *v.shape), v.dtype.numpy) for v in iterations.slices]

    @property
    def arrays(self) -> list[Array]:
        """The arrays in the order of a program's addresses."""
        results = [self.goes_on, self.record]
        return [self._counter, self.condition, *self.states.values(), *self.stacks, *self._outside, *results]

    def value(self, number: int, count: int) -> Array:
        """Return a carried value after some iterations, a view of its memory."""
        lengths = _lengths(self._iterations, count)
        return self.states[number][tuple([slice(n) for n in self._iterations.shape(number, lengths)])]

    def grow(self, count: int, most: int) -> None:
        """Provide memory for twice the iterations; ``count`` have run."""
        before = {number: self.value(number, count) for number in self.states}
        self.room = min(2 * self.room, most)
        self.capacities = _capacities(self._iterations, self.room)
        for number, value in before.items():
            if any(g is not None for g in self._iterations.dims[number]):
                self.states[number] = self._with_room(number, value)
        for i, stack in enumerate(self.stacks):
            self.stacks[i] = np.empty((self.room, *stack.shape[1:]), stack.dtype)
            self.stacks[i][:count] = stack[:count]

    def _with_room(self, number: int, value: Array) -> Array:
        wide = np.empty(self._iterations.shape(number, self.capacities), value.dtype)
        wide[tuple([slice(n) for n in value.shape])] = value
        return wide


def _lengths(iterations: Iterations, count: int) -> list[int]:
    """Return the lengths of everything that grows after some iterations."""
    return [growth.initial + count * growth.step for growth in iterations.growths]


def _capacities(iterations: Iterations, count: int) -> list[int]:
    """Return capacities that are enough for some iterations."""
    return [-(-length // _MULTIPLE) * _MULTIPLE for length in _lengths(iterations, count)]


def _sizes(iterations: Iterations, count: int, capacities: Sequence[int]) -> tuple[int, ...]:
    return (*_lengths(iterations, count), *capacities)
