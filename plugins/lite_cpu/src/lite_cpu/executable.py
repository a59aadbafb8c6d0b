"""The executable of a partition: a native program, and the call that runs it on buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ctypes import addressof, c_char
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lite_core.backend import (
    Buffer,
    Executable,
    HasNotes,
    Interval,
    KernelTime,
    ListsConstantsRead,
    MemoryUse,
    ProfilesKernels,
    ReportsMemoryUse,
    SavedWeights,
    SavesState,
)
from lite_core.errors import ExecutionError
from lite_core.in_place import UpdatesInPlace
from lite_core.observing import Observable, Observer
from lite_core.reports import StatesPrecision
from lite_cpu.runtime import ALIGNMENT, Program

if TYPE_CHECKING:
    from lite_compiler.observing import Segment
    from lite_compiler.tournaments.choice import Choice
    from lite_core.ir import Graph
    from lite_cpu.kernels.base import Kernel
    from lite_cpu.observed import ObservedProgram

__all__ = [
    "CompiledProgram",
    "CpuExecutable",
    "ForeignExecutable",
    "Pieces",
    "StepInfo",
    "Tuned",
    "address_of",
]

Array = np.ndarray[Any, Any]

_FIRST_BYTE: Callable[[Any], Any] = c_char.from_buffer

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
):
    """An executable that runs a compiled program; runs share no state, so several threads may use it at once.

    Args:
        compiled: the program.
        threads: maximum number of threads of a run.
        peak_flops: returns the floating-point operations per second of one core, for profiles; 0 if unknown.
    """

    def __init__(self, compiled: CompiledProgram, threads: int, peak_flops: Callable[[], float]) -> None:
        self._program = compiled.program
        self._steps = compiled.steps
        self._faults = compiled.faults
        self._intervals = compiled.intervals
        self._weight_bytes = compiled.weight_bytes
        self._peak_flops = peak_flops
        self._threads = threads
        self._save = compiled.save
        self._segments = compiled.segments
        self._observed: ObservedProgram | None = None
        self._notes = compiled.tuned.notes
        self._computes = compiled.computes
        self._in_place = compiled.in_place
        self._caches = frozenset(compiled.in_place.values())
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
        return self._computes()

    def save(self) -> Pieces:
        """Return the program, its kernels and the packed weights as pieces for :meth:`CpuBackend.restore`."""
        return self._save()

    def constants_read(self) -> Sequence[str]:
        """Return the names of the graph's constants that :meth:`CpuBackend.restore` and the restored program read."""
        from lite_cpu.saved.constants import names_read
        from lite_cpu.saved.frame import read_frame

        program = self._save()[0]
        assert not isinstance(program, SavedWeights)
        return names_read(read_frame(memoryview(program)).description["constants"])

    def memory_use(self) -> MemoryUse:
        """Return the sizes of arena, scratch memory and weights, and the lifetimes of the tensors in the arena."""
        program = self._program
        scratch_bytes = self._threads * program.thread_scratch_bytes
        return MemoryUse(program.arena_bytes, self._intervals, scratch_bytes, self._weight_bytes)

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
        if not self._faults and not self.in_place:
            self._program.run(addresses, self._threads, times)
            return
        record = self._record(sources, [b.data for b in outputs])
        self._program.run([*addresses, address_of(record)], self._threads, times)
        self._check(record)

    def _record(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Array:
        """Return what a run has besides its arguments: an empty fault, and the strides of its caches in elements."""
        pairs = [array for o, i in self.in_place.items() for array in (outputs[o], inputs[i])]
        return np.array([0, 0, *(n // a.itemsize for a in pairs for n in a.strides[:2])], np.int64)

    def _check(self, fault: Array) -> None:
        number, found = fault[:2].tolist()
        if number:
            raise ExecutionError(self._faults[number - 1].replace("{}", str(found)))

    def run_observed(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None, observer: Observer
    ) -> None:
        """Run the same steps on the same memory and threads, and show an observer the values between them."""
        # Imported late: few programs are observed.
        from lite_compiler.observing import StepSummary
        from lite_cpu.observed import ObservedProgram

        if self._observed is None:
            steps = [StepSummary(step.kernel, step.nodes, step.flops) for step in self._steps]
            self._observed = ObservedProgram(self._program, steps, self._segments())
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
        times = np.zeros(len(self._steps) + 1, np.int64)
        peak = self._peak_flops() * self._threads
        self.run(inputs, outputs, scratch, times)
        seconds = np.diff(times) * 1e-9
        return [
            KernelTime(
                s.kernel, s.nodes, float(t), s.flops, s.bytes, s.flops / t / peak if s.flops and t and peak else None
            )
            for s, t in zip(self._steps, seconds)
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


def address_of(array: Array) -> int:
    """Return the address of a contiguous array, for most arrays in a third of the time of ``array.ctypes.data``.

    An input is a read-only view, usually of a writable array: if both are contiguous and of one size, they begin at the
    same address.
    """
    flags = array.flags
    source = array if flags.writeable else array.base
    if not flags.c_contiguous:  # a cache
        pass
    elif source is array or (type(source) is np.ndarray and source.nbytes == array.nbytes):
        try:
            return addressof(_FIRST_BYTE(source))
        except (TypeError, ValueError):  # it is read-only or empty, or its element type is unknown to buffers
            pass
    address: int = array.__array_interface__["data"][0]
    return address
