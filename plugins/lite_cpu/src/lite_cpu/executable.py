"""A compiled partition: a native program, and what one run hands to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core.backend import Buffer, KernelTime
from lite_core.errors import ExecutionError
from lite_cpu.image import CodeImage
from lite_cpu.runtime import ALIGNMENT, Program
from lite_cpu.saved import pack_images

__all__ = ["CompiledProgram", "CpuExecutable", "StepInfo"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class StepInfo:
    """What a step of a program is, for people: the kernel, the nodes it computes, the work it does."""

    kernel: str
    nodes: tuple[str, ...]
    flops: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """A program, what its steps are, what may turn out wrong, where its kernels can be used again, and they by key."""

    program: Program
    steps: tuple[StepInfo, ...]
    faults: tuple[str, ...]
    identity: str
    images: Callable[[], Mapping[str, CodeImage]]


class CpuExecutable:
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
        self._peak_flops = peak_flops
        self._threads = threads
        self._identity = compiled.identity
        self._images = compiled.images
        size = self._program.scratch_bytes(threads)
        #: A little more than the arena, which begins at the next multiple of the alignment.
        self.scratch_bytes = size + ALIGNMENT if size else 0

    def save(self) -> bytes:
        """The compiled kernels, for :meth:`CpuBackend.restore`."""
        return pack_images(self._identity, self._images())

    def kernels(self) -> set[str]:
        """The keys of all kernels that are called."""
        return set(self._images())

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        self.run_arrays([b.data for b in inputs], [b.data for b in outputs], None if scratch is None else scratch.data)

    def run_arrays(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        scratch: Array | None,
        times: Array | None = None,
    ) -> None:
        """As :meth:`run`, on arrays; ``times`` as for :meth:`Program.run`.

        Raises:
            ExecutionError: a kernel met data that its operator does not allow, such as an index out of range.
        """
        # NOTE: a copy made here must live until the run is over.
        sources = [a if a.flags.c_contiguous else np.ascontiguousarray(a) for a in inputs]
        arena = 0 if scratch is None else -(-_address(scratch) // ALIGNMENT) * ALIGNMENT
        addresses = [arena, 0, *map(_address, sources), *map(_address, outputs)]
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
        data = None if scratch is None else scratch.data
        self.run_arrays([b.data for b in inputs], [b.data for b in outputs], data, times)
        seconds = np.diff(times) * 1e-9
        return [
            KernelTime(s.kernel, s.nodes, float(t), s.flops, s.bytes, s.flops / t / peak if s.flops and t else None)
            for s, t in zip(self._steps, seconds)
        ]


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]  # half the price of array.ctypes.data
    return address
