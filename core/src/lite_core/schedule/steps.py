"""What a plan runs, one step after another: partitions, and copies between memory spaces."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from lite_core.backend import Buffer, HostMemory, KernelTime, Memory
from lite_core.errors import ExecutionError, LiteError
from lite_core.ir import TensorType, Value
from lite_core.schedule.compile import CompiledPartition
from lite_core.schedule.control import ControlExecutable
from lite_core.schedule.profile import CopyTime, RunProfile
from lite_core.schedule.scratch import ScratchBlock

__all__ = ["ControlStep", "CopyStep", "PartitionStep", "Place", "Run", "Step"]

Array = np.ndarray[Any, Any]


@dataclass(slots=True)
class Run:
    """One run of a plan.

    Attributes:
        buffers: what has been computed, by value.
        blocks: the memory of each of the plan's arenas.
        out: arrays that the caller gave for outputs, by name.
        profile: told what each step took, where somebody wants to know.
    """

    buffers: dict[Value, Buffer]
    blocks: Sequence[ScratchBlock]
    out: Mapping[str, Array] | None
    profile: RunProfile | None


class Place(NamedTuple):
    """Where a tensor lies: in which arena, and how many bytes from its start."""

    arena: int
    offset: int


class Step(Protocol):
    """One step. ``reads`` and ``writes`` are keys of :attr:`Run.buffers`; ``places`` says where results go."""

    reads: Sequence[Value]
    writes: Sequence[Value]
    places: dict[Value, Place]

    @property
    def memory(self) -> Memory:
        """The memory that results are in."""
        ...

    @property
    def scratch_bytes(self) -> int:
        """Scratch memory that the step needs."""
        ...

    scratch: Place | None

    def run(self, run: Run) -> None:
        """Take what it reads from the run's buffers, and put there what it writes."""
        ...

    def describe(self) -> str:
        """The step in words, one line."""
        ...


class PartitionStep:
    """Runs a compiled partition.

    Args:
        compiled: the partition.
        reads: for each input of its graph the value, or copy of a value, that it takes.
    """

    def __init__(self, compiled: CompiledPartition, reads: Sequence[Value]) -> None:
        self.compiled = compiled
        self.part = compiled.part
        self.label = compiled.label
        self.memory: Memory = compiled.memory
        self.reads: Sequence[Value] = list(reads)
        self.writes: Sequence[Value] = list(compiled.part.graph.outputs)
        self.places: dict[Value, Place] = {}
        self.scratch: Place | None = None
        self._executable = compiled.executable
        # A type whose shape depends on data has no storage before the run.
        self._results = [(value, value.type, value.type.is_static) for value in self.writes]

    @property
    def scratch_bytes(self) -> int:
        return self._executable.scratch_bytes

    def run(self, run: Run) -> None:
        arguments = [run.buffers[value] for value in self.reads]
        results = [self._result(value, type, is_static, run) for value, type, is_static in self._results]
        size = self._executable.scratch_bytes
        scratch = None
        if size:
            assert self.scratch is not None
            scratch = run.blocks[self.scratch.arena].at(self.scratch.offset, size)
        try:
            self._execute(arguments, results, scratch, run.profile)
        except LiteError:
            raise
        except Exception as error:
            raise ExecutionError(f"{self} failed with {type(error).__name__}: {error}") from error
        for value, result in zip(self.writes, results):
            if result.data is None:
                raise ExecutionError(f"{self} left its output {value.name!r} empty")
            run.buffers[value] = result

    def _result(self, value: Value, type: TensorType, is_static: bool, run: Run) -> Buffer:
        if value in self.places:
            place = self.places[value]
            return run.blocks[place.arena].tensor(place.offset, type)
        memory = self.memory
        if run.out and value.name in run.out and memory.space == HostMemory.space:
            given = run.out[value.name]
            if type == TensorType.of_array(given):
                return Buffer(type, memory, given)
        return Buffer(type, memory, memory.allocate(type) if is_static else None)

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
        seconds = time.perf_counter() - start
        profile.add(self.part, self.label, seconds, kernels, getattr(self._executable, "notes", ()))

    def describe(self) -> str:
        counts = ", ".join(f"{op} {n}" if n > 1 else op for op, n in self.part.graph.op_counts().items())
        return f"run    {self.part.name}: {len(self.part.graph.nodes)} node(s): {counts}"

    def __str__(self) -> str:
        return f"backend {self.label!r}, partition {self.part.name!r},"


class ControlStep(PartitionStep):
    """Runs a node whose sub-graphs have plans of their own. Its time is what remains beside those."""

    def _execute(
        self, arguments: list[Buffer], results: list[Buffer], scratch: Buffer | None, profile: RunProfile | None
    ) -> None:
        executable = self.compiled.executable
        assert isinstance(executable, ControlExecutable)
        inside = None if profile is None else RunProfile()
        start = time.perf_counter()
        executable.run(arguments, results, scratch, inside)
        if profile is not None and inside is not None:
            seconds = time.perf_counter() - start - inside.accounted_seconds()
            profile.add(self.part, self.label, seconds, ())
            profile.add_repeated(inside)

    def describe(self) -> str:
        node = self.part.graph.nodes[0]
        return f"run    {self.part.name}: {node.qualified_op} {node.name!r}, its sub-graphs by plans of their own"


class CopyStep:
    """IoCopy: copies a tensor from one memory space to another, through main memory where neither is that.

    Args:
        source: the value that is copied.
        result: what stands for it in the other space.
        origin: the space it is in.
        memory: the memory it is copied to.
    """

    def __init__(self, source: Value, result: Value, origin: str, memory: Memory) -> None:
        self.reads: Sequence[Value] = [source]
        self.writes: Sequence[Value] = [result]
        self.memory = memory
        self.places: dict[Value, Place] = {}
        self.scratch: Place | None = None
        self.scratch_bytes = 0
        self._origin = origin

    def run(self, run: Run) -> None:
        source, result = self.reads[0], self.writes[0]
        buffer = run.buffers[source]
        start = time.perf_counter()
        try:
            array = buffer.memory.download(buffer.data) if self._origin != HostMemory.space else buffer.data
            run.buffers[result] = self._store(array, run.blocks)
        except Exception as error:
            raise ExecutionError(
                f"copying {source.name!r} from {self._origin} to {self.memory.space} memory failed with "
                f"{type(error).__name__}: {error}"
            ) from error
        if run.profile is not None:
            seconds = time.perf_counter() - start
            run.profile.copies.append(
                CopyTime(source.name, self._origin, self.memory.space, int(array.nbytes), seconds)
            )

    def _store(self, array: Array, blocks: Sequence[ScratchBlock]) -> Buffer:
        if self.memory.space == HostMemory.space:  # a download is a copy already
            return Buffer(TensorType.of_array(array), self.memory, array)
        place = self.places.get(self.writes[0])
        if place is None:
            target = Buffer(TensorType.of_array(array), self.memory)
            target.allocate(array.shape)
        else:
            target = blocks[place.arena].tensor(place.offset, self.writes[0].type)
        self.memory.upload(array, target.data)
        return target

    def describe(self) -> str:
        value = self.reads[0]
        return f"IoCopy %{value.name}: {value.type} from {self._origin} to {self.memory.space}"
