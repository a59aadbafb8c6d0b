"""A compiled program: which kernels to call, in which order, on what; and running it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lite_core.errors import LiteError
from lite_cpu.runtime.layout import CHUNK_LIMIT, POINTER_LIMIT, STEP_LIMIT, STEP_WORDS, ProgramWord, StepWord
from lite_cpu.runtime.native import native
from lite_cpu.runtime.pool import shared_pool

__all__ = ["ALIGNMENT", "Program", "ProgramError", "Step"]

#: Base 0 of a run is a multiple of this many bytes, and so is every thread's scratch memory.
ALIGNMENT = 64

Words = npt.NDArray[np.int64]


class ProgramError(LiteError):
    """Steps that no program can be made of, or memory that does not fit the program that is run."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a kernel: ``void kernel(pointers, params, begin, end, thread_scratch)``.

    Attributes:
        kernel: address of its code.
        pointers: where its tensors are: (number of the base, offset in bytes). Base 0 is the arena.
        params: its parameters, int64.
        tasks: work items. Any thread may do any of them, in any order.
        grain: the most work items that a thread takes at a time. One thread does all if there are no more.
        label: what people call it, for profiles and messages.
    """

    kernel: int
    pointers: Sequence[tuple[int, int]]
    params: Sequence[int]
    tasks: int = 1
    grain: int = 1
    label: str = ""


class Program:
    """Steps that run one after another, each divided among threads. Immutable; any number of runs at once.

    Base 0 of every run is memory for that run only: the arena, then each thread's scratch memory.

    Args:
        steps: what to do.
        arena_bytes: memory that steps share in a run.
        thread_scratch_bytes: memory of each thread, which no step leaves anything in for another.
        owners: what keeps the code and the data alive that the steps have addresses of.

    Attributes:
        labels: of the steps.
        base_count: addresses that a run needs.

    Raises:
        ProgramError: a step is impossible; the message names it.
    """

    def __init__(
        self, steps: Sequence[Step], arena_bytes: int, thread_scratch_bytes: int, owners: Sequence[object] = ()
    ) -> None:
        if len(steps) > STEP_LIMIT:
            raise ProgramError(f"a program of {len(steps)} steps: expected at most {STEP_LIMIT}; divide it")
        for number, step in enumerate(steps):
            _check(number, step)
        self.labels = tuple(step.label for step in steps)
        self.base_count = 1 + max((base for step in steps for base, _ in step.pointers), default=0)
        self._arena_bytes = _round_up(arena_bytes)
        self._thread_scratch_bytes = _round_up(thread_scratch_bytes)
        self._native = native()
        self._owners = tuple(owners)
        self._pointers = _words([word for step in steps for pointer in step.pointers for word in pointer])
        self._params = _words([param for step in steps for param in step.params])
        self._steps = _step_table(steps, self._pointers.ctypes.data, self._params.ctypes.data)
        self._head = self._make_head(len(steps))
        self._address: int = self._head.ctypes.data
        self._is_parallel = bool((self._steps[:, StepWord.CHUNKS] > 1).any())

    def scratch_bytes(self, threads: int) -> int:
        """Size of the memory that a run with up to ``threads`` threads needs as base 0."""
        return self._arena_bytes + max(1, threads) * self._thread_scratch_bytes

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

    def _make_head(self, step_count: int) -> Words:
        head = np.zeros(len(ProgramWord), np.int64)
        head[ProgramWord.STEPS] = self._steps.ctypes.data
        head[ProgramWord.STEP_COUNT] = step_count
        head[ProgramWord.SCRATCH_OFFSET] = self._arena_bytes
        head[ProgramWord.SCRATCH_BYTES] = self._thread_scratch_bytes
        head[ProgramWord.SYSTEM] = self._native.system.ctypes.data
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


def _check(number: int, step: Step) -> None:
    subject = f"step {number} ({step.label})" if step.label else f"step {number}"
    if not step.kernel:
        raise ProgramError(f"{subject} has no kernel: expected the address of its code, found {step.kernel}")
    if len(step.pointers) > POINTER_LIMIT:
        raise ProgramError(f"{subject} has {len(step.pointers)} pointers: expected at most {POINTER_LIMIT}; divide it")
    if step.tasks < 0 or step.grain < 1:
        raise ProgramError(
            f"{subject} has {step.tasks} tasks in grains of {step.grain}: expected at least 0 tasks in grains of 1"
        )
    if any(base < 0 for base, _ in step.pointers):
        raise ProgramError(f"{subject} points into base {min(base for base, _ in step.pointers)}: expected 0 or more")


def _step_table(steps: Sequence[Step], pointers: int, params: int) -> Words:
    """The steps as :class:`StepWord` has them; ``pointers`` and ``params`` are the addresses of the two arrays."""
    table = []
    for step in steps:
        grain, chunks = _divide(step.tasks, step.grain)
        table.append([step.kernel, pointers, len(step.pointers), params, step.tasks, grain, chunks, 0])
        pointers += 16 * len(step.pointers)
        params += 8 * len(step.params)
    run_length = 0
    for row in reversed(table):
        run_length = run_length + 1 if row[StepWord.CHUNKS] == 1 else 0
        row[StepWord.RUN_LENGTH] = run_length
    return _words(table).reshape(-1, STEP_WORDS)


def _divide(tasks: int, grain: int) -> tuple[int, int]:
    """The grain to use and the number of chunks that it gives: as few chunks as ``grain`` allows, of equal sizes."""
    chunks = min(max(1, -(-tasks // grain)), CHUNK_LIMIT - 1)
    even_grain = max(1, -(-tasks // chunks))
    return even_grain, max(1, -(-tasks // even_grain))


def _words(numbers: Sequence[object]) -> Words:
    words = np.array(numbers, np.int64)
    words.flags.writeable = False
    return words


def _round_up(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
