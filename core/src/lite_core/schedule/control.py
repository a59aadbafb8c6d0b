"""If, Loop and Scan across devices: each body is placed, compiled and run like any other graph.

The control flow itself (which branch, how many iterations, how outputs are stacked) is implemented only by the
operator's reference; the bodies run by plans instead of references. A control step therefore runs on ``host``, and the
partitions of its bodies run on the devices where their nodes were placed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from lite_core.backend import Buffer, Partition
from lite_core.ir import Array, Graph, Node, Value
from lite_core.observing import Observer
from lite_core.schedule.plan_cache import PlanCache, Signature
from lite_core.schedule.profile import RunProfile

__all__ = ["BodyPlan", "ControlExecutable", "PlanBody", "RunPlan"]


class BodyPlan(Protocol):
    """The part of a plan that control flow needs: running a body."""

    def run(
        self, inputs: Sequence[Array], *, profile: RunProfile | None = None, observer: Observer | None = None
    ) -> list[Array]:
        """Run the body; return an array for each output, in order. For the other arguments see :meth:`Plan.run`."""
        ...


#: Makes the plan of a body from a separate graph with inferred types; the text is the prefix of its partitions' names.
PlanBody = Callable[[Graph, str], BodyPlan]

#: Runs a plan on arrays, with the profile and the observer of the whole run.
RunPlan = Callable[[BodyPlan, Sequence[Array]], list[Array]]

# Lengths that grow with the iterations recur in the same order in each run: a cache with fewer plans would never hit.
_MOST_PLANS = 64


class ControlExecutable:
    """Executable of one node with sub-graphs; each sub-graph runs by plans for the actual shapes. Thread-safe.

    Args:
        part: the partition, which contains this node only.
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
        run_plan: RunPlan | None = None,
    ) -> None:
        """Run the node; ``run_plan`` runs the plan of a body, each time the body runs."""
        from lite_core.ops.evaluate import evaluate_node  # not at the top: few models need it

        scope: dict[Value, Array] = dict(self._graph.constants)
        scope.update((value, buffer.data) for value, buffer in zip(self._graph.inputs, inputs))

        def run_body(body: Graph, arrays: Sequence[Array]) -> list[Array]:
            return self._bodies[body].run(arrays, scope, run_plan or (lambda plan, given: plan.run(given)))

        arrays = [None if value is None else scope[value] for value in self.node.inputs]
        condition = arrays[0] if self.node.op == "If" else None
        if condition is not None and condition.size == 1:
            # The reference of If would do the same, but its checks take as long as a small branch.
            taken = self.node.attributes["then_branch" if condition.item() else "else_branch"]
            assert isinstance(taken, Graph)
            results = run_body(taken, [])
        else:
            results = evaluate_node(self.node, arrays, scope, run_body)
        for buffer, index in zip(outputs, self._results):
            # Copied, because a value that a body passes through is the storage of an input or a captured value.
            buffer.store(results[index])


class _Body:
    """A sub-graph as a separate graph, with its plans by input shapes.

    A captured value becomes an input, or stays a constant: the same array, so that backends find its packed weights.
    Values that the body only passes through are not outputs of the plans.
    """

    def __init__(self, body: Graph, constants: Mapping[Value, Array], prefix: str, plan_body: PlanBody) -> None:
        captured = list(body.captured())
        computed = {value for node in body.nodes for value in node.outputs}
        self._captured = [value for value in captured if value not in constants]
        self._outputs = body.outputs
        self._graph = Graph(
            body.name,
            inputs=[*body.inputs, *self._captured],
            outputs=list(dict.fromkeys(value for value in body.outputs if value in computed)),
            nodes=body.nodes,
            constants={**body.constants, **{value: constants[value] for value in captured if value in constants}},
        )
        self._prefix, self._plan_body = prefix, plan_body
        self._plans: PlanCache[BodyPlan] = PlanCache(_MOST_PLANS)

    def run(self, arrays: Sequence[Array], scope: Mapping[Value, Array], run_plan: RunPlan) -> list[Array]:
        """Run the body; its outputs may share memory with inputs, captured values or constants."""
        graph = self._graph
        given = [*arrays, *(scope[value] for value in self._captured)]
        array_of = {**graph.constants, **dict(zip(graph.inputs, given))}
        if graph.outputs:
            # NOTE: ascontiguousarray would turn scalars into vectors. Scan passes slices and NumPy scalars.
            contiguous = [np.asarray(array, order="C") for array in given]
            signature = tuple([array.shape for array in contiguous])
            plan = self._plans.find(signature) or self._plans.get(signature, self._make_plan)
            array_of.update(zip(graph.outputs, run_plan(plan, contiguous)))
        return [array_of[value] for value in self._outputs]

    def _make_plan(self, signature: Signature) -> BodyPlan:
        return self._plan_body(self._typed(signature), self._prefix)

    def _typed(self, signature: Signature) -> Graph:
        """Return the graph with types inferred from the shapes of its inputs."""
        graph = self._graph
        # Types inferred with the enclosing graph are preferred if they apply: more elements are known there.
        if all(value.type.shape == shape for value, shape in zip(graph.inputs, signature)) and all(
            value.type.is_static for scope in graph.walk() for value in scope.defined()
        ):
            return graph
        from lite_core.ops.infer import infer_graph

        graph = graph.copy()
        infer_graph(graph, {v.name: v.type.with_shape(shape) for v, shape in zip(graph.inputs, signature)})
        return graph
