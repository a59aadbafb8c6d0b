"""Observed runs of a program: segment by segment, each as a program on the tables and the memory of the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from lite_compiler.observing import Segment, StepSummary, run_segments
from lite_core.observing import Observer
from lite_cpu.runtime import Program

__all__ = ["ObservedProgram"]

Array = np.ndarray[Any, Any]


class ObservedProgram:
    """A program cut into segments. Runs share no state, so several threads may use it at once.

    Args:
        program: the program.
        steps: its steps.
        segments: its segments.
    """

    def __init__(self, program: Program, steps: Sequence[StepSummary], segments: Sequence[Segment]) -> None:
        self._steps, self._segments = steps, segments
        self._parts = [
            Program(
                program.tables.part(begin, end),
                program.arena_bytes,
                program.thread_scratch_bytes,
                owners=[program],
                code=program.native,
            )
            for begin, end in pairwise([0, *[segment.end for segment in segments]])
        ]

    def run(
        self,
        addresses: Sequence[int],
        memories: Sequence[Array],
        threads: int,
        check: Callable[[], None],
        observer: Observer,
    ) -> None:
        """Run the program; see :meth:`Program.run`.

        Args:
            addresses: the bases.
            memories: the arena, which begins at base 0, and the outputs of the partition.
            threads: maximum number of threads to use.
            check: raises an error if a step has recorded a fault.
            observer: receives the values after each segment, unless a step of it has recorded a fault.
        """

        def run(number: int, begin: int, end: int) -> None:
            self._parts[number].run(addresses, threads)
            check()

        run_segments(self._segments, self._steps, run, _MainMemory(memories), observer)


class _MainMemory:
    """The memory of a run as bytes; what is loaded is the memory itself."""

    def __init__(self, memories: Sequence[Array]) -> None:
        self._bytes = [memory.reshape(-1).view(np.uint8) for memory in memories]

    def load(self, memory: int, begin: int, end: int) -> Array:
        return self._bytes[memory][begin:end]

    def store(self, memory: int, begin: int, content: Array) -> None:
        pass  # it was changed in place
