"""Executables of a partition for other sizes of its inputs, without compiling."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING
from weakref import WeakMethod

from lite_core.backend import Options
from lite_core.ir import Graph
from lite_cpu.executable import CompiledProgram, CpuExecutable

if TYPE_CHECKING:
    from lite_compiler.resized_plan import Resized, Shapes
    from lite_compiler.tournaments.table import ChoiceTable
    from lite_cpu.external import ExternalSgemm
    from lite_cpu.lowering.partition_analysis import PartitionAnalysis
    from lite_cpu.lowering.weights import WeightCache
    from lite_cpu.machine_code.library import KernelLibrary
    from lite_cpu.templates.partition_sizes import PartitionSizes

    #: What :func:`lite_cpu.lowering.compile.compile_graph` takes besides the graph and the options.
    Arguments = tuple[
        KernelLibrary, WeightCache, Callable[[], ExternalSgemm | None], PartitionAnalysis, ChoiceTable | None
    ]

__all__ = ["Resizing"]


class Resizing:
    """The executables of a partition for sizes other than those that it was compiled for. Thread-safe.

    Args:
        graph: the partition for the sizes that it was compiled for.
        options: the options of the session.
        arguments: what else the partition was compiled with.
        threads: maximum number of threads of a run.
        peak_flops: see :class:`CpuExecutable`.
    """

    def __init__(
        self, graph: Graph, options: Options, arguments: Arguments, threads: int, peak_flops: Callable[[], float]
    ) -> None:
        self._graph, self._options, self._arguments = graph, options, arguments
        self._threads, self._peak_flops = threads, peak_flops
        self._sizes: PartitionSizes | None = None

    def resized(self, shapes: Shapes) -> Resized | None:
        """Return the executable for shapes of the inputs, with those of the outputs; None if it must be compiled.

        A profile or an observer makes it compile its program after all, which has the same steps.
        """
        # Imported late: most sessions have inputs of one shape.
        from lite_cpu.lowering.compile import compile_graph, lower_graph
        from lite_cpu.templates.partition_sizes import PartitionSizes, graph_of_shapes

        if self._sizes is None:
            graph, options, arguments = self._graph, self._options, self._arguments
            choices = arguments[-1]
            self._sizes = PartitionSizes(
                graph,
                lambda other: lower_graph(other, options, *arguments),
                options.threads,
                lambda: 0 if choices is None else choices.count,
            )
        found = self._sizes.program(shapes)
        if found is None:
            return None

        @cache
        def complete() -> CompiledProgram:
            return compile_graph(graph_of_shapes(self._graph, shapes), self._options, *self._arguments)

        compiled = CompiledProgram(
            found.program, (), found.template.faults, (), 0, lambda: complete().save(), lambda: complete().segments(),
            found.template.tuned, computes=lambda: complete().computes(), in_place=found.template.in_place,
        )  # fmt: skip
        executable = CpuExecutable(compiled, self._threads, self._peak_flops, complete)
        executable.resize = WeakMethod(self.resized)
        return executable, found.outputs
