"""A compiled program: the kernels to call, their order, tensors and parameters, and the call that runs them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from lite_core.deadline import check_time
from lite_cpu.addresses import address_of
from lite_cpu.runtime.layout import SUSPENDED, ResumeField, StepField
from lite_cpu.runtime.native import Native, native
from lite_cpu.runtime.pool import shared_pool
from lite_cpu.runtime.tables import Int64Array, ProgramError, ProgramTables, Step

__all__ = ["ALIGNMENT", "Program", "ProgramError", "Step"]

#: Alignment, in bytes, of base 0 of a run and of every thread's scratch memory.
ALIGNMENT = 64

#: Nanoseconds after which a run that jumps backwards returns to Python, which then tests for signals and time limits.
_SLICE_NANOSECONDS = 20_000_000

#: Fields of a step as plain numbers, which index arrays in a fifth of the time.
_POINTERS, _PARAMS, _CHUNKS = int(StepField.POINTERS), int(StepField.PARAMS), int(StepField.CHUNKS)


class Program:
    """Steps that run one after another unless they jump, each divided among threads.

    A program is immutable, and may be run any number of times at once.

    Base 0 of every run is memory for that run only: the arena, followed by each thread's scratch memory.

    Args:
        steps: the steps, or their tables, which are then not checked.
        arena_bytes: size of the memory shared by the steps of a run.
        thread_scratch_bytes: size of each thread's scratch memory; its content does not survive a step.
        owners: objects to keep alive, because the steps hold addresses of their code and data.
        code: the runtime that runs it; by default the one that is compiled on this machine.

    Attributes:
        tables: the steps.
        native: the runtime that runs it.
        arena_bytes: the argument, rounded up to :data:`ALIGNMENT`.
        thread_scratch_bytes: the argument, rounded up to :data:`ALIGNMENT`.
        base_count: number of base addresses that a run needs.

    Raises:
        ProgramError: a step is impossible; the message names it.
    """

    def __init__(
        self,
        steps: Sequence[Step] | ProgramTables,
        arena_bytes: int,
        thread_scratch_bytes: int,
        owners: Sequence[object] = (),
        code: Native | None = None,
    ) -> None:
        self.tables = steps if isinstance(steps, ProgramTables) else ProgramTables.of(steps)
        self.arena_bytes = _round_up(arena_bytes)
        self.thread_scratch_bytes = _round_up(thread_scratch_bytes)
        self.base_count = 1 + int(self.tables.pointers[:, 0].max(initial=0))
        self._pack_bases = struct.Struct(f"{self.base_count}q").pack
        self.native = code or native()
        self._owners = tuple(owners)
        self._set_tables()
        self._has_loops = bool((self._steps[:, StepField.JUMP] < 0).any())

    def resized(
        self, tables: ProgramTables, arena_bytes: int, thread_scratch_bytes: int, owners: Sequence[object]
    ) -> Program:
        """Return a program of the same steps with other tables, in a quarter of the time of a new one.

        Args:
            tables: differ from those of this program only in kernels, offsets, parameters and the division of steps.
            arena_bytes: see :class:`Program`.
            thread_scratch_bytes: see :class:`Program`.
            owners: further objects to keep alive.
        """
        other = Program.__new__(Program)
        other.__dict__.update(self.__dict__)
        other.tables = tables
        other.arena_bytes, other.thread_scratch_bytes = _round_up(arena_bytes), _round_up(thread_scratch_bytes)
        other._owners = (*self._owners, *owners)
        other._set_tables()
        return other

    def _set_tables(self) -> None:
        """Make what native code reads of the tables."""
        tables, steps = self.tables, self.tables.steps.copy()
        steps[:, _POINTERS] += address_of(tables.pointers)
        steps[:, _PARAMS] += address_of(tables.params)
        steps.flags.writeable = False
        self._steps = steps
        # In the order of ProgramField.
        system = address_of(self.native.system)
        head = [address_of(steps), len(steps), self.arena_bytes, self.thread_scratch_bytes, system]
        self._head = np.array(head, np.int64)
        self._head.flags.writeable = False
        self._address: int = address_of(self._head)
        self._is_parallel = len(steps) > 0 and bool(steps[:, _CHUNKS].max() > 1)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the steps."""
        return self.tables.labels

    def scratch_bytes(self, threads: int) -> int:
        """Return the size of the memory that a run with up to ``threads`` threads needs as base 0."""
        return self.arena_bytes + max(1, threads) * self.thread_scratch_bytes

    def run(self, addresses: Sequence[int], threads: int = 1, times: Int64Array | None = None, first: int = 0) -> None:
        """Run the steps. The GIL is released; several threads may call this at once.

        While another run uses the pool of ``threads`` threads, the calling thread runs this one alone, without waiting.

        Args:
            addresses: the bases; number 0 is a multiple of :data:`ALIGNMENT` and has :meth:`scratch_bytes` bytes
                that no other run uses.
            threads: maximum number of threads to use.
            times: int64[steps + 1] whose first element receives the moment of the end of the run, in nanoseconds since
                an arbitrary one; to each other the nanoseconds of a step are added. None avoids the measurement.
            first: the step to begin with, in memory that an earlier run left.

        Raises:
            ProgramError: too few addresses, a misaligned one, or ``times`` of another shape or type.
            RunTimeoutError: the time that the run was given is over before an iteration of a loop.
        """
        if len(addresses) < self.base_count or addresses[0] % ALIGNMENT:
            raise self._wrong_addresses(addresses)
        self.run_packed(self._pack_bases(*addresses[: self.base_count]), threads, times, first)

    def run_packed(self, bases: bytes, threads: int, times: Int64Array | None = None, first: int = 0) -> None:
        """Run the steps on addresses that are known to be right; see :meth:`run`.

        Args:
            bases: at least :attr:`base_count` addresses, as 64-bit integers.
            threads: see :meth:`run`, as the others.
            times: see :meth:`run`.
            first: see :meth:`run`.
        """
        # NOTE: this local variable keeps the pool alive, in case the interpreter exits and drops it during the run.
        pool = shared_pool(threads, self.native) if threads > 1 and self._is_parallel else None
        pool_address = None if pool is None else pool.address
        times_address = None if times is None else self._address_of_times(times)
        if not self._has_loops and not first:
            self.native.run(self._address, bases, pool_address, times_address, None)
            return
        resume = np.array([first, _SLICE_NANOSECONDS, 0], np.int64)
        while True:
            self.native.run(self._address, bases, pool_address, times_address, resume.ctypes.data)
            following = int(resume[ResumeField.NEXT])
            if not following & SUSPENDED:
                return
            resume[ResumeField.NEXT] = following & ~SUSPENDED
            check_time("{}".format, self.labels[following & ~SUSPENDED])

    def _wrong_addresses(self, addresses: Sequence[int]) -> ProgramError:
        if len(addresses) < self.base_count:
            return ProgramError(f"a run with {len(addresses)} addresses: the program's steps use {self.base_count}")
        return ProgramError(
            f"base 0 is at address {addresses[0]:#x}: expected a multiple of {ALIGNMENT} bytes; align that memory"
        )

    def _address_of_times(self, times: Int64Array) -> int:
        shape = (len(self.labels) + 1,)
        if times.shape != shape or times.dtype != np.int64 or not times.flags.carray:
            raise ProgramError(
                f"times is {times.dtype}{list(times.shape)}: expected a contiguous, writable int64{list(shape)}, "
                "one more than there are steps"
            )
        address: int = times.ctypes.data
        return address


def _round_up(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
