"""The executable of a compiled partition: kernels with their arguments, enqueued one after another."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyopencl as cl

from lite_core.backend import (
    Buffer,
    Executable,
    HasNotes,
    KernelTime,
    ListsConstantsRead,
    MemoryUse,
    ProfilesKernels,
    ReportsMemoryUse,
    SavesState,
)
from lite_core.forking import new_lock
from lite_core.ir import DType, SavedWeights, TensorType
from lite_core.log import tracked
from lite_core.observing import Observable, Observer
from lite_core.reports import StatesPrecision
from lite_opencl.compiled.faults import RECORD
from lite_opencl.compiled.graph import CompiledGraph
from lite_opencl.compiled.launches import ImageLocation, Launch, Location, Space
from lite_opencl.compiled.saved import save
from lite_opencl.device.errors import opencl_call, require_drivers
from lite_opencl.device.memory import Allocation, DeviceArray
from lite_opencl.device.runtime import DeviceRuntime

if TYPE_CHECKING:
    from lite_compiler.observing import Segment

__all__ = ["OpenClExecutable"]


class _BoundArgument(NamedTuple):
    """A tensor argument of a kernel: the buffer at ``position``, and its offset at the next position."""

    kernel: cl.Kernel
    position: int
    location: Location

    def set(self, memory: DeviceArray) -> None:
        self.kernel.set_arg(self.position, memory.allocation.buffer)
        first = (memory.offset + self.location.offset) // self.location.itemsize
        self.kernel.set_arg(self.position + 1, np.uint64(first))


class _Slot:
    """Kernel arguments in memory that may differ from run to run: an input, an output, or the arena."""

    def __init__(self) -> None:
        self.arguments: list[_BoundArgument] = []
        self._bound: weakref.ref[Allocation] | None = None
        self._offset = 0

    def bind(self, memory: DeviceArray) -> None:
        """Set the arguments to ``memory``, unless they already refer to it."""
        bound = None if self._bound is None else self._bound()
        if bound is not memory.allocation or self._offset != memory.offset:
            self._bound = None  # if an argument cannot be set, a later run must set all of them again
            for argument in self.arguments:
                argument.set(memory)
            self._bound, self._offset = weakref.ref(memory.allocation), memory.offset


class OpenClExecutable(
    Executable,
    ProfilesKernels,
    HasNotes,
    ReportsMemoryUse,
    SavesState,
    ListsConstantsRead,
    StatesPrecision,
    Observable,
):
    """An executable that runs the kernels of a partition. Thread-safe.

    All kernels are enqueued without waiting; the run then waits for the last one.

    Args:
        compiled: the partition; its programs are ready.
        runtime: the device.
        notes: lines for profiles, such as the origin of the programs.
        computes: the types that the partition computes in, in words.
    """

    def __init__(
        self, compiled: CompiledGraph, runtime: DeviceRuntime, notes: Sequence[str] = (), computes: str = ""
    ) -> None:
        self._notes = tuple(notes)
        self._computes = computes
        self.compiled = compiled
        self.scratch_bytes = compiled.arena_bytes
        self._runtime = runtime
        self._slots = [_Slot() for _ in (*compiled.graph.inputs, *compiled.graph.outputs, None)]
        self._binding = new_lock()
        self._observed: Sequence[Segment] | None = None
        with opencl_call(runtime.name, "setting the arguments of kernels"):
            self._steps = [(launch, self._bound_kernel(launch)) for launch in compiled.launches]

    @property
    def notes(self) -> Sequence[str]:
        return self._notes

    @property
    def computes(self) -> str:
        return self._computes

    def _bound_kernel(self, launch: Launch) -> cl.Kernel:
        """Return a kernel object for one launch: constant arguments are set now, the others belong to slots."""
        kernel = self._runtime.programs.kernel(launch.program, launch.kernel)
        position = 0
        for argument in launch.arguments:
            if not isinstance(argument, Location):
                kernel.set_arg(position, self._image(argument) if isinstance(argument, ImageLocation) else argument)
                position += 1
                continue
            bound = _BoundArgument(kernel, position, argument)
            if argument.space is Space.CONSTANT:
                bound.set(self.compiled.constants[argument.number])
            else:
                self._slots[-1 if argument.space is Space.ARENA else argument.number].arguments.append(bound)
            position += 2
        return kernel

    def _image(self, location: ImageLocation) -> cl.Image:
        return self._runtime.images.get(self.compiled.constants[location.number].allocation, DType(location.dtype))

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        memories = [b.data for b in (*inputs, *outputs, *([scratch] if scratch else []))]
        self.run_arrays(memories)

    def run_arrays(self, memories: Sequence[DeviceArray]) -> None:
        """Run on the storage of inputs, outputs and, if there is one, the arena; see :meth:`run`.

        Raises:
            ExecutionError: an operator does not allow its data, such as an index out of range.
        """
        with self._runtime.queues.take() as queue:
            self._run(memories, queue)
        self._check(memories)

    def run_observed(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None, observer: Observer
    ) -> None:
        """Run the same kernels on the same memory, and show an observer the values between them."""
        # Imported late: few partitions are observed.
        from lite_compiler.observing import StepSummary, run_segments
        from lite_opencl.compiled.observed import DeviceMemories

        if self._observed is None:
            self._observed = self.compiled.segments()
        arguments, results = [b.data for b in inputs], [b.data for b in outputs]
        arena: list[DeviceArray] = [scratch.data] if scratch else []
        memories = [*arguments, *results, *arena]
        steps = [StepSummary(launch.label, launch.nodes, launch.flops) for launch in self.compiled.launches]
        with self._runtime.queues.take() as queue:

            def run(number: int, begin: int, end: int) -> None:
                self._run(memories, queue, slice(begin, end))
                self._check(memories)

            visible = DeviceMemories(self._runtime.memory, arena, results)
            run_segments(self._observed, steps, run, visible, observer)

    def _run(
        self,
        memories: Sequence[DeviceArray],
        queue: cl.CommandQueue,
        part: slice | None = None,
        *,
        warming_up: bool = False,
    ) -> list[cl.Event]:
        """Run all kernels, or a part of them, and return their events in order."""
        require_drivers(self._runtime.name, "running a partition")
        try:
            events = self._enqueue(memories, queue, part)
            with opencl_call(self._runtime.name, "waiting for a partition"):
                for event in tracked(events, "compiling kernels in a first run") if warming_up else events[-1:]:
                    event.wait()
            return events
        except BaseException:
            # Enqueued kernels work in arrays of the caller, who may free them after this error.
            with suppress(cl.Error):  # the error being raised already says what happened
                queue.finish()
            raise

    def _check(self, memories: Sequence[DeviceArray]) -> None:
        """Raise an error for a fault that a run has recorded in its arena."""
        faults, memory = self.compiled.faults, self._runtime.memory
        if faults is not None:
            faults.check(memory.download(memory.view(memories[-1], faults.offset, RECORD)))

    def run_profiled(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None
    ) -> Sequence[KernelTime]:
        """Run like :meth:`run` and return the time of each kernel by the device's clock."""
        memories = [b.data for b in (*inputs, *outputs, *([scratch] if scratch else []))]
        events = self._run(memories, self._runtime.profiling_queue)
        times = []
        with opencl_call(self._runtime.name, "reading how long kernels took"):
            for (launch, _), event in zip(self._steps, events):
                seconds = 1e-9 * (event.profile.end - event.profile.start)
                times.append(KernelTime(launch.label, launch.nodes, seconds, launch.flops, launch.bytes))
        self._check(memories)
        return times

    def warm_up(self) -> None:
        """Run once on zeros, so that drivers finish compiling: some do so only at a kernel's first launch.

        This also fails early if the device has not enough memory for a run. Faults are ignored: indices that are
        computed from zeros may be out of range.
        """
        memory, graph = self._runtime.memory, self.compiled.graph
        types = [*(v.type for v in (*graph.inputs, *graph.outputs)), TensorType(DType.UINT8, (self.scratch_bytes,))]
        memories = [memory.allocate(type) for type in types]
        for zeroed in memories[: len(graph.inputs)]:
            memory.upload(np.zeros(zeroed.shape, zeroed.type.dtype.numpy), zeroed)
        with self._runtime.queues.take() as queue:
            self._run(memories, queue, warming_up=True)

    def memory_use(self) -> MemoryUse:
        """Return the sizes of the arena, of the tensors in it, and of the constants."""
        compiled = self.compiled
        weights = {c.allocation: c.allocation.bytes for c in compiled.constants}
        return MemoryUse(compiled.arena_bytes, tuple(compiled.lifetimes), 0, sum(weights.values()))

    def constants_read(self) -> Collection[str]:
        """Return the names of the partition's constants that kernels read unchanged."""
        return {name for name in self.compiled.names if name is not None}

    def save(self) -> list[bytes | SavedWeights]:
        """Return launches, programs and packed constants, for :meth:`OpenClBackend.restore`."""
        return save(self.compiled, self._runtime)

    def _enqueue(self, memories: Sequence[DeviceArray], queue: cl.CommandQueue, part: slice | None) -> list[cl.Event]:
        """Enqueue all kernels, or a part of them, and return their events in order."""
        events = []
        with opencl_call(self._runtime.name, "enqueueing a partition"), self._binding:
            for slot, memory in zip(self._slots, memories):
                slot.bind(memory)
            faults = self.compiled.faults
            if faults is not None and (part is None or part.start == 0):
                record = self._runtime.memory.view(memories[-1], faults.offset, RECORD)
                cl.enqueue_fill_buffer(queue, record.allocation.buffer, np.int32(0), record.offset, record.bytes)
            for launch, kernel in self._steps if part is None else self._steps[part]:
                events.append(cl.enqueue_nd_range_kernel(queue, kernel, launch.global_size, launch.local_size))
            queue.flush()
        return events
