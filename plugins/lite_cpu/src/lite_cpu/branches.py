"""The branches of a partition for the shapes of a run: those that are decided, and those that do not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lite_core.errors import GraphError
from lite_core.ir import Graph, Value
from lite_core.ops.infer import GraphInference, infer_graph
from lite_core.passes.branch_inlining import inline_decided_branches

__all__ = ["with_fitting_branches"]

Array = np.ndarray[Any, Any]


def with_fitting_branches(graph: Graph) -> Graph:
    """Return the graph with the decided Ifs in its bodies inlined, as a copy if it has any If.

    Exporters write an If for each dimension that may be 1. The branch that is not taken often does not fit the shapes.
    In branches that do not fit, every shape is made unknown: inference leaves them the types of other shapes.
    """
    if not any(node.op == "If" for scope in graph.walk() for node in scope.nodes):
        return graph
    graph = graph.copy()
    types = {value.name: value.type for value in graph.inputs}
    infer_graph(graph, types)
    for node in graph.nodes:
        for name, body in node.attributes.items():
            if isinstance(body, Graph):
                node.attributes[name] = _without_decided(body, graph.constants) or body
    infer_graph(graph, types)
    if all(value.type.is_static for value in graph.inputs):
        inference = GraphInference(branches_may_not_fit=True)
        inference.run(graph)
        _forget_unfit(graph, inference)
    return graph


def _forget_unfit(graph: Graph, inference: GraphInference) -> None:
    """Make the shapes unknown in bodies that do not fit the shapes around them."""
    for body in (body for node in graph.nodes for body in node.subgraphs):
        inner = GraphInference(inference)
        for value in body.inputs:
            inner.set_type(value, value.type)
        try:
            inner.run(body)
        except GraphError:
            for value in (value for scope in body.walk() for value in scope.defined()):
                value.type = value.type.with_shape(None)
        else:
            _forget_unfit(body, inner)


def _without_decided(body: Graph, constants: Mapping[Value, Array]) -> Graph | None:
    """Return a body without decided Ifs; None if there are none, or if it does not fit the shapes of the run."""
    captured = list(body.captured())
    outside = [value for value in captured if value not in constants]
    alone = Graph(
        body.name,
        inputs=[*body.inputs, *outside],
        outputs=body.outputs,
        nodes=body.nodes,
        constants={**body.constants, **{v: constants[v] for v in captured if v in constants}},
    )
    if not all(value.type.is_static for value in alone.inputs):
        return None
    try:
        inlined = inline_decided_branches(alone)
    except GraphError:
        return None
    if inlined is None:
        return None
    count = len(body.inputs)
    inlined.replace_uses(dict(zip(inlined.inputs[count:], outside)))
    inlined.inputs = inlined.inputs[:count]
    return inlined
