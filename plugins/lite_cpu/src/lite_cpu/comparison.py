"""Measurement of planned steps, for tournaments, with weights that are not in the caches near the cores.

In a network, the input of a layer was just written and is mostly still in a cache, while its weights were last read one
run ago, before those of all other layers. So each run of a candidate here reads another copy of its constants, and the
memory of inputs and results stays the same.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lite_compiler.tournaments.turns import Run, compare_in_turns
from lite_core.errors import LiteError
from lite_cpu.aligned import LINE_BYTES, aligned_empty
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.runtime import Program, Step, usable_threads
from lite_cpu.tensors import ARENA, FIRST_ARGUMENT, Storage

if TYPE_CHECKING:
    from lite_cpu.lowering.steps import PlannedStep

__all__ = ["ColdComparison"]

logger = logging.getLogger("lite.cpu.tuning")

Array = np.ndarray[Any, Any]

#: Total size of the copies of a candidate's constants, in bytes; more than the second-level caches and most of the
#: third-level ones hold together with the other candidate's. And the largest number of copies: a comparison runs each
#: candidate about as often.
_COLD_BYTES, _MOST_COPIES = 32 << 20, 64

#: The fewest turns of a candidate. Other programs run on the same cores, for a few milliseconds at a time.
_MIN_TURNS = 10

#: Candidates that stay prepared: the best one so far and its opponent.
_PREPARED = 2


class ColdComparison:
    """A comparison of steps on this machine, with cold weights.

    Args:
        library: the library that has the kernels.
        threads: number of threads of the session, which run the steps.
    """

    def __init__(self, library: KernelLibrary, threads: int) -> None:
        self._library = library
        self._threads = usable_threads(threads)
        self._prepared: list[tuple[Sequence[PlannedStep], Run | None]] = []

    def __call__(self, steps: Sequence[PlannedStep], others: Sequence[PlannedStep]) -> tuple[float, float]:
        """Return the shortest of several interleaved times of both lists, in seconds; infinity for steps that fail."""
        run, other = self._run_of(steps), self._run_of(others)
        return compare_in_turns(run, other, logger, min_turns=_MIN_TURNS)

    def _run_of(self, steps: Sequence[PlannedStep]) -> Run | None:
        """Return the function that runs steps; the steps that were used last are still prepared."""
        for entry in self._prepared:
            if entry[0] is steps:
                self._prepared.remove(entry)
                self._prepared.append(entry)
                return entry[1]
        try:
            run = _Trial(steps, self._library, self._threads).run
        except LiteError as error:
            logger.info("a candidate is left out: %s", error)
            run = None
        self._prepared = [*self._prepared[1 - _PREPARED :], (steps, run)]
        return run


class _Trial:
    """Steps as a program with separate memory."""

    def __init__(self, steps: Sequence[PlannedStep], library: KernelLibrary, threads: int) -> None:
        storages = list(dict.fromkeys(tensor.storage for step in steps for tensor in step.tensors))
        constants = [storage for storage in storages if storage.keep is not None]
        starts, arena_bytes = _in_a_row([storage for storage in storages if storage.keep is None])
        locations = {storage: (ARENA, start) for storage, start in starts.items()}
        locations |= {storage: (FIRST_ARGUMENT + number, 0) for number, storage in enumerate(constants)}
        addresses = library.addresses([step.kernel for step in steps])
        calls = []
        for step in steps:
            pointers = [(locations[t.storage][0], locations[t.storage][1] + t.byte_offset) for t in step.tensors]
            calls.append(Step(addresses[step.kernel], pointers, step.params, step.tasks, step.grain, step.label))
        scratch_bytes = max((step.scratch_bytes for step in steps), default=0)
        self._program = Program(calls, arena_bytes, scratch_bytes, owners=[library, *constants])
        self._threads = threads
        # Zeros, since arbitrary bytes might be numbers that compute slowly, or indices out of range.
        self._arena = aligned_empty((self._program.scratch_bytes(threads),), np.uint8)
        self._arena.fill(0)
        self._copies = _copies_of(constants)
        self._times = np.zeros(len(calls) + 1, np.int64)
        self._count = 0
        self.run()

    def run(self) -> float:
        """Run the steps with the next copy of their constants, and return the seconds."""
        addresses = [int(array.ctypes.data) for array in self._copies[self._count % len(self._copies)]]
        self._count += 1
        self._times[:] = 0
        self._program.run([self._arena.ctypes.data, 0, *addresses], self._threads, self._times)
        return 1e-9 * float(self._times[1:].sum())


def _in_a_row(storages: Sequence[Storage]) -> tuple[dict[Storage, int], int]:
    """Return offsets that give every storage separate memory, and the bytes of all."""
    starts, end = {}, 0
    for storage in storages:
        starts[storage] = end
        end += -(-storage.bytes // LINE_BYTES) * LINE_BYTES
    return starts, end


def _copies_of(constants: Sequence[Storage]) -> list[list[Array]]:
    """Return copies of the elements of constants; only the constants themselves if they are large enough alone."""
    originals = [storage.keep[0].reshape(-1).view(np.uint8) for storage in constants if isinstance(storage.keep, tuple)]
    size = sum(array.nbytes for array in originals)
    count = min(_COLD_BYTES // size, _MOST_COPIES) if size else 0
    if count < 2:
        return [originals]
    copies = [[aligned_empty((array.nbytes,), np.uint8) for array in originals] for _ in range(count)]
    for copy in copies:
        for array, original in zip(copy, originals):
            np.copyto(array, original)
    return copies
