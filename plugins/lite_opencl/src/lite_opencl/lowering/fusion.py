"""Which nodes become one step: a producer and the element-wise operators that follow it, or a run of those."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from lite_core import ops
from lite_core.ir import Graph, Node, Value

__all__ = ["Group", "count_uses", "group_nodes"]

#: Longer runs gain nothing, and every operand is a few more arguments of the kernel.
_LONGEST = 12


@dataclass(eq=False)
class Group:
    """Nodes that run as one step.

    Attributes:
        head: the node that makes the first value.
        position: when it runs: where its last node stands in the graph.
        tail: element-wise nodes applied to it, each to the result of the one before.
    """

    head: Node
    position: int
    tail: list[Node] = field(default_factory=list)

    @property
    def nodes(self) -> list[Node]:
        return [self.head, *self.tail]

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The head's, defaults included."""
        return ops.get(self.head).attributes_of(self.head)

    def input(self, position: int) -> Value:
        """An input of the head that must be there."""
        value = self.head.inputs[position]
        assert value is not None
        return value

    def optional(self, position: int) -> Value | None:
        """An input of the head that may be left out."""
        return self.head.inputs[position] if position < len(self.head.inputs) else None

    @property
    def output(self) -> Value:
        """The value that leaves the group: first output of its last node."""
        value = self.nodes[-1].outputs[0]
        assert value is not None
        return value


def group_nodes(
    graph: Graph, uses: Mapping[Value, int], elementwise: Set[Node], takes_epilogue: Callable[[Node], bool]
) -> list[Group]:
    """Groups of a graph's nodes in an order in which they can run.

    An element-wise node joins the group that makes one of its operands when nothing else uses that operand and it has
    the shape of the node's result. Where several would do, one with an epilogue takes it, and of those the latest: a
    residual addition goes to the convolution that is computed last.

    Args:
        graph: whose nodes they are.
        uses: how often each value is read, from :func:`count_uses`.
        elementwise: the nodes that can be part of a chain.
        takes_epilogue: whether an operator's step can do what follows it, too.
    """
    open_groups: dict[Value, Group] = {}  # those that can take another node, by the value that leaves them
    groups: list[Group] = []
    for position, node in enumerate(graph.nodes):
        output, group = node.outputs[0], None
        if node in elementwise and output is not None:
            candidates = [
                open_groups[v]
                for v in node.inputs
                if v is not None and v in open_groups and uses[v] == 1 and v.shape == output.shape
            ]
            group = max(candidates, key=lambda g: (takes_epilogue(g.head), g.position), default=None)
        if group is None:
            group = Group(node, position)
            groups.append(group)
        else:
            group.tail.append(node)
            group.position = position
        if output is not None and len(group.tail) < _LONGEST and (node in elementwise or takes_epilogue(node)):
            open_groups[output] = group
    return sorted(groups, key=lambda g: g.position)


def count_uses(graph: Graph) -> dict[Value, int]:
    """How often each value is read; the outputs of the graph are read once more."""
    uses: dict[Value, int] = {}
    for value in (*(v for node in graph.nodes for v in node.used()), *graph.outputs):
        uses[value] = uses.get(value, 0) + 1
    return uses
