"""Executables of a partition for other sizes of its inputs, without compiling."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod

from lite_core.backend import Options
from lite_core.ir import Graph
from lite_cpu.bounded import Bounded, BoundedExecutable, bounded
from lite_cpu.executable import CompiledProgram, CpuExecutable

if TYPE_CHECKING:
    from lite_compiler.resized_plan import Shapes
    from lite_compiler.staging import ResizedPart
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

__all__ = ["BoundedResizing", "Resizing"]


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

    def resized(self, shapes: Shapes) -> ResizedPart | None:
        """Return the executable for shapes of the inputs, with those of the outputs; None if it must be compiled.

        A profile or an observer makes it compile its program after all, which has the same steps.
        """
        found = self._program(shapes)
        if found is None:
            return None
        compiled, complete, outputs = found
        executable = CpuExecutable(compiled, self._threads, self._peak_flops, complete)
        executable.resize = WeakMethod(self.resized)
        return executable, outputs

    def _widened(self, graph: Graph) -> Graph:
        """Return the graph that is compiled for a partition."""
        return graph

    def _program(self, shapes: Shapes) -> tuple[CompiledProgram, Callable[[], CompiledProgram], Shapes] | None:
        """Return the program for shapes of the inputs, what compiles it, and the shapes of its outputs."""
        if self._sizes is None:
            self._sizes = self._partition_sizes()
        found = self._sizes.program(shapes)
        if found is None:
            return None
        complete = cache(partial(self._compiled, shapes))
        compiled = CompiledProgram(
            found.program, (), found.template.faults, (), 0, lambda: complete().save(), lambda: complete().segments(),
            found.template.tuned, computes=lambda: complete().computes(), in_place=found.template.in_place,
        )  # fmt: skip
        return compiled, complete, found.outputs

    def _partition_sizes(self) -> PartitionSizes:
        # Imported late: most sessions have inputs of one shape.
        from lite_cpu.lowering.compile import lower_graph
        from lite_cpu.templates.partition_sizes import PartitionSizes

        options, arguments = self._options, self._arguments
        choices = arguments[-1]
        return PartitionSizes(
            self._graph,
            lambda other: lower_graph(other, options, *arguments),
            options.threads,
            lambda: 0 if choices is None else choices.count,
            self._widened,
        )

    def _compiled(self, shapes: Shapes) -> CompiledProgram:
        from lite_cpu.lowering.compile import compile_graph
        from lite_cpu.templates.partition_sizes import graph_of_shapes

        graph = self._widened(graph_of_shapes(self._graph, shapes))
        return compile_graph(graph, self._options, *self._arguments)


class BoundedResizing(Resizing):
    """The executables of a bounded node for other sizes of its inputs.

    Args:
        bounded: the graph of the node for the sizes that it was compiled for.
        arguments: those of :class:`Resizing`.
    """

    def __init__(self, bounded: Bounded, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._bounded = bounded

    def resized(self, shapes: Shapes) -> ResizedPart | None:
        """Return the executable for shapes of the inputs, and the shapes of outputs; None if it must be compiled."""
        found = self._program(shapes)
        if found is None:
            return None
        compiled, complete, outputs = found
        own = self._bounded
        types = [v.type.with_shape(shape) for v, shape in zip(own.graph.outputs, outputs)]
        executable = BoundedExecutable(compiled, self._threads, self._peak_flops, own, types, complete)
        executable.resize = WeakMethod(self.resized)
        return executable, [shape if cut is None else None for cut, shape in zip(own.cut, outputs)]

    def _widened(self, graph: Graph) -> Graph:
        found = bounded(graph)
        assert found is not None, "bounded nodes are bounded for all sizes"
        return found.graph
