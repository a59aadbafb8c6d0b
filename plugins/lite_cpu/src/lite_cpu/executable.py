"""The executable of a partition: a native program, and the call that runs it on buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lite_core.backend import (
    Buffer,
    Executable,
    HasNotes,
    Interval,
    KernelTime,
    ListsConstantsRead,
    Memory,
    MemoryUse,
    ProfilesKernels,
    ReportsMemoryUse,
    SavedWeights,
    SavesState,
)
from lite_core.direct import RunsDirectly
from lite_core.errors import ExecutionError
from lite_core.in_place import UpdatesInPlace
from lite_core.observing import Observable, Observer
from lite_core.reports import StatesPrecision
from lite_core.resizing import PlansOtherSizes
from lite_cpu.addresses import address_of
from lite_cpu.direct import DirectProgram
from lite_cpu.runtime import ALIGNMENT, Program

if TYPE_CHECKING:
    from lite_compiler.observing import Segment
    from lite_compiler.resized_plan import Shapes
    from lite_compiler.staging import ResizedPart
    from lite_compiler.tournaments.choice import Choice
    from lite_core.ir import Graph
    from lite_core.memory import ScratchPool
    from lite_core.schedule import Plan
    from lite_core.schedule.steps import Step
    from lite_cpu.kernels.base import Kernel
    from lite_cpu.observed import ObservedProgram

__all__ = [
    "CompiledProgram",
    "CpuExecutable",
    "ForeignExecutable",
    "Pieces",
    "StepInfo",
    "Tuned",
]

Array = np.ndarray[Any, Any]

#: A saved program, as a model file stores it; arrays are views, not copies.
Pieces = list[bytes | memoryview | SavedWeights]


class StepInfo(NamedTuple):
    """Description of a step, for profiles: the kernel, the nodes it computes, its operations and bytes moved."""

    kernel: str
    nodes: tuple[str, ...]
    flops: int
    bytes: int


class Tuned(NamedTuple):
    """The choices of kernels that a program was compiled with because they won a tournament.

    Attributes:
        choices: the choices by problem; of all others, an estimate decided.
        device: the identity of the processor if unknown choices were measured, else empty.
        notes: a line for profiles, if there are such choices.
    """

    choices: Mapping[str, Choice] = {}
    device: str = ""
    notes: tuple[str, ...] = ()


class CompiledProgram(NamedTuple):
    """A compiled program with everything that its executable reports about it.

    Attributes:
        program: the program.
        steps: descriptions of its steps.
        faults: messages of the errors that kernels may detect in a run.
        intervals: lifetimes and sizes of the tensors in its arena.
        weight_bytes: size of the constants that it reads.
        save: returns the program as pieces.
        segments: returns its segments, for observers.
        tuned: the choices that were measured.
        kernels: its kernels, and those that make its weights; none if it was restored.
        computes: returns the types that it computes in, in words.
        in_place: for each output that may be in the memory of an input, the input, by their numbers.
    """

    program: Program
    steps: tuple[StepInfo, ...]
    faults: tuple[str, ...]
    intervals: tuple[Interval, ...]
    weight_bytes: int
    save: Callable[[], Pieces]
    segments: Callable[[], Sequence[Segment]]
    tuned: Tuned = Tuned()
    kernels: frozenset[Kernel] = frozenset()
    computes: Callable[[], str] = str
    in_place: Mapping[int, int] = {}


class CpuExecutable(
    Executable,
    ProfilesKernels,
    HasNotes,
    ReportsMemoryUse,
    SavesState,
    ListsConstantsRead,
    StatesPrecision,
    UpdatesInPlace,
    Observable,
    PlansOtherSizes,
    RunsDirectly,
):
    """An executable that runs a compiled program; runs share no state, so several threads may use it at once.

    Args:
        compiled: the program.
        threads: maximum number of threads of a run.
        peak_flops: returns the floating-point operations per second of one core, for profiles; 0 if unknown.
        complete: returns the program with what ``compiled`` lacks, if it lacks anything that only reports need.
    """

    def __init__(
        self,
        compiled: CompiledProgram,
        threads: int,
        peak_flops: Callable[[], float],
        complete: Callable[[], CompiledProgram] | None = None,
    ) -> None:
        self._program = compiled.program
        self._faults = compiled.faults
        self._peak_flops = peak_flops
        self._threads = threads
        self._complete = complete or (lambda: compiled)
        self._observed: ObservedProgram | None = None
        self._notes = compiled.tuned.notes
        self._in_place = compiled.in_place
        self._caches = frozenset(compiled.in_place.values())
        #: Returns what makes the executable for other shapes of the inputs, as long as the session or the stage lives.
        self.resize: Callable[[], Callable[[Shapes], ResizedPart | None] | None] = lambda: None
        size = self._program.scratch_bytes(threads)
        #: Includes the bytes that are skipped to align the arena.
        self.scratch_bytes = size + ALIGNMENT if size else 0

    @property
    def in_place(self) -> Mapping[int, int]:
        """See :class:`~lite_core.in_place.UpdatesInPlace`."""
        return self._in_place

    @property
    def notes(self) -> Sequence[str]:
        """The number of choices that tournaments decided, if any."""
        return self._notes

    @property
    def computes(self) -> str:
        """The types that the program computes in, with the number of products that have another type than the rest."""
        return self._complete().computes()

    def save(self) -> Pieces:
        """Return the program, its kernels and the packed weights as pieces for :meth:`CpuBackend.restore`."""
        return self._complete().save()

    def constants_read(self) -> Sequence[str]:
        """Return the names of the graph's constants that :meth:`CpuBackend.restore` and the restored program read."""
        from lite_cpu.saved.constants import names_read
        from lite_cpu.saved.frame import read_frame

        program = self.save()[0]
        assert not isinstance(program, SavedWeights)
        return names_read(read_frame(memoryview(program)).description["constants"])

    def memory_use(self) -> MemoryUse:
        """Return the sizes of arena, scratch memory and weights, and the lifetimes of the tensors in the arena."""
        program = self._program
        scratch_bytes = self._threads * program.thread_scratch_bytes
        complete = self._complete()
        return MemoryUse(program.arena_bytes, complete.intervals, scratch_bytes, complete.weight_bytes)

    def resized(self, shapes: Shapes) -> ResizedPart | None:
        """Return the executable for other shapes of the inputs; None if the partition must be compiled for them."""
        resize = self.resize()
        return None if resize is None else resize(shapes)

    def plan_for(self, plan: Plan, shapes: Sequence[tuple[int, ...]]) -> Plan | None:
        """Return the plan for other shapes of a model's inputs, if its partitions need not be compiled for them."""
        from lite_compiler.resized_plan import resized_plan  # imported late: most sessions have inputs of one shape

        return resized_plan(plan, shapes)

    def direct_run(
        self, graph: Graph, step: Step, arenas: Sequence[tuple[Memory, int]], pool: ScratchPool
    ) -> DirectProgram | None:
        """Return the short way through a plan; see :class:`~lite_core.direct.RunsDirectly`.

        There is none if the plan does more than run the program: if it returns an input or a constant, or one result
        twice, or if results get their shapes during the run.
        """
        results = step.writes
        is_whole = len(graph.outputs) == len(results) and set(graph.outputs) == set(results)
        is_plain = type(self).run is CpuExecutable.run and all(value.type.is_static for value in results)
        if not is_whole or not is_plain:
            return None
        report = self._record if self._faults or self._in_place else None
        return DirectProgram(self._program, self._threads, report, self._check, graph, step, arenas, pool)

    def alike_run(self, direct: DirectProgram, shapes: Shapes) -> DirectProgram:
        """Return the short way through a plan for other sizes, for which this is the executable.

        Args:
            direct: the short way through the plan that was compiled.
            shapes: those of the outputs.
        """
        report = self._record if self._faults or self._in_place else None
        return direct.alike(self._program, report, self._check, self.scratch_bytes, shapes)

    def run(
        self,
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        scratch: Buffer | None,
        times: Array | None = None,
    ) -> None:
        """Run the program; for ``times`` see :meth:`Program.run`.

        Raises:
            ExecutionError: a kernel found data that its operator does not allow, such as an index out of range.
        """
        # NOTE: this list keeps copies of non-contiguous inputs alive until the run is over.
        sources = [
            b.data if b.data.flags.c_contiguous or i in self._caches else np.ascontiguousarray(b.data)
            for i, b in enumerate(inputs)
        ]
        arena = 0 if scratch is None else -(-address_of(scratch.data) // ALIGNMENT) * ALIGNMENT
        addresses = [arena, 0, *map(address_of, sources), *[address_of(b.data) for b in outputs]]
        if not self._faults and not self._in_place:
            self._program.run(addresses, self._threads, times)
            return
        record = self._record(sources, [b.data for b in outputs])
        self._program.run([*addresses, address_of(record)], self._threads, times)
        self._check(record)

    def _record(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Array:
        """Return what a run has besides its arguments: an empty fault, and the strides of its caches in elements."""
        if not self._in_place:
            return np.zeros(2, np.int64)
        pairs = [array for o, i in self.in_place.items() for array in (outputs[o], inputs[i])]
        return np.array([0, 0, *(n // a.itemsize for a in pairs for n in a.strides[:2])], np.int64)

    def _check(self, fault: Array) -> None:
        if number := int(fault[0]):
            raise ExecutionError(self._complete().faults[number - 1].replace("{}", str(int(fault[1]))))

    def run_observed(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None, observer: Observer
    ) -> None:
        """Run the same steps on the same memory and threads, and show an observer the values between them."""
        # Imported late: few programs are observed.
        from lite_compiler.observing import StepSummary
        from lite_cpu.observed import ObservedProgram

        if self._observed is None:
            complete = self._complete()
            steps = [StepSummary(step.kernel, step.nodes, step.flops) for step in complete.steps]
            self._observed = ObservedProgram(complete.program, steps, complete.segments())
        sources = [np.ascontiguousarray(b.data) for b in inputs]
        results = [b.data if b.data.flags.c_contiguous else np.empty(b.data.shape, b.data.dtype) for b in outputs]
        record = self._record(sources, results)
        block = np.empty(0, np.uint8) if scratch is None else scratch.data
        start = -(-address_of(block) // ALIGNMENT) * ALIGNMENT
        memories = [block[start - address_of(block) :], *results]
        addresses = [start, 0, *map(address_of, (*sources, *results, record))]
        self._observed.run(addresses, memories, self._threads, lambda: self._check(record), observer)
        for buffer, result in zip(outputs, results):
            if buffer.data is not result:
                np.copyto(buffer.data, result)

    def run_profiled(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None
    ) -> Sequence[KernelTime]:
        """Run the program and return the time of each kernel and its share of the peak of all threads."""
        steps = self._complete().steps
        times = np.zeros(len(steps) + 1, np.int64)
        peak = self._peak_flops() * self._threads
        self.run(inputs, outputs, scratch, times)
        seconds = times[1:] * 1e-9
        return [
            KernelTime(
                s.kernel, s.nodes, float(t), s.flops, s.bytes, s.flops / t / peak if s.flops and t and peak else None
            )
            for s, t in zip(steps, seconds)
        ]


class ForeignExecutable(CpuExecutable):
    """An executable with code for another processor, to be saved in a model file.

    A run takes the references: a conversion learns from it the sizes that depend on data.

    Args:
        compiled: the program.
        threads: maximum number of threads of a run on the other processor.
        graph: the graph that the program computes.
    """

    def __init__(self, compiled: CompiledProgram, threads: int, graph: Graph) -> None:
        super().__init__(compiled, threads, lambda: 0.0)
        self._graph = graph

    def run(
        self,
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        scratch: Buffer | None,
        times: Array | None = None,
    ) -> None:
        """Compute the graph by the references."""
        from lite_core.ops.evaluate import evaluate_graph

        for buffer, array in zip(outputs, evaluate_graph(self._graph, [b.data for b in inputs])):
            buffer.store(array)

    def run_observed(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None, observer: Observer
    ) -> None:
        """Compute the graph by the references, and show an observer the results of each node."""
        from lite_compiler.staging import HostExecutable

        HostExecutable(self._graph).run_observed(inputs, outputs, scratch, observer)
