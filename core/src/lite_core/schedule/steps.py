"""The steps of a plan: running partitions, and copying between memory spaces."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lite_core.backend import Buffer, KernelTime, Memory, ProfilesKernels
from lite_core.errors import ExecutionError, LiteError
from lite_core.in_place import UpdatesInPlace
from lite_core.ir import Array, TensorType, Value
from lite_core.memory import HostMemory, read_only
from lite_core.memory.scratch import ScratchBlock
from lite_core.memory.sharing import can_share, is_shareable, new_array
from lite_core.observing import Observable, Observed, Observer, observed_buffers
from lite_core.plugins.contracts import fault_text
from lite_core.schedule.compile import CompiledPartition
from lite_core.schedule.control import ControlExecutable
from lite_core.schedule.devices import Candidate
from lite_core.schedule.profile import CopyTime, RunProfile

__all__ = ["Allocation", "ControlStep", "CopyStep", "PartitionStep", "Run", "Step"]

logger = logging.getLogger("lite.run")


@dataclass(slots=True)
class Run:
    """The state of one run of a plan.

    Attributes:
        buffers: computed tensors, by value.
        out: the caller's arrays for outputs, by name.
        profile: receives the times of the steps, or None.
        observer: receives the results of the kernels, or None.
        blocks: the memory of each of the plan's arenas.
        shared: for values whose device storage wraps an array in main memory, that array.
    """

    buffers: dict[Value, Buffer]
    out: Mapping[str, Array] | None
    profile: RunProfile | None
    observer: Observer | None
    blocks: Sequence[ScratchBlock]
    shared: dict[Value, Array] = field(default_factory=dict)


class Allocation(NamedTuple):
    """Memory in an arena: the arena's index, and the offset in bytes."""

    arena: int
    offset: int


class Step(ABC):
    """One step.

    Args:
        reads: the keys of :attr:`Run.buffers` that it reads.
        writes: the keys that it adds.
        memory: the memory space of its results.
    """

    #: Size of the step's scratch memory.
    scratch_bytes = 0

    def __init__(self, reads: Sequence[Value], writes: Sequence[Value], memory: Memory) -> None:
        self.reads = list(reads)
        self.writes = list(writes)
        self.memory = memory
        #: The results that are in arenas, and the scratch memory if it needs some; the plan sets both.
        self.allocations: dict[Value, Allocation] = {}
        #: See :class:`~lite_core.in_place.UpdatesInPlace`.
        self.in_place: Mapping[int, int] = {}
        self.scratch: Allocation | None = None

    @abstractmethod
    def has_own_storage(self, value: Value) -> bool:
        """Return True if a result gets separate storage in every run, so that it needs no memory in an arena."""

    @abstractmethod
    def run(self, run: Run) -> None:
        """Execute the step: read from the run's buffers, and add the results to them."""

    @abstractmethod
    def describe(self) -> str:
        """Return a one-line description."""


class PartitionStep(Step):
    """Step that runs a compiled partition.

    Args:
        compiled: the partition.
        reads: for each input of its graph the value to read, which may be a copy in its memory space.
    """

    def __init__(self, compiled: CompiledPartition, reads: Sequence[Value]) -> None:
        super().__init__(reads, compiled.part.graph.outputs, compiled.memory)
        self.part = compiled.part
        self.label, self._candidate = compiled.candidate.device.label, compiled.candidate
        self.scratch_bytes = compiled.executable.scratch_bytes
        self._copied: frozenset[Value] = frozenset()
        self._executable = compiled.executable
        if isinstance(compiled.executable, UpdatesInPlace) and compiled.memory.space == HostMemory.space:
            self.in_place = compiled.executable.in_place

    @property
    def computes(self) -> str:
        """The types that the partition computes in, in its backend's words; empty if the backend does not say."""
        return str(self._reported("computes", ""))

    def mark_copied(self, values: Set[Value]) -> None:
        """Set the values that are copied to other memory: if possible, they are computed directly in main memory."""
        self._copied = frozenset(values).intersection(self.writes) if can_share(self.memory) else frozenset()

    def has_own_storage(self, value: Value) -> bool:
        return value in self._copied or value.dtype.numpy.hasobject  # an arena's bytes cannot be objects

    def run(self, run: Run) -> None:
        arguments = [run.buffers[value] for value in self.reads]
        try:
            results = [self._result(value, run) for value in self.writes]
            scratch = self.scratch and run.blocks[self.scratch.arena].at(self.scratch.offset, self.scratch_bytes)
            if run.observer is not None:
                self._run_observed(arguments, results, scratch, run)
            elif run.profile is None:
                self._executable.run(arguments, results, scratch)
            else:
                self._run_profiled(arguments, results, scratch, run)
            for value, result in zip(self.writes, results):
                if result.data is None:
                    raise ExecutionError(f"{self} left its output {value.name!r} empty")
                if self.memory.space == HostMemory.space:
                    _check_type(self, value, result.data)
                run.buffers[value] = result
        except (Exception, SystemExit) as error:
            own = ExecutionError(f"{self} failed with {fault_text(error)}")
            fault = self._candidate.blamed(error if isinstance(error, LiteError) else own)
            raise fault from (error if fault is own else error.__cause__)

    def _result(self, value: Value, run: Run) -> Buffer:
        type, memory = value.type, self.memory
        if value in self.allocations:
            arena, offset = self.allocations[value]
            return run.blocks[arena].tensor(offset, type)
        given = run.out.get(value.name) if run.out else None
        if given is not None and type.shape != given.shape:
            given = None
        if given is not None and memory.space == HostMemory.space:
            return Buffer(type, memory, given)
        if type.is_static and value in self._copied and can_share(memory):
            array = given if given is not None and is_shareable(given, memory) else new_array(type, memory)
            if is_shareable(array, memory):  # False for empty arrays
                run.shared[value] = array
                return Buffer(type, memory, memory.wrap(array))
        # A result whose shape depends on data is allocated during the run.
        return Buffer(type, memory, memory.allocate(type) if type.is_static else None)

    def _run_observed(self, arguments: list[Buffer], results: list[Buffer], scratch: Buffer | None, run: Run) -> None:
        assert run.observer is not None
        located = _LocatedObserver(run.observer, self.label, self.part.name)
        if isinstance(self._executable, Observable):
            start = time.perf_counter()
            self._executable.run_observed(arguments, results, scratch, located)
            if run.profile is not None:
                notes = ["observed: its kernels ran one by one, and their times include that"]
                run.profile.add(self.part, self.label, time.perf_counter() - start, located.kernels, notes)
            return
        nodes = [node.name for node in self.part.graph.nodes]
        located.starts(self.label, nodes)
        self._run_profiled(arguments, results, scratch, run)
        located.computed(observed_buffers(self.label, nodes, self.writes, results))

    def _run_profiled(self, arguments: list[Buffer], results: list[Buffer], scratch: Buffer | None, run: Run) -> None:
        """Run the executable, and record its times if the run is profiled."""
        executable = self._executable
        kernels: Sequence[KernelTime] = ()
        profiling = executable if isinstance(executable, ProfilesKernels) else None  # slow, so that it is not timed
        start = time.perf_counter()
        if profiling is not None and run.profile is not None:
            kernels = profiling.run_profiled(arguments, results, scratch)
        else:
            executable.run(arguments, results, scratch)
        seconds = time.perf_counter() - start
        if run.profile is not None:
            run.profile.add(self.part, self.label, seconds, kernels, self._reported("notes", ()))

    def _reported(self, name: str, otherwise: Any) -> Any:
        """Return what an optional part of the executable reports; if that fails, log it."""
        try:
            return getattr(self._executable, name, otherwise)
        except (Exception, SystemExit) as error:
            logger.warning("%s has no %s: that failed with %s", self, name, fault_text(error))
            return otherwise

    def describe(self) -> str:
        counts = ", ".join(f"{op} {n}" if n > 1 else op for op, n in self.part.graph.op_counts().items())
        computes = f"; in {self.computes}" if self.computes else ""
        return f"run    {self.part.name}: {len(self.part.graph.nodes)} node(s): {counts}{computes}"

    def __str__(self) -> str:
        return f"{self._candidate}, partition {self.part.name!r},"


class ControlStep(PartitionStep):
    """Step that runs a node whose sub-graphs have separate plans. Its profiled time excludes these plans."""

    def _run_profiled(self, arguments: list[Buffer], results: list[Buffer], scratch: Buffer | None, run: Run) -> None:
        assert isinstance(self._executable, ControlExecutable)
        inside = RunProfile()
        start = time.perf_counter()
        self._executable.run(
            arguments, results, scratch, lambda plan, given: plan.run(given, profile=inside, observer=run.observer)
        )
        if run.profile is not None:
            run.profile.add(self.part, self.label, time.perf_counter() - start - inside.accounted_seconds(), ())
            run.profile.add_repeated(inside)

    def describe(self) -> str:
        node = self.part.graph.nodes[0]
        return f"run    {self.part.name}: {node.qualified_op} {node.name!r}, its sub-graphs by plans of their own"


class _LocatedObserver:
    """An observer that is also told the device and the partition of each kernel, which is logged before it starts.

    The log is flushed line by line: if a kernel ends the process, the last line names it.
    """

    def __init__(self, observer: Observer, device: str, partition: str) -> None:
        self.kernels: list[KernelTime] = []
        self._observer, self._device, self._partition = observer, device, partition
        self._start = 0.0

    def starts(self, kernel: str, nodes: Sequence[str]) -> None:
        logger.debug("partition %s on %s: kernel %s: nodes %s", self._partition, self._device, kernel, nodes)
        self._observer.starts(kernel, nodes)
        self._start = time.perf_counter()

    def computed(self, results: Observed) -> None:
        self.kernels.append(KernelTime(results.kernel, tuple(results.nodes), time.perf_counter() - self._start))
        self._observer.computed(results._replace(device=self._device, partition=self._partition))


class CopyStep(Step):
    """IoCopy: a copy of a tensor from one memory space to another, through main memory if neither is main memory.

    With zero copy, the array in main memory is wrapped instead of copied.

    Args:
        source: the value to copy.
        result: the value that represents the copy.
        origin: the memory to copy from.
        memory: the memory to copy to.
        owners: the devices of those of the two memories that are not main memory.
    """

    def __init__(self, source: Value, result: Value, origin: Memory, memory: Memory, owners: list[Candidate]) -> None:
        super().__init__([source], [result], memory)
        self._origin, self._owners, self._owners_text = origin, owners, " and ".join(map(str, owners))

    def has_own_storage(self, value: Value) -> bool:
        return self.memory.space == HostMemory.space

    def run(self, run: Run) -> None:
        source, result = self.reads[0], self.writes[0]
        origin, target = self._origin.space, self.memory.space
        start, owner = time.perf_counter(), self._owners[0]
        try:
            array, is_copied = self._fetch(run)
            owner = self._owners[-1]
            run.buffers[result], is_stored = self._store(array, run)
        except (Exception, SystemExit) as error:
            what = f"{self._owners_text}: copying {source.name!r} from {origin} to {target} memory"
            raise owner.blamed(ExecutionError(f"{what} failed with {fault_text(error)}")) from error
        if run.profile is not None:
            seconds = time.perf_counter() - start
            size = int(array.nbytes) if is_copied or is_stored else 0
            run.profile.copies.append(CopyTime(source.name, origin, target, size, seconds))

    def _fetch(self, run: Run) -> tuple[Array, bool]:
        """Return the source as an array in main memory, and True if it was copied there."""
        source = self.reads[0]
        buffer = run.buffers[source]
        memory = buffer.memory
        if memory.space == HostMemory.space:
            return buffer.data, False
        if source in run.shared and buffer.holds_its_own and can_share(memory):
            memory.synchronize(buffer.data)
            return run.shared[source], False
        array = memory.download(buffer.data)
        _check_type(f"{self._owners_text}: its memory", source, array)
        return array, True

    def _store(self, array: Array, run: Run) -> tuple[Buffer, bool]:
        """Return the result, and True if the array was copied into it."""
        if self.memory.space == HostMemory.space:
            return Buffer(TensorType.of_array(array), self.memory, array), False
        # Storage that a backend substituted for the buffer's own may be released before the result is read.
        is_safe = run.buffers[self.reads[0]].holds_its_own
        if is_safe and can_share(self.memory) and is_shareable(array, self.memory):
            return Buffer(TensorType.of_array(array), self.memory, self.memory.wrap(read_only(array))), False
        if (allocation := self.allocations.get(self.writes[0])) is None:
            target = Buffer(TensorType.of_array(array), self.memory)
            target.allocate(array.shape)
        else:
            target = run.blocks[allocation.arena].tensor(allocation.offset, self.writes[0].type)
        self.memory.upload(array, target.data)
        return target, True

    def describe(self) -> str:
        value = self.reads[0]
        is_shared = all(can_share(m) or m.space == HostMemory.space for m in (self._origin, self.memory))
        how = ", zero copy" if is_shared else ""
        return f"IoCopy %{value.name}: {value.type} from {self._origin.space} to {self.memory.space}{how}"


def _check_type(who: object, value: Value, array: Array) -> None:
    """Raise ExecutionError if an array from a backend is not of the type of its value."""
    if array.dtype != value.dtype.numpy or not value.type.accepts(array.shape):
        found = f"{array.dtype}{[*array.shape]} for output {value.name!r}"
        raise ExecutionError(f"{who} gave {found}, expected {value.type}")
