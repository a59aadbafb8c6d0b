"""A compiled program: which kernels to call, in which order, on what; and running it."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from lite_cpu.runtime.layout import ProgramField, StepField
from lite_cpu.runtime.native import native
from lite_cpu.runtime.pool import shared_pool
from lite_cpu.runtime.tables import ProgramError, ProgramTables, Step, Words

__all__ = ["ALIGNMENT", "Program", "ProgramError", "Step"]

#: Base 0 of a run is a multiple of this many bytes, and so is every thread's scratch memory.
ALIGNMENT = 64


class Program:
    """Steps that run one after another, each divided among threads. Immutable; any number of runs at once.

    Base 0 of every run is memory for that run only: the arena, then each thread's scratch memory.

    Args:
        steps: what to do, also as tables, which are then not checked.
        arena_bytes: memory that steps share in a run.
        thread_scratch_bytes: memory of each thread, which no step leaves anything in for another.
        owners: what keeps the code and the data alive that the steps have addresses of.

    Attributes:
        tables: the steps.
        arena_bytes: as given, rounded up to :data:`ALIGNMENT`.
        thread_scratch_bytes: likewise.
        base_count: addresses that a run needs.

    Raises:
        ProgramError: a step is impossible; the message names it.
    """

    def __init__(
        self,
        steps: Sequence[Step] | ProgramTables,
        arena_bytes: int,
        thread_scratch_bytes: int,
        owners: Sequence[object] = (),
    ) -> None:
        self.tables = steps if isinstance(steps, ProgramTables) else ProgramTables.of(steps)
        self.arena_bytes = _round_up(arena_bytes)
        self.thread_scratch_bytes = _round_up(thread_scratch_bytes)
        self.base_count = 1 + int(self.tables.pointers[:, 0].max(initial=0))
        self._native = native()
        self._owners = tuple(owners)
        self._steps = self.tables.steps.copy()
        self._steps[:, StepField.POINTERS] += self.tables.pointers.ctypes.data
        self._steps[:, StepField.PARAMS] += self.tables.params.ctypes.data
        self._steps.flags.writeable = False
        self._head = self._make_head()
        self._address: int = self._head.ctypes.data
        self._is_parallel = bool((self._steps[:, StepField.CHUNKS] > 1).any())

    @property
    def labels(self) -> tuple[str, ...]:
        """Of the steps."""
        return self.tables.labels

    def scratch_bytes(self, threads: int) -> int:
        """Size of the memory that a run with up to ``threads`` threads needs as base 0."""
        return self.arena_bytes + max(1, threads) * self.thread_scratch_bytes

    def run(self, addresses: Sequence[int], threads: int = 1, times: Words | None = None) -> None:
        """Runs every step. The GIL is released; several threads may call this at once.

        When another run has the pool of ``threads`` threads, this one is done by the calling thread alone, at once.

        Args:
            addresses: the bases; number 0 is a multiple of :data:`ALIGNMENT` bytes and has room for
                :meth:`scratch_bytes`, shared with no other run.
            threads: how many to use at most.
            times: int64[steps + 1] to be filled with the moments, in nanoseconds since any, of the start and the
                end of each step; None costs nothing.

        Raises:
            ProgramError: too few addresses, a misaligned one, or ``times`` of another shape or type.
        """
        count = len(addresses)
        if count < self.base_count or addresses[0] % ALIGNMENT:
            raise self._wrong_addresses(addresses)
        bases = struct.pack(f"{count}q", *addresses)
        # NOTE: a pool is kept here, not only its address: the interpreter may leave, and forget it, during the run.
        pool = shared_pool(threads) if threads > 1 and self._is_parallel else None
        self._native.run(
            self._address,
            bases,
            None if pool is None else pool.address,
            None if times is None else self._address_of_times(times),
        )

    def _make_head(self) -> Words:
        head = np.zeros(len(ProgramField), np.int64)
        head[ProgramField.STEPS] = self._steps.ctypes.data
        head[ProgramField.STEP_COUNT] = len(self._steps)
        head[ProgramField.SCRATCH_OFFSET] = self.arena_bytes
        head[ProgramField.SCRATCH_BYTES] = self.thread_scratch_bytes
        head[ProgramField.SYSTEM] = self._native.system.ctypes.data
        head.flags.writeable = False
        return head

    def _wrong_addresses(self, addresses: Sequence[int]) -> ProgramError:
        if len(addresses) < self.base_count:
            return ProgramError(f"a run with {len(addresses)} addresses: the program's steps use {self.base_count}")
        return ProgramError(
            f"base 0 is at address {addresses[0]:#x}: expected a multiple of {ALIGNMENT} bytes; align that memory"
        )

    def _address_of_times(self, times: Words) -> int:
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
