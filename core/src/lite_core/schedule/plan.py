"""A plan: the compiled partitions of a graph for one input signature, and running them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core.backend import Buffer, Executable, HostMemory, Memory, Options, Partition, read_only
from lite_core.errors import ExecutionError, InputError, LiteError
from lite_core.ir import DType, Graph, TensorType, Value
from lite_core.schedule.devices import Candidate
from lite_core.schedule.partition import PlacedPartition, split
from lite_core.schedule.placement import Placement

__all__ = ["PartitionTime", "Plan", "copy_into"]

Array = np.ndarray[Any, Any]

_HOST = HostMemory()


@dataclass(frozen=True, slots=True)
class PartitionTime:
    """How long one partition took in one run, in seconds."""

    partition: str
    device: str
    nodes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Step:
    part: Partition
    candidate: Candidate
    executable: Executable
    memory: Memory

    @property
    def label(self) -> str:
        return f"backend {self.candidate.device.label!r}, partition {self.part.name!r},"


class Plan:
    """What runs when the inputs have given shapes.

    Args:
        graph: the graph with the types of the signature: every input's dimensions known.
        placement: the device of every node of ``graph``.
        options: what the session allows.

    Raises:
        ExecutionError: a backend failed to compile; names the backend and the partition.
    """

    def __init__(self, graph: Graph, placement: Placement, options: Options) -> None:
        self.graph = graph
        self._steps = [_compile(placed, options) for placed in split(graph, placement)]

    @property
    def partitions(self) -> list[tuple[Partition, str]]:
        """Each partition with the label of its device, in the order they run."""
        return [(step.part, step.candidate.device.label) for step in self._steps]

    def run(
        self,
        inputs: Mapping[str, Array],
        out: Mapping[str, Array] | None = None,
        times: list[PartitionTime] | None = None,
    ) -> list[Array]:
        """Run the plan.

        Args:
            inputs: an array for each input, by name, of the signature's types.
            out: arrays to write outputs into, by name; the others are newly allocated. They share memory
                neither with inputs nor with each other.
            times: filled with one entry per partition.

        Returns:
            One array per graph output, in order. Each is the caller's own: it shares memory with no
            input, constant, other output or later run.
        """
        buffers = {v: Buffer(v.type, _HOST, read_only(inputs[v.name])) for v in self.graph.inputs}
        for step in self._steps:
            arguments = [_in_memory(buffers[v], step.memory) for v in step.part.graph.inputs]
            results = [_output_buffer(v, step.memory, out) for v in step.part.graph.outputs]
            start = time.perf_counter()
            try:
                step.executable.run(arguments, results, _scratch(step))
            except LiteError:
                raise
            except Exception as error:
                raise ExecutionError(f"{step.label} failed with {type(error).__name__}: {error}") from error
            for value, result in zip(step.part.graph.outputs, results):
                if result.data is None:
                    raise ExecutionError(f"{step.label} left its output {value.name!r} empty")
            if times is not None:
                seconds = time.perf_counter() - start
                nodes = len(step.part.graph.nodes)
                times.append(PartitionTime(step.part.name, step.candidate.device.label, nodes, seconds))
            buffers.update(zip(step.part.graph.outputs, results))
        return self._collect(buffers, out)

    def _collect(self, buffers: Mapping[Value, Buffer], out: Mapping[str, Array] | None) -> list[Array]:
        """Graph outputs as arrays that belong to the caller."""
        results: list[Array] = []
        given: set[Value] = set()
        written = {v for step in self._steps for v in step.part.graph.outputs}
        for value in self.graph.outputs:
            if value in self.graph.constants:
                array = self.graph.constants[value].copy()
            else:
                buffer = buffers[value]
                # Copied: a graph input that is also an output, one value given out twice, and storage that
                # a backend put in the place of the buffer's own, which may be anybody's.
                on_host = buffer.memory.space == _HOST.space
                own = value in written and value not in given and on_host and buffer.holds_its_own
                array = buffer.data if own else buffer.memory.download(buffer.data)
            given.add(value)
            target = (out or {}).get(value.name)
            if target is not None and target is not array:
                array = copy_into(target, array, value.name)
            results.append(array)
        return results


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
    return _Step(part, candidate, executable, memory)


def _in_memory(buffer: Buffer, memory: Memory) -> Buffer:
    if buffer.memory.space == memory.space:
        return buffer
    moved = Buffer(buffer.type, memory)
    moved.store(buffer.memory.download(buffer.data))
    return moved


def _scratch(step: _Step) -> Buffer | None:
    size = step.executable.scratch_bytes
    if not size:
        return None
    type_ = TensorType(DType.UINT8, (size,))
    return Buffer(type_, step.memory, step.memory.allocate(type_))


def _output_buffer(value: Value, memory: Memory, out: Mapping[str, Array] | None) -> Buffer:
    wanted = (out or {}).get(value.name)
    if wanted is not None and memory.space == _HOST.space and value.type == TensorType.of_array(wanted):
        return Buffer(value.type, memory, wanted)
    return Buffer(value.type, memory, memory.allocate(value.type) if value.type.is_static else None)
