"""The programs of a Loop's iterations, by the sizes of what grows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lite_core.backend import Options
from lite_core.forking import new_lock
from lite_core.ir import DType, Graph, TensorType, Value
from lite_cpu.executable import CompiledProgram, CpuExecutable
from lite_cpu.iteration import Iterations
from lite_cpu.lowering.compile import compile_graph, lower_graph
from lite_cpu.runtime import Program
from lite_cpu.templates.partition_sizes import PartitionSizes

if TYPE_CHECKING:
    from lite_cpu.templates.resizing import Arguments

__all__ = ["LoopProgram", "LoopPrograms"]

#: Bytes of the tables of all programs that a loop keeps. The tables of 30 steps have 8 KiB.
_MOST_BYTES = 32 << 20

#: No size: a template calculates with all of them.
_NO_SIZE = 1 << 40


class LoopProgram(NamedTuple):
    """The program of an iteration, the messages of its faults, and the bytes of memory that a run of it needs."""

    program: Program
    faults: tuple[str, ...]
    scratch_bytes: int


class LoopPrograms:
    """The programs of a Loop's iterations. Thread-safe.

    Templates make them: a few are recorded, because some sizes need other steps, and serve all lengths and capacities.
    Only where no template can be recorded, or too many would be, an iteration is compiled for its sizes.

    Args:
        iterations: makes the graphs of iterations.
        options: the options of the session.
        arguments: what else graphs are compiled with.
        threads: maximum number of threads of a run.

    Attributes:
        iterations: the argument.
        before: the executable of what is the same in each iteration; None if there is none.
    """

    def __init__(self, iterations: Iterations, options: Options, arguments: Arguments, threads: int) -> None:
        self.iterations, self._options, self._arguments, self._threads = iterations, options, arguments, threads
        before = iterations.before
        self.before = None
        if before is not None:
            library, weights, find_sgemm, _, choices = arguments  # the analysis is that of an iteration
            compiled = compile_graph(before, options, library, weights, find_sgemm, None, choices)
            self.before = CpuExecutable(compiled, threads, lambda: 0.0)
        choices = arguments[-1]
        count: Callable[[], int] = lambda: 0 if choices is None else choices.count  # noqa: E731
        sizes = Value("sizes", TensorType(DType.BOOL, (_NO_SIZE,) * (2 * len(iterations.growths))))
        self._templates = PartitionSizes(
            Graph("iteration", inputs=[sizes]),
            lambda graph: lower_graph(graph, options, *arguments),
            options.threads,
            count,
            lambda graph: iterations.graph(graph.inputs[0].shape),
        )
        self._found: dict[tuple[int, ...], LoopProgram] = {}
        self._bytes = 0
        self._lock = new_lock()

    def program(self, sizes: tuple[int, ...]) -> LoopProgram:
        """Return the program for sizes; see :meth:`Iterations.graph`."""
        found = self._found.get(sizes)
        if found is None:
            with self._lock:
                found = self._found.get(sizes) or self._add(sizes)
        return found

    def compiled(self, sizes: Sequence[int]) -> CompiledProgram:
        """Compile the program for sizes, with everything that reports need."""
        return compile_graph(self.iterations.graph(sizes), self._options, *self._arguments)

    def _add(self, sizes: tuple[int, ...]) -> LoopProgram:
        sized = self._templates.program((sizes,))
        if sized is None:
            compiled = self.compiled(sizes)
            program, faults = compiled.program, compiled.faults
        else:
            program, faults = sized.program, sized.template.faults
        tables = program.tables
        bytes = 2 * tables.steps.nbytes + tables.pointers.nbytes + tables.params.nbytes
        if self._bytes + bytes > _MOST_BYTES:  # the next run needs them in the same order: it would find no old ones
            self._found.clear()
            self._bytes = 0
        self._bytes += bytes
        found = self._found[sizes] = LoopProgram(program, faults, program.scratch_bytes(self._threads))
        return found
