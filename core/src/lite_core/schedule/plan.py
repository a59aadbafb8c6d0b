"""A plan: the compiled partitions of a graph for one input signature, and running them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core.backend import Buffer, Executable, HostMemory, Memory, Options, Partition
from lite_core.errors import ExecutionError, LiteError
from lite_core.ir import DType, Graph, TensorType, Value
from lite_core.ops.infer import infer_graph
from lite_core.schedule.devices import Candidate
from lite_core.schedule.partition import split
from lite_core.schedule.placement import Placement

__all__ = ["PartitionTime", "Plan"]

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


class Plan:
    """What runs when the inputs have given shapes.

    Args:
        graph: the session's graph; copied, its types made those of the signature.
        placement: the device of every node of ``graph``.
        input_types: the signature: the type of each input, all dimensions known.
        options: what the session allows.
    """

    def __init__(
        self,
        graph: Graph,
        placement: Placement,
        input_types: Mapping[str, TensorType],
        options: Options,
    ) -> None:
        self.graph = graph.copy()
        infer_graph(self.graph, input_types)
        self._steps = [
            _Step(
                p.partition,
                p.candidate,
                self._compile(p.candidate, p.partition, options),
                _memory(p.candidate),
            )
            for p in split(self.graph, placement)
        ]

    @staticmethod
    def _compile(candidate: Candidate, part: Partition, options: Options) -> Executable:
        try:
            return candidate.backend.compile(part, candidate.device, options)
        except LiteError:
            raise
        except Exception as error:
            raise ExecutionError(
                f"backend {candidate.device.label!r} failed to compile partition {part.name!r} "
                f"({len(part.graph.nodes)} nodes): {type(error).__name__}: {error}"
            ) from error

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
            out: arrays to write outputs into, by name; the others are newly allocated.
            times: filled with one entry per partition.

        Returns:
            One array per graph output, in order. Each is the caller's own: it shares memory with no
            input, constant, other output or later run.
        """
        buffers: dict[Value, Buffer] = {v: Buffer(v.type, _HOST, inputs[v.name]) for v in self.graph.inputs}
        for step in self._steps:
            arguments = [self._in_memory(buffers[v], step.memory) for v in step.part.graph.inputs]
            results = [_output_buffer(v, step.memory, out) for v in step.part.graph.outputs]
            scratch = _scratch(step)
            start = time.perf_counter()
            try:
                step.executable.run(arguments, results, scratch)
            except LiteError:
                raise
            except Exception as error:
                raise ExecutionError(
                    f"backend {step.candidate.device.label!r} failed in partition {step.part.name!r}: "
                    f"{type(error).__name__}: {error}"
                ) from error
            if times is not None:
                seconds = time.perf_counter() - start
                label = step.candidate.device.label
                times.append(PartitionTime(step.part.name, label, len(step.part.graph.nodes), seconds))
            buffers.update(zip(step.part.graph.outputs, results))
        return self._collect(buffers, out)

    @staticmethod
    def _in_memory(buffer: Buffer, memory: Memory) -> Buffer:
        if buffer.memory.space == memory.space:
            return buffer
        moved = Buffer(buffer.type, memory)
        moved.store(buffer.memory.download(buffer.data))
        return moved

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
                # A graph input that is also an output, or one value given out twice, is copied.
                mine = value in written and value not in given and buffer.memory.space == _HOST.space
                array = buffer.data if mine else buffer.memory.download(buffer.data)
            given.add(value)
            target = (out or {}).get(value.name)
            if target is not None and target is not array:
                np.copyto(target, array)
                array = target
            results.append(array)
        return results


def _memory(candidate: Candidate) -> Memory:
    provide = getattr(candidate.backend, "memory", None)
    return _HOST if provide is None else provide(candidate.device)


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
