"""Removing nodes, outputs and constants that nothing uses."""

from __future__ import annotations

from lite_core import ops
from lite_core.ir import Graph, Node, Value
from lite_core.passes.base import PassResult

__all__ = ["DeadNodeElimination"]


class DeadNodeElimination:
    """Pass that removes nodes and constants that no graph output depends on.

    Rules:
        1. A node is removed if none of its outputs is used, in this graph or in a sub-graph.
        2. An unused constant is removed.
        3. Unused optional outputs at the end of a node are omitted.
        4. Sub-graphs are cleaned before the uses of their node are counted, so that values captured only by dead nodes
           are removed, too.

    Graph inputs stay: they are the model's interface.
    """

    name = "dead_node_elimination"

    def __call__(self, graph: Graph) -> PassResult:
        return PassResult(graph, self._clean(graph))

    def _clean(self, graph: Graph) -> bool:
        changed = False
        used: set[Value] = set(graph.outputs)
        kept: list[Node] = []
        for node in reversed(graph.nodes):
            if not any(v in used for v in node.outputs if v is not None):
                changed = True
                continue
            for subgraph in node.subgraphs:
                changed |= self._clean(subgraph)
            changed |= _trim_outputs(node, used)
            used.update(node.used())
            kept.append(node)
        graph.nodes = kept[::-1]
        unused = [v for v in graph.constants if v not in used]
        for value in unused:
            del graph.constants[value]
        return changed or bool(unused)


def _trim_outputs(node: Node, used: set[Value]) -> bool:
    definition = ops.get(node)
    count = len(node.outputs)
    while count > 1:
        parameter = definition.parameter(count - 1, output=True)
        value = node.outputs[count - 1]
        if parameter is None or not parameter.optional or (value is not None and value in used):
            break
        count -= 1
    trimmed = count < len(node.outputs)
    node.outputs = node.outputs[:count]
    return trimmed
