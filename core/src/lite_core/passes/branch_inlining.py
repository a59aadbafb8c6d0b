"""Branches that are sure to be taken become part of the graph around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Graph, Node
from lite_core.ops.infer import GraphInference, infer_graph
from lite_core.passes.dead_node_elimination import DeadNodeElimination
from lite_core.passes.identity_elimination import IdentityElimination
from lite_core.passes.rewriting import Scope, ScopePass
from lite_core.passes.shape_folding import fold_to_constant

__all__ = ["BranchInlining", "with_branches_decided"]

Array = np.ndarray[Any, Any]


class BranchInlining(ScopePass):
    """Takes the branch of an If whose condition is known.

    Rules:
        1. If with a constant condition becomes the nodes and constants of the branch that is taken, and an Identity
           for each output.
    """

    name = "branch_inlining"

    def rewrite(self, scope: Scope) -> None:
        for node in scope.nodes():
            if node.qualified_op == "If":
                _inline(scope, node, scope.constant(node.inputs[0]))


def with_branches_decided(graph: Graph) -> Graph | None:
    """A graph without the Ifs that the sizes of its inputs decide; None where they decide none.

    Exporters write one for every dimension that may be 1. What is left of it runs as one partition.

    Args:
        graph: not changed; its inputs have known shapes.
    """
    if not any(node.qualified_op == "If" for node in graph.nodes):
        return None
    graph, decided = graph.copy(), False
    while any(node.qualified_op == "If" for node in graph.nodes):
        inference = GraphInference(branches_may_not_fit=True)
        for value in graph.inputs:
            inference.set_type(value, value.type)
        inference.run(graph)
        conditions = {n: inference.value_of(n.inputs[0]) for n in graph.nodes if n.op == "If" and n.inputs[0]}
        scope = Scope(graph)
        inlined = [_inline(scope, node, condition) for node, condition in conditions.items()]
        if not any(inlined):
            break
        for node in scope.nodes():
            fold_to_constant(scope, node, inference)
        scope.commit()
        decided = True
    if not decided:
        return None
    for clean in (IdentityElimination(), DeadNodeElimination()):
        clean(graph)
    graph.align_constants()
    infer_graph(graph, {value.name: value.type for value in graph.inputs})
    return graph


def _inline(scope: Scope, node: Node, condition: Array | None) -> bool:
    """Put the branch that is taken where its If stands; whether the condition is known."""
    if condition is None or condition.size != 1 or condition.dtype == object:
        return False
    taken = node.attributes["then_branch" if condition.reshape(-1)[0] else "else_branch"]
    assert isinstance(taken, Graph)
    scope.graph.constants.update(taken.constants)
    handed_on = [
        Node("Identity", [inner], [outer], name=f"{node.name}.{index}", origin=node.origin)
        for index, (inner, outer) in enumerate(zip(taken.outputs, node.outputs))
        if outer is not None
    ]
    scope.replace([node], [*taken.nodes, *handed_on])
    return True
