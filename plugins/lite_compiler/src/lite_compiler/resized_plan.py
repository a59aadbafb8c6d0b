"""Plans for other sizes of the inputs, made of executables that were resized and not compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from lite_core.backend import Executable
from lite_core.ir import Graph, Value
from lite_core.ops.infer import infer_graph
from lite_core.schedule import Plan
from lite_core.schedule.compile import CompiledPartition
from lite_core.schedule.partition import cut

__all__ = ["Resize", "Resized", "ResizedPlan", "Shapes", "resized_plan"]

#: The shape of each input, or of each output.
Shapes = tuple[tuple[int, ...], ...]
#: An executable for other shapes of its inputs, and the shapes of its outputs.
Resized = tuple[Executable, Shapes]
#: The method ``resized`` of an executable that can be had for other shapes of its inputs; None if it must be compiled.
Resize = Callable[[Shapes], "Resized | None"]

#: For each plan, whether plans for other sizes have the same partitions.
_has_same_steps: WeakKeyDictionary[Plan, bool] = WeakKeyDictionary()


def resized_plan(plan: Plan, shapes: Sequence[tuple[int, ...]]) -> Plan | None:
    """Return the plan for other shapes of a model's inputs; None if a partition must be compiled for them."""
    keeps_steps = _has_same_steps.get(plan)
    if keeps_steps is None:
        keeps_steps = _has_same_steps[plan] = _keeps_steps(plan)
    if not keeps_steps:
        return None
    sizes = dict(zip(plan.graph.inputs, shapes))
    resized: list[Resized] = []
    for each in plan.compiled:
        # NOTE: to ask whether it implements a protocol takes as long as to make a small executable.
        resize: Resize | None = getattr(each.executable, "resized", None)
        found = None if resize is None else resize(tuple([tuple(sizes[v]) for v in each.part.graph.inputs]))
        if found is None:
            return None
        sizes.update(zip(each.part.graph.outputs, found[1]))
        resized.append(found)
    return ResizedPlan(plan, sizes, resized)


def _keeps_steps(plan: Plan) -> bool:
    """Return True if plans for all sizes have the same partitions: nodes move only to save copies, or out of an If."""
    graph = plan.graph
    spaces = {each.memory.space for each in plan.compiled}
    is_plain = len(spaces) == 1 and not any(any(node.subgraphs) for node in graph.nodes)
    return is_plain and graph.constants.keys().isdisjoint(graph.outputs)


class ResizedPlan(Plan):
    """A plan made by :func:`resized_plan`. What a run does not need is made when it is read.

    Args:
        origin: the plan that was compiled.
        sizes: the shapes of the inputs, and of the results of all partitions, by the values of the origin.
        resized: the executable of each partition, with the shapes of its results.
    """

    def __init__(self, origin: Plan, sizes: Mapping[Value, tuple[int, ...]], resized: Sequence[Resized]) -> None:
        self.origin, self.placement = origin, origin.placement
        self._sizes, self._executables = sizes, resized
        self._whole: Graph | None = None
        executable, shapes = resized[0]
        alike = getattr(executable, "alike_run", None)
        self._direct = alike and origin._direct and alike(origin._direct, shapes)
        if self._direct is None:
            self._complete()

    def __getattr__(self, name: str) -> Any:
        """Return what a plan has besides the short way through its runs."""
        if name.startswith("__") or "steps" in vars(self):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        self._complete()
        return getattr(self, name)

    def _complete(self) -> None:
        origin = self.origin
        values = {v: Value(v.name, v.type.with_shape(shape)) for v, shape in self._sizes.items()}
        compiled = [
            each._replace(part=replace(each.part, graph=_outline(each.part.graph, values)), executable=executable)
            for each, (executable, _) in zip(origin.compiled, self._executables)
        ]
        super().__init__(_outline(origin.graph, values), origin.placement, compiled, origin.pool)

    def resized(self, shapes: Sequence[tuple[int, ...]]) -> Plan | None:
        return resized_plan(self.origin, shapes)

    @property
    def graph(self) -> Graph:
        """The graph with the types of all values for the shapes of the inputs."""
        if self._whole is None:
            graph = self.origin.graph.copy()
            infer_graph(graph, {value.name: value.type for value in self._outline.inputs})
            self._whole = graph
        return self._whole

    @graph.setter
    def graph(self, outline: Graph) -> None:
        self._outline = outline

    @property
    def compiled(self) -> tuple[CompiledPartition, ...]:
        """The partitions, with nodes of :attr:`graph`."""
        number_of = {node: number for number, node in enumerate(self.origin.graph.nodes)}
        parts = []
        for each, before in zip(self._parts, self.origin.compiled):
            nodes = [self.graph.nodes[number_of[node]] for node in before.part.graph.nodes]
            own = cut(self.graph, before.part.graph.name, nodes)
            parts.append(each._replace(part=replace(each.part, graph=own)))
        return tuple(parts)

    @compiled.setter
    def compiled(self, outlines: tuple[CompiledPartition, ...]) -> None:
        self._parts = outlines


def _outline(graph: Graph, values: Mapping[Value, Value]) -> Graph:
    """Return a graph with other inputs and outputs. Its nodes read and write the old ones: they only name operators."""
    return Graph(
        graph.name, inputs=[values[v] for v in graph.inputs], outputs=[values[v] for v in graph.outputs],
        nodes=graph.nodes,
    )  # fmt: skip
