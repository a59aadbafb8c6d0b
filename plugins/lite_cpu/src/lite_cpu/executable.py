"""A compiled partition: a native program, and what one run hands to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_core.backend import (
    Buffer,
    Executable,
    Interval,
    KernelTime,
    MemoryUse,
    ProfilesKernels,
    ReportsMemoryUse,
    SavesState,
)
from lite_core.errors import ExecutionError
from lite_cpu.runtime import ALIGNMENT, Program

__all__ = ["CompiledProgram", "CpuExecutable", "Pieces", "StepInfo"]

Array = np.ndarray[Any, Any]

#: What a model file keeps of a program; arrays are not copied for it.
Pieces = list[bytes | memoryview]


class StepInfo(NamedTuple):
    """What a step of a program is, for people: the kernel, the nodes it computes, the work it does."""

    kernel: str
    nodes: tuple[str, ...]
    flops: int
    bytes: int


class CompiledProgram(NamedTuple):
    """A program, what its steps are, what may turn out wrong, what lies in its arena, and all of it in pieces."""

    program: Program
    steps: tuple[StepInfo, ...]
    faults: tuple[str, ...]
    intervals: tuple[Interval, ...]
    weight_bytes: int
    save: Callable[[], Pieces]


class CpuExecutable(Executable, ProfilesKernels, ReportsMemoryUse, SavesState):
    """Runs a program. May be used by several threads at once: all state of a run is its own.

    Args:
        compiled: the program.
        threads: how many threads a run may use.
        peak_flops: tells the floating-point operations that one core can do in a second, for profiles.
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
        size = self._program.scratch_bytes(threads)
        #: A little more than the arena, which begins at the next multiple of the alignment.
        self.scratch_bytes = size + ALIGNMENT if size else 0

    def save(self) -> Pieces:
        """Everything, for :meth:`CpuBackend.restore`: the program, its kernels, and the weights that were packed."""
        return self._save()

    def memory_use(self) -> MemoryUse:
        """What lies in the arena, and what there is beside it."""
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
        """Run the program; ``times`` as for :meth:`Program.run`.

        Raises:
            ExecutionError: a kernel met data that its operator does not allow, such as an index out of range.
        """
        # NOTE: a copy made here must live until the run is over.
        sources = [b.data if b.data.flags.c_contiguous else np.ascontiguousarray(b.data) for b in inputs]
        arena = 0 if scratch is None else -(-_address(scratch.data) // ALIGNMENT) * ALIGNMENT
        addresses = [arena, 0, *map(_address, sources), *[_address(b.data) for b in outputs]]
        if not self._faults:
            self._program.run(addresses, self._threads, times)
            return
        fault = np.zeros(2, np.int64)
        self._program.run([*addresses, _address(fault)], self._threads, times)
        number, found = fault.tolist()
        if number:
            raise ExecutionError(self._faults[number - 1].replace("{}", str(found)))

    def run_profiled(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None
    ) -> Sequence[KernelTime]:
        """As :meth:`run`, and says what each kernel took and which share of the peak of all threads it reached."""
        times = np.zeros(len(self._steps) + 1, np.int64)
        peak = self._peak_flops() * self._threads
        self.run(inputs, outputs, scratch, times)
        seconds = np.diff(times) * 1e-9
        return [
            KernelTime(s.kernel, s.nodes, float(t), s.flops, s.bytes, s.flops / t / peak if s.flops and t else None)
            for s, t in zip(self._steps, seconds)
        ]


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]  # half the price of array.ctypes.data
    return address
