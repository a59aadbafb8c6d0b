"""A graph pass that changes what one node computes."""

from __future__ import annotations

from lite_core import ops
from lite_core.errors import PassError
from lite_core.ir import Graph, Node
from lite_core.passes.base import PassResult

__all__ = ["PASS_NAME", "WrongPass"]

#: The fault that is a pass.
PASS_NAME = "pass"


class WrongPass:
    """Multiply the ``alpha`` of a HardSigmoid or LeakyRelu by 1.01, or exchange the inputs of a Sub or Div.

    Args:
        node: name of the node; a graph without it stays as it is.
    """

    name = "wrong-rewrite"

    def __init__(self, node: str) -> None:
        self._node = node

    def __call__(self, graph: Graph) -> PassResult:
        if self.name in graph.metadata:  # passes run until none changes anything
            return PassResult(graph, False)
        found = [node for node in graph.nodes if node.name == self._node]
        for node in found:
            _change(node)
            graph.metadata[self.name] = node.name
        return PassResult(graph, bool(found))


def _change(node: Node) -> None:
    if node.op in ("HardSigmoid", "LeakyRelu"):
        node.attributes["alpha"] = 1.01 * float(ops.get(node).attributes_of(node)["alpha"])
    elif node.op in ("Sub", "Div"):
        node.inputs = (node.inputs[1], node.inputs[0])
    else:
        raise PassError(f"the wrong pass needs a HardSigmoid, LeakyRelu, Sub or Div, not {node.describe()}")
