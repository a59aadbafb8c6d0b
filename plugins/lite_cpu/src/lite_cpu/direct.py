"""The short way through a run of a plan that consists of one program: from the arrays straight to the native call."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lite_core.deadline import check_time
from lite_cpu.addresses import address_of

if TYPE_CHECKING:
    from lite_core.backend import Memory
    from lite_core.ir import Graph
    from lite_core.memory import ScratchPool
    from lite_core.schedule.steps import Step
    from lite_cpu.runtime import Program

__all__ = ["DirectProgram"]

Array = np.ndarray[Any, Any]

logger = logging.getLogger("lite.run")


class DirectProgram:
    """A plan's only program, run without a buffer for each array; see :mod:`lite_core.direct`.

    Runs share no state, so several threads may use it at once.

    Args:
        program: the program.
        threads: maximum number of threads of a run.
        report: makes the record of a run from its inputs and outputs; None if the program takes none.
        check: raises the error that a record contains.
        graph: the plan's graph.
        step: the only step of the plan; its results are the graph's outputs, of static types.
        arenas: the memory of a run, at most one arena.
        pool: provides it.
    """

    def __init__(
        self,
        program: Program,
        threads: int,
        report: Callable[[Sequence[Array], Sequence[Array]], Array] | None,
        check: Callable[[Array], None],
        graph: Graph,
        step: Step,
        arenas: Sequence[tuple[Memory, int]],
        pool: ScratchPool,
    ) -> None:
        self._program, self._threads, self._report, self._check = program, threads, report, check
        self._describe, self._pool = step.describe, pool
        self._memory, self._size = arenas[0] if arenas else (step.memory, 0)
        self._names = [value.name for value in graph.outputs]
        self._shapes = [tuple(value.shape) for value in graph.outputs]
        self._types = [value.dtype.numpy for value in graph.outputs]
        # The order of the program's inputs and outputs, where it is not that of the graph.
        self._reads = None if step.reads == graph.inputs else [graph.inputs.index(value) for value in step.reads]
        self._writes = None if step.writes == graph.outputs else [graph.outputs.index(value) for value in step.writes]
        count = 2 + len(step.reads) + len(step.writes) + (report is not None)
        self._pack = struct.Struct(f"{count}q").pack

    def alike(
        self,
        program: Program,
        report: Callable[[Sequence[Array], Sequence[Array]], Array] | None,
        check: Callable[[Array], None],
        size: int,
        shapes: Sequence[tuple[int, ...]],
    ) -> DirectProgram:
        """Return the short way through the same plan for other sizes.

        Args:
            program: the program for these sizes.
            report: see :class:`DirectProgram`; there is one if this program has one.
            check: see :class:`DirectProgram`.
            size: the bytes of the arena of a run.
            shapes: those of the program's outputs.
        """
        other = DirectProgram.__new__(DirectProgram)
        other.__dict__.update(self.__dict__)
        other._program, other._report, other._check, other._size = program, report, check, size
        if self._writes is None:
            other._shapes = list(shapes)
        else:
            other._shapes = [shapes[self._writes.index(number)] for number in range(len(shapes))]
        return other

    def __call__(self, inputs: Sequence[Array], out: Mapping[str, Array] | None = None) -> list[Array] | None:
        """Run the plan; return its outputs, or None if it did not run: something is logged, copied or wrong.

        Args:
            inputs: the graph's inputs.
            out: arrays for all outputs of the graph, by name; if empty, they are allocated.

        Raises:
            ExecutionError: a kernel found data that its operator does not allow.
            RunTimeoutError: the time that the run was given is over.
        """
        if logger.isEnabledFor(logging.DEBUG):
            return None
        for array in inputs:
            if not array.flags.c_contiguous:
                return None
        check_time(self._describe)
        try:
            outputs = self._given(out) if out else list(map(np.empty, self._shapes, self._types))
        except (MemoryError, ValueError):  # the plan says what there is not enough memory for
            return None
        if outputs is None:
            return None
        sources = inputs if self._reads is None else [inputs[number] for number in self._reads]
        results = outputs if self._writes is None else [outputs[number] for number in self._writes]
        if self._report is None:
            self._run(*sources, *results)
        else:
            record = self._report(sources, results)
            self._run(*sources, *results, record)
            self._check(record)
        return outputs

    def _given(self, out: Mapping[str, Array]) -> list[Array] | None:
        """Return the caller's arrays for all outputs; None if one is missing, or cannot be written as it is."""
        outputs = []
        for name, shape in zip(self._names, self._shapes):
            array = out.get(name)
            if array is None or array.shape != shape or not array.flags.c_contiguous:
                return None
            outputs.append(array)
        return outputs

    def _run(self, *arrays: Array) -> None:
        if not self._size:
            self._program.run_packed(self._pack(0, 0, *map(address_of, arrays)), self._threads)
            return
        block = self._pool.take(self._memory, self._size)
        self._program.run_packed(self._pack(address_of(block.storage), 0, *map(address_of, arrays)), self._threads)
        self._pool.give_back(block)  # not after a failure, see Plan
