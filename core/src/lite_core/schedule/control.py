"""If, Loop and Scan across devices: their bodies are graphs that are placed, compiled and run like any other.

What an operator does with its bodies (which branch, how many iterations, what is stacked) is said once, by its
reference; only the bodies run by plans instead of by references. So a step of this kind runs on ``host``, between its
bodies' partitions, which run wherever their nodes were placed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from lite_core.backend import Buffer, Partition
from lite_core.ir import Graph, Node, Value
from lite_core.schedule.plan_cache import PlanCache, Signature
from lite_core.schedule.profile import RunProfile

__all__ = ["BodyPlan", "ControlExecutable", "PlanBody"]

Array = np.ndarray[Any, Any]


class BodyPlan(Protocol):
    """What is needed of the plan of a body: running it."""

    def run(
        self, inputs: Sequence[Array], out: Mapping[str, Array] | None = None, profile: RunProfile | None = None
    ) -> list[Array]:
        """An array for each output of the body, in order; ``profile`` is told what its partitions take."""
        ...


#: Makes the plan of a body, a graph of its own whose types are inferred; the text goes before its partitions' names.
PlanBody = Callable[[Graph, str], BodyPlan]

# Lengths that grow with the iterations come back in the same order: fewer plans than lengths serve none of them.
_MOST_PLANS = 64


class ControlExecutable:
    """Runs one node that has sub-graphs, each by plans for the shapes at hand. May be used by many threads at once.

    Args:
        part: the partition, of this node only.
        plan_body: makes the plans.
    """

    scratch_bytes = 0

    def __init__(self, part: Partition, plan_body: PlanBody) -> None:
        self.node: Node = part.graph.nodes[0]
        self._graph = part.graph
        self._results = [self.node.outputs.index(value) for value in part.graph.outputs]
        self._bodies = {
            body: _Body(body, part.graph.constants, f"{part.name}/{name}/", plan_body)
            for name, body in self.node.attributes.items()
            if isinstance(body, Graph)
        }

    def run(
        self,
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        scratch: Buffer | None,
        profile: RunProfile | None = None,
    ) -> None:
        """Run the node; ``profile`` is told what the partitions of its bodies take, each time they run."""
        from lite_core.ops.evaluate import evaluate_node  # not at the top: few models need it

        scope: dict[Value, Array] = dict(self._graph.constants)
        scope.update((value, buffer.data) for value, buffer in zip(self._graph.inputs, inputs))

        def run_body(body: Graph, arrays: Sequence[Array]) -> list[Array]:
            return self._bodies[body].run(arrays, scope, profile)

        arrays = [None if value is None else scope[value] for value in self.node.inputs]
        condition = arrays[0] if self.node.op == "If" else None
        if condition is not None and condition.size == 1:
            # Of If the reference would only do this, but its checks take as long as a small branch.
            taken = self.node.attributes["then_branch" if condition.item() else "else_branch"]
            assert isinstance(taken, Graph)
            results = run_body(taken, [])
        else:
            results = evaluate_node(self.node, arrays, scope, run_body)
        for buffer, index in zip(outputs, self._results):
            # A copy: what a body only hands on is still the storage of an input or of what it captured.
            buffer.store(results[index])


class _Body:
    """A sub-graph as a graph of its own, and its plans by the shapes of what goes in.

    What it captures becomes an input, or stays a constant: the same array, so that backends find its packed weights.
    What it only hands on is no business of the plans.
    """

    def __init__(self, body: Graph, constants: Mapping[Value, Array], prefix: str, plan_body: PlanBody) -> None:
        captured = list(body.captured())
        made = {value for node in body.nodes for value in node.outputs}
        self._captured = [value for value in captured if value not in constants]
        self._outputs = body.outputs
        self._graph = Graph(
            body.name,
            inputs=[*body.inputs, *self._captured],
            outputs=list(dict.fromkeys(value for value in body.outputs if value in made)),
            nodes=body.nodes,
            constants={**body.constants, **{value: constants[value] for value in captured if value in constants}},
        )
        self._prefix = prefix
        self._plan_body = plan_body
        self._plans: PlanCache[BodyPlan] = PlanCache(_MOST_PLANS)

    def run(self, arrays: Sequence[Array], scope: Mapping[Value, Array], profile: RunProfile | None) -> list[Array]:
        """The body's outputs for its inputs; they may share memory with these, with captured values or constants."""
        graph = self._graph
        given = [*arrays, *(scope[value] for value in self._captured)]
        known = {**graph.constants, **dict(zip(graph.inputs, given))}
        if graph.outputs:
            # NOTE: not ascontiguousarray, which makes a vector of a scalar. Scan gives slices and NumPy's scalars.
            ready = [np.asarray(array, order="C") for array in given]
            signature = tuple([array.shape for array in ready])
            plan = self._plans.find(signature) or self._plans.get(signature, self._make_plan)
            known.update(zip(graph.outputs, plan.run(ready, None, profile)))
        return [known[value] for value in self._outputs]

    def _make_plan(self, signature: Signature) -> BodyPlan:
        return self._plan_body(self._typed(signature), self._prefix)

    def _typed(self, signature: Signature) -> Graph:
        """The graph with the types that follow from the shapes of its inputs."""
        graph = self._graph
        # The types found with the graph around it are better where they serve: more elements are known there.
        if all(value.type.shape == shape for value, shape in zip(graph.inputs, signature)) and all(
            value.type.is_static for scope in graph.walk() for value in scope.defined()
        ):
            return graph
        from lite_core.ops.infer import infer_graph

        graph = graph.copy()
        infer_graph(graph, {v.name: v.type.with_shape(shape) for v, shape in zip(graph.inputs, signature)})
        return graph
