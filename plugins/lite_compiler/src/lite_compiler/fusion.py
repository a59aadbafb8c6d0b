"""Which nodes become one step of a backend: a producer and element-wise operators after it, or a run of those."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from lite_core import ops
from lite_core.ir import Graph, Node, Value

__all__ = ["Group", "absorb_producers", "count_uses", "group_nodes"]

#: Longer runs gain nothing: every operand is one more argument of the kernel, and needs registers.
_LONGEST = 12


@dataclass(eq=False)
class Group:
    """Nodes that run as one step.

    Attributes:
        head: the node that makes the first value.
        position: when it runs: where its last node stands in the graph.
        tail: element-wise nodes applied to it, each to the result of the one before.
        producer: the group that makes the head's first input, where it runs inside of this one.
    """

    head: Node
    position: int
    tail: list[Node] = field(default_factory=list)
    producer: Group | None = None

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
        value = (self.tail[-1] if self.tail else self.head).outputs[0]
        assert value is not None
        return value


def group_nodes(
    graph: Graph, uses: Mapping[Value, int], elementwise: Set[Node], takes_tail: Callable[[Node], bool]
) -> list[Group]:
    """Groups of a graph's nodes in an order in which they can run.

    An element-wise node joins the group that makes one of its operands when nothing else uses that operand and it has
    the shape of the node's result. Where several would do, one whose head is no element-wise node takes it, and of
    those the latest: a residual addition goes to the convolution that is computed last, where the value is still in
    its registers.

    Args:
        graph: whose nodes they are.
        uses: how often each value is read, from :func:`count_uses`.
        elementwise: the nodes that can follow others.
        takes_tail: whether a node's step can do what follows it, too.
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
            group = max(candidates, key=lambda g: (takes_tail(g.head), g.position), default=None)
        if group is None:
            group = Group(node, position)
            groups.append(group)
        else:
            group.tail.append(node)
            group.position = position
        if output is not None and len(group.tail) < _LONGEST and (node in elementwise or takes_tail(node)):
            open_groups[output] = group
    return sorted(groups, key=lambda g: g.position)


def absorb_producers(
    groups: list[Group], uses: Mapping[Value, int], fits: Callable[[Group, Group], bool]
) -> list[Group]:
    """The groups that are left when some run inside of the only group that reads what they make.

    Args:
        groups: from :func:`group_nodes`.
        uses: how often each value is read, from :func:`count_uses`.
        fits: whether the first group, which makes the first input of the second one's head, should run inside of it.
    """
    maker = {value: group for group in groups for value in group.nodes[-1].outputs[:1] if value is not None}
    absorbed: set[Group] = set()
    for group in groups:
        value = group.head.inputs[0] if group.head.inputs else None
        producer = None if value is None or uses[value] > 1 else maker.get(value)
        if producer is not None and producer.producer is None and fits(producer, group):
            group.producer = producer
            absorbed.add(producer)
    return [group for group in groups if group not in absorbed]


def count_uses(graph: Graph) -> dict[Value, int]:
    """How often each value is read; the outputs of the graph are read once more."""
    uses: dict[Value, int] = {}
    for node in graph.nodes:
        for value in node.used():
            uses[value] = uses.get(value, 0) + 1
    for value in graph.outputs:
        uses[value] = uses.get(value, 0) + 1
    return uses
