"""A plan: the compiled partitions of a graph for one input signature, and running them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lite_core.backend import Buffer, Executable, HostMemory, KernelTime, Memory, Options, Partition, read_only
from lite_core.errors import ExecutionError, InputError, LiteError
from lite_core.ir import Graph, TensorType, Value
from lite_core.schedule.partition import PlacedPartition, split
from lite_core.schedule.placement import Placement
from lite_core.schedule.profile import RunProfile
from lite_core.schedule.scratch import ScratchPool

__all__ = ["Plan", "copy_into"]

Array = np.ndarray[Any, Any]

_HOST = HostMemory()


class _Step:
    """A compiled partition, with what every run of it needs worked out beforehand."""

    def __init__(self, part: Partition, label: str, executable: Executable, memory: Memory) -> None:
        self.part = part
        self.label = label
        self._executable = executable
        self._memory = memory
        self._inputs = list(part.graph.inputs)
        # A type whose shape depends on data has no storage before the run.
        self._outputs = [(value, value.type, value.type.is_static) for value in part.graph.outputs]

    def run(
        self,
        buffers: dict[Value, Buffer],
        pool: ScratchPool,
        out: Mapping[str, Array] | None,
        profile: RunProfile | None,
    ) -> None:
        """Run on what ``buffers`` holds, and put the outputs there."""
        memory = self._memory
        arguments = [_in_memory(buffers[value], memory) for value in self._inputs]
        results = [
            _given(value, memory, out) or Buffer(type, memory, memory.allocate(type) if is_static else None)
            for value, type, is_static in self._outputs
        ]
        try:
            size = self._executable.scratch_bytes
            scratch = pool.take(memory, size) if size else None
            self._execute(arguments, results, None if scratch is None else scratch.buffer, profile)
        except LiteError:
            raise
        except Exception as error:
            raise ExecutionError(f"{self} failed with {type(error).__name__}: {error}") from error
        if scratch is not None:  # after a failure it is not kept: who knows what still writes there
            pool.give_back(scratch)
        for (value, _, _), result in zip(self._outputs, results):
            if result.data is None:
                raise ExecutionError(f"{self} left its output {value.name!r} empty")
            buffers[value] = result

    def _execute(
        self, arguments: list[Buffer], results: list[Buffer], scratch: Buffer | None, profile: RunProfile | None
    ) -> None:
        if profile is None:
            self._executable.run(arguments, results, scratch)
            return
        run_profiled = getattr(self._executable, "run_profiled", None)
        start = time.perf_counter()
        if run_profiled is None:
            self._executable.run(arguments, results, scratch)
            kernels: Sequence[KernelTime] = ()
        else:
            kernels = run_profiled(arguments, results, scratch)
        profile.add(self.part, self.label, time.perf_counter() - start, kernels)

    def __str__(self) -> str:
        return f"backend {self.label!r}, partition {self.part.name!r},"


class Plan:
    """What runs when the inputs have given shapes.

    Args:
        graph: the graph with the types of the signature: every input's dimensions known.
        placement: the device of every node of ``graph``.
        options: what the session allows.
        pool: where the runs take their scratch memory from.

    Raises:
        ExecutionError: a backend failed to compile; names the backend and the partition.
    """

    def __init__(self, graph: Graph, placement: Placement, options: Options, pool: ScratchPool | None = None) -> None:
        self.graph = graph
        self._pool = pool or ScratchPool()
        self._steps = [_compile(placed, options) for placed in split(graph, placement)]
        self._inputs = list(graph.inputs)
        produced = {value for step in self._steps for value in step.part.graph.outputs}
        #: For each output of the graph whether it may be handed out without a copy: storage that was made for it,
        #: not a graph input, and not a value that an earlier output is, too.
        self._outputs = [
            (value, value in produced and value not in graph.outputs[:index])
            for index, value in enumerate(graph.outputs)
        ]

    @property
    def partitions(self) -> list[tuple[Partition, str]]:
        """Each partition with the label of its device, in the order they run."""
        return [(step.part, step.label) for step in self._steps]

    def run(
        self,
        inputs: Sequence[Array],
        out: Mapping[str, Array] | None = None,
        profile: RunProfile | None = None,
    ) -> list[Array]:
        """Run the plan.

        Args:
            inputs: an array for each graph input, in order, of the signature's types.
            out: arrays to write outputs into, by name; the others are newly allocated. They share memory
                neither with inputs nor with each other.
            profile: told the time of each partition and kernel.

        Returns:
            One array per graph output, in order. Each is the caller's own: it shares memory with no
            input, constant, other output or later run.
        """
        buffers = {v: Buffer(v.type, _HOST, read_only(array)) for v, array in zip(self._inputs, inputs)}
        for step in self._steps:
            step.run(buffers, self._pool, out, profile)
        return [self._collect(value, is_own, buffers, out) for value, is_own in self._outputs]

    def _collect(
        self, value: Value, is_own: bool, buffers: Mapping[Value, Buffer], out: Mapping[str, Array] | None
    ) -> Array:
        """A graph output as an array that belongs to the caller."""
        buffer = buffers.get(value)
        if buffer is None:
            array = self.graph.constants[value].copy()
        elif is_own and buffer.memory.space == _HOST.space and buffer.holds_its_own:
            array = buffer.data
        else:
            # Copied as well: storage that a backend put in the place of the buffer's own, which may be anybody's.
            array = buffer.memory.download(buffer.data)
        target = out.get(value.name) if out else None
        return array if target is None or target is array else copy_into(target, array, value.name)


def copy_into(target: Array, array: Array, name: str) -> Array:
    """Copy an output into the array the caller gave for it, and return that.

    Raises:
        InputError: the caller's array has another shape; nothing is broadcast.
    """
    if target.shape != array.shape:
        raise InputError(
            f"out[{name!r}] must have shape {list(array.shape)} for these inputs, has {list(target.shape)}"
        )
    np.copyto(target, array)
    return target


def _compile(placed: PlacedPartition, options: Options) -> _Step:
    candidate, part = placed.candidate, placed.partition
    backend, label = candidate.backend, candidate.device.label
    try:
        executable = backend.compile(part, candidate.device, options)
        provide = getattr(backend, "memory", None)
        memory: Memory = _HOST if provide is None else provide(candidate.device)
    except Exception as error:
        raise ExecutionError(
            f"backend {label!r} failed to compile partition {part.name!r} "
            f"({len(part.graph.nodes)} nodes): {type(error).__name__}: {error}"
        ) from error
    contracts = ((executable, ("run", "scratch_bytes")), (memory, ("space", "allocate", "upload", "download")))
    for thing, members in contracts:
        missing = [m for m in members if not hasattr(thing, m)]
        if missing:
            raise ExecutionError(
                f"backend {label!r}: its {type(thing).__name__} for partition {part.name!r} lacks "
                f"{', '.join(missing)}; see lite_core/backend.py"
            )
    return _Step(part, label, executable, memory)


def _in_memory(buffer: Buffer, memory: Memory) -> Buffer:
    if buffer.memory.space == memory.space:
        return buffer
    moved = Buffer(buffer.type, memory)
    moved.store(buffer.memory.download(buffer.data))
    return moved


def _given(value: Value, memory: Memory, out: Mapping[str, Array] | None) -> Buffer | None:
    """The caller's array for an output, where the backend can write right into it."""
    array = out.get(value.name) if out else None
    if array is None or memory.space != _HOST.space or value.type != TensorType.of_array(array):
        return None
    return Buffer(value.type, memory, array)
