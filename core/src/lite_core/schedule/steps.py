"""What a plan runs, one step after another: partitions, and copies between memory spaces."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from lite_core.backend import Buffer, HasNotes, KernelTime, Memory, ProfilesKernels
from lite_core.errors import ExecutionError, LiteError
from lite_core.ir import TensorType, Value
from lite_core.memory import HostMemory, read_only
from lite_core.memory.scratch import ScratchBlock
from lite_core.memory.sharing import can_share, is_shareable, new_array
from lite_core.schedule.compile import CompiledPartition
from lite_core.schedule.control import ControlExecutable
from lite_core.schedule.profile import CopyTime, RunProfile

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
        shared: the array in main memory that a device's storage is, for values where it is one.
    """

    buffers: dict[Value, Buffer]
    blocks: Sequence[ScratchBlock]
    out: Mapping[str, Array] | None
    profile: RunProfile | None
    shared: dict[Value, Array] = field(default_factory=dict)


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

    def has_storage_for(self, value: Value) -> bool:
        """Whether a result has storage of its own in every run, so that it needs no place in an arena."""
        ...

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
        self._leaving: frozenset[Value] = frozenset()
        self._executable = compiled.executable
        # A type whose shape depends on data has no storage before the run.
        self._results = [(value, value.type, value.type.is_static) for value in self.writes]

    @property
    def scratch_bytes(self) -> int:
        return self._executable.scratch_bytes

    def leave(self, values: Set[Value]) -> None:
        """Say which values are copied to other memory: where they can, they are computed in main memory at once."""
        self._leaving = frozenset(values).intersection(self.writes) if can_share(self.memory) else frozenset()

    def has_storage_for(self, value: Value) -> bool:
        return value in self._leaving

    def run(self, run: Run) -> None:
        arguments = [run.buffers[value] for value in self.reads]
        results = [self._result(value, type, is_static, run) for value, type, is_static in self._results]
        size = self._executable.scratch_bytes
        scratch = None
        if size:
            assert self.scratch is not None
            scratch = run.blocks[self.scratch.arena].at(self.scratch.offset, size)
        try:
            if run.profile is None:
                self._executable.run(arguments, results, scratch)
            else:
                self._run_profiled(arguments, results, scratch, run.profile)
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
        given = run.out.get(value.name) if run.out else None
        if given is not None and type != TensorType.of_array(given):
            given = None
        if given is not None and memory.space == HostMemory.space:
            return Buffer(type, memory, given)
        if is_static and value in self._leaving and can_share(memory):
            array = given if given is not None and is_shareable(given, memory) else new_array(type, memory)
            if is_shareable(array, memory):  # an empty one is not
                run.shared[value] = array
                return Buffer(type, memory, memory.wrap(array))
        return Buffer(type, memory, memory.allocate(type) if is_static else None)

    def _run_profiled(
        self, arguments: list[Buffer], results: list[Buffer], scratch: Buffer | None, profile: RunProfile
    ) -> None:
        executable = self._executable
        kernels: Sequence[KernelTime] = ()
        if isinstance(executable, ProfilesKernels):
            start = time.perf_counter()
            kernels = executable.run_profiled(arguments, results, scratch)
        else:
            start = time.perf_counter()
            executable.run(arguments, results, scratch)
        seconds = time.perf_counter() - start
        profile.add(
            self.part, self.label, seconds, kernels, executable.notes if isinstance(executable, HasNotes) else ()
        )

    def describe(self) -> str:
        counts = ", ".join(f"{op} {n}" if n > 1 else op for op, n in self.part.graph.op_counts().items())
        return f"run    {self.part.name}: {len(self.part.graph.nodes)} node(s): {counts}"

    def __str__(self) -> str:
        return f"backend {self.label!r}, partition {self.part.name!r},"


class ControlStep(PartitionStep):
    """Runs a node whose sub-graphs have plans of their own. Its time is what remains beside those."""

    def _run_profiled(
        self, arguments: list[Buffer], results: list[Buffer], scratch: Buffer | None, profile: RunProfile
    ) -> None:
        executable = self.compiled.executable
        assert isinstance(executable, ControlExecutable)
        inside = RunProfile()
        start = time.perf_counter()
        executable.run(arguments, results, scratch, inside)
        profile.add(self.part, self.label, time.perf_counter() - start - inside.accounted_seconds(), ())
        profile.add_repeated(inside)

    def describe(self) -> str:
        node = self.part.graph.nodes[0]
        return f"run    {self.part.name}: {node.qualified_op} {node.name!r}, its sub-graphs by plans of their own"


class CopyStep:
    """IoCopy: copies a tensor from one memory space to another, through main memory where neither is that.

    Nothing is copied from or to a device that works in main memory, as far as it takes the array that is there.

    Args:
        source: the value that is copied.
        result: what stands for it in the other space.
        origin: the memory it is in.
        memory: the memory it is copied to.
    """

    def __init__(self, source: Value, result: Value, origin: Memory, memory: Memory) -> None:
        self.reads: Sequence[Value] = [source]
        self.writes: Sequence[Value] = [result]
        self.memory = memory
        self.places: dict[Value, Place] = {}
        self.scratch: Place | None = None
        self.scratch_bytes = 0
        self._origin = origin

    @property
    def may_share(self) -> bool:
        """Whether the result may be the storage of what is copied."""
        return can_share(self.memory)

    def has_storage_for(self, value: Value) -> bool:
        return self.memory.space == HostMemory.space

    def run(self, run: Run) -> None:
        source, result = self.reads[0], self.writes[0]
        origin, target = self._origin.space, self.memory.space
        start = time.perf_counter()
        try:
            array, is_copied = self._fetch(run)
            run.buffers[result], is_stored = self._store(array, run)
        except Exception as error:
            raise ExecutionError(
                f"copying {source.name!r} from {origin} to {target} memory failed with {type(error).__name__}: {error}"
            ) from error
        if run.profile is not None:
            seconds = time.perf_counter() - start
            size = int(array.nbytes) if is_copied or is_stored else 0
            run.profile.copies.append(CopyTime(source.name, origin, target, size, seconds))

    def _fetch(self, run: Run) -> tuple[Array, bool]:
        """What is copied, in main memory, and whether it had to be copied there."""
        source = self.reads[0]
        buffer = run.buffers[source]
        memory = buffer.memory
        if memory.space == HostMemory.space:
            return buffer.data, False
        if source in run.shared and buffer.holds_its_own and can_share(memory):
            memory.synchronize(buffer.data)
            return run.shared[source], False
        return memory.download(buffer.data), True

    def _store(self, array: Array, run: Run) -> tuple[Buffer, bool]:
        """The result, and whether the array was copied into it."""
        if self.memory.space == HostMemory.space:
            return Buffer(TensorType.of_array(array), self.memory, array), False
        # Storage that a backend put in the place of the buffer's own may be gone when the result is read.
        is_safe = run.buffers[self.reads[0]].holds_its_own
        if is_safe and can_share(self.memory) and is_shareable(array, self.memory):
            return Buffer(TensorType.of_array(array), self.memory, self.memory.wrap(read_only(array))), False
        place = self.places.get(self.writes[0])
        if place is None:
            target = Buffer(TensorType.of_array(array), self.memory)
            target.allocate(array.shape)
        else:
            target = run.blocks[place.arena].tensor(place.offset, self.writes[0].type)
        self.memory.upload(array, target.data)
        return target, True

    def describe(self) -> str:
        value = self.reads[0]
        is_shared = all(can_share(m) or m.space == HostMemory.space for m in (self._origin, self.memory))
        how = ", zero copy" if is_shared else ""
        return f"IoCopy %{value.name}: {value.type} from {self._origin.space} to {self.memory.space}{how}"
