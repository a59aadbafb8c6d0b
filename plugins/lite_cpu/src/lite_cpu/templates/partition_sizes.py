"""The templates of a partition, found and made by the sizes of its inputs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lite_compiler.staging import can_compile_whole
from lite_compiler.tracing.numbers import Tracer
from lite_core.forking import new_lock
from lite_core.ir import Graph
from lite_core.ops.infer import infer_graph
from lite_cpu.lowering.context import Lowering
from lite_cpu.templates.program_template import ProgramTemplate, Shapes, SizedProgram

__all__ = ["PartitionSizes", "graph_of_shapes"]

logger = logging.getLogger("lite.cpu")

#: Templates of a partition; they are tried one after another, the latest first.
_MOST_TEMPLATES = 16

#: How many more templates may be recorded than have served sizes other than their own.
_FRUITLESS = 4

#: Lowers a graph some of whose dimensions are traced.
Lower = Callable[[Graph], Lowering]


class _Entry(NamedTuple):
    """A template, and the sizes that it does not calculate with; None stands for those that it does."""

    fixed: tuple[tuple[int | None, ...], ...]
    template: ProgramTemplate

    def program(self, shapes: Shapes) -> SizedProgram | None:
        """Return the program for the shapes of the inputs, or None."""
        sizes: list[int] = []
        for own, shape in zip(self.fixed, shapes):
            if len(own) != len(shape):
                return None
            for dim, size in zip(own, shape):
                if dim is None:
                    sizes.append(size)
                elif dim != size:
                    return None
        try:
            return self.template.program(sizes)
        except Exception:  # a kernel that is not in a model's file, say: compiling the partition reports it
            logger.debug("no program from a template", exc_info=True)
            return None


class PartitionSizes:
    """The programs of a partition for sizes of its inputs, from templates. Thread-safe.

    A template is recorded when sizes arrive that no other one serves. This takes about three times as long as compiling
    the partition; afterwards its sizes take a twentieth. Where nothing is gained, because the steps differ with every
    size, recording ends soon.

    Args:
        graph: the partition for some sizes.
        lower: lowers it for others.
        threads: the number of threads that programs are divided for.
        choices: returns the number of choices among kernels that are known; templates are recorded again after others.
        widened: returns the graph to lower for that of a partition whose shapes are known.
    """

    def __init__(
        self,
        graph: Graph,
        lower: Lower,
        threads: int,
        choices: Callable[[], int],
        widened: Callable[[Graph], Graph] = lambda graph: graph,
    ) -> None:
        self._graph, self._lower, self._threads, self._choices = graph, lower, threads, choices
        self._widened = widened
        self._known_choices = choices()
        self._lock = new_lock()
        self._entries: list[_Entry] = []
        self._shapes: Shapes = tuple([tuple(value.shape) for value in graph.inputs])
        #: Which dimensions of which inputs have had several sizes.
        self._varying: set[tuple[int, int]] = set()
        self._recorded = self._served = 0

    def program(self, shapes: Shapes) -> SizedProgram | None:
        """Return the program for shapes of the inputs; None if it must be compiled."""
        with self._lock:
            if self._known_choices != self._choices():
                self._known_choices = self._choices()
                self._entries.clear()
            for entry in self._entries:
                found = entry.program(shapes)
                if found is not None:
                    self._served += 1
                    self._entries.remove(entry)
                    self._entries.insert(0, entry)
                    return found
            if self._recorded >= _FRUITLESS + self._served:
                return None
            recorded = self._record(shapes)
            self._recorded += 1
            if recorded is None:
                return None
            self._entries.insert(0, recorded)
            del self._entries[_MOST_TEMPLATES:]
            return recorded.program(shapes)

    def _record(self, shapes: Shapes) -> _Entry | None:
        """Record a template at some sizes; None if that is impossible."""
        if [*map(len, shapes)] != [*map(len, self._shapes)]:
            return None
        for i, (own, shape) in enumerate(zip(self._shapes, shapes)):
            self._varying.update((i, axis) for axis, (old, new) in enumerate(zip(own, shape)) if old != new)
        order = sorted(self._varying)
        tracer = Tracer([shapes[i][axis] for i, axis in order])
        traced: dict[tuple[int, int], Any] = dict(zip(order, tracer.sizes))
        try:
            graph = graph_of_shapes(
                self._graph,
                [[traced.get((i, axis), size) for axis, size in enumerate(shape)] for i, shape in enumerate(shapes)],
            )
            graph = self._widened(graph)
            if not can_compile_whole(graph):
                return None
            lowering = self._lower(graph)
            template = ProgramTemplate(tracer, lowering, lowering.library, self._threads)
        except Exception as error:  # the partition is then compiled as a whole, which reports what is wrong with it
            logger.debug("%s: no template: %r", self._graph.name, error, exc_info=True)
            return None
        finally:
            tracer.close()
        fixed = tuple(
            [
                tuple([None if (i, axis) in traced else size for axis, size in enumerate(shape)])
                for i, shape in enumerate(shapes)
            ]
        )
        return _Entry(fixed, template)


def graph_of_shapes(graph: Graph, shapes: Sequence[Sequence[int]]) -> Graph:
    """Return a copy of a partition's graph with the types for other shapes of its inputs."""
    copy = graph.copy()
    infer_graph(copy, {v.name: v.type.with_shape(tuple(shape)) for v, shape in zip(copy.inputs, shapes)})
    return copy
