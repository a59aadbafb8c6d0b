"""Inlining the branch of an If whose condition is known."""

from __future__ import annotations

from lite_core.ir import Array, Graph, Node
from lite_core.ops.infer import GraphInference, infer_graph
from lite_core.passes.dead_node_elimination import DeadNodeElimination
from lite_core.passes.identity_elimination import IdentityElimination
from lite_core.passes.rewriting import Scope, ScopePass
from lite_core.passes.shape_folding import decided_branch, fold_to_constant

__all__ = ["BranchInlining", "inline_decided_branches"]


class BranchInlining(ScopePass):
    """Pass that inlines the branch of an If whose condition is known.

    Rules:
        1. If with a constant condition becomes the nodes and constants of the selected branch, and an Identity
           for each output.
    """

    name = "branch_inlining"

    def rewrite(self, scope: Scope) -> None:
        for node in scope.nodes():
            if node.qualified_op == "If":
                _inline(scope, node, scope.constant(node.inputs[0]))


def inline_decided_branches(graph: Graph) -> Graph | None:
    """Return a copy of a graph without the Ifs whose conditions depend on input sizes only; None if there are none.

    Exporters write an If for each dimension that may be 1. Without them, the graph can run as one partition.

    Args:
        graph: left unchanged; its inputs have known shapes.
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
    """Replace an If by its selected branch; return False if the condition is unknown."""
    if (taken := decided_branch(node, condition)) is None:
        return False
    scope.graph.constants.update(taken.constants)
    identities = [
        Node("Identity", [inner], [outer], name=f"{node.name}.{index}", origin=node.origin)
        for index, (inner, outer) in enumerate(zip(taken.outputs, node.outputs))
        if outer is not None
    ]
    scope.replace([node], [*taken.nodes, *identities])
    return True
