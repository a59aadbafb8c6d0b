"""Two passes: one with the helpers of Lite, and one from scratch."""

from __future__ import annotations

from lite_core.ir import Graph
from lite_core.passes import PassResult
from lite_core.passes.rewriting import Scope, ScopePass


class FindShrinkage(ScopePass):
    """``x / (|x| + 1)`` becomes granite.Shrinkage."""

    name = "granite-find-shrinkage"

    def rewrite(self, scope: Scope) -> None:
        for node in scope.nodes():
            x, divisor = node.inputs if node.qualified_op == "Div" else (None, None)
            add = scope.producer(divisor, "Add")
            operands = scope.tensor_and_scalar(add) if add is not None else None
            if x is None or add is None or operands is None or operands[1] != 1 or not x.dtype.is_floating:
                continue
            absolute = scope.producer(operands[0], "Abs")
            if absolute is not None and absolute.inputs[0] is x and scope.are_private([absolute, add, node]):
                scope.substitute([absolute, add, node], "Shrinkage", [x], {"slope": 1.0}, domain="granite")


class DoubleNegation:
    """Remove the second of two Neg, and the first if nothing else reads it."""

    name = "granite-double-negation"

    def __call__(self, graph: Graph) -> PassResult:
        changed = False
        producers = graph.producers()
        for node in graph.nodes:
            first = producers.get(node.inputs[0]) if node.op == "Neg" and node.inputs[0] is not None else None
            if first is None or first.op != "Neg" or node.outputs[0] in graph.outputs:
                continue
            assert node.outputs[0] is not None
            assert first.inputs[0] is not None
            if graph.consumers().get(node.outputs[0]):
                graph.replace_uses({node.outputs[0]: first.inputs[0]})
                changed = True
        return PassResult(graph, changed)
