"""Fusion: grouping nodes that run as one step, such as a convolution and the element-wise nodes after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from lite_core import ops
from lite_core.ir import Graph, Node, Value

__all__ = ["Group", "absorb_producers", "count_uses", "group_nodes"]

#: Maximum number of nodes in a tail. Longer ones gain nothing: each operand adds a kernel argument and needs registers.
_MAX_TAIL = 12


@dataclass(eq=False)
class Group:
    """Nodes that run as one step.

    Attributes:
        head: the first node of the group.
        position: the index in the graph of the group's last node; groups run in the order of their positions.
        tail: element-wise nodes, applied one after another to the result of the head.
        producer: the group that computes the head's first input, if it runs inside this group's step.
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
        """The attributes of the head, defaults included."""
        return ops.attributes_of(self.head)

    def input(self, position: int) -> Value:
        """Return a required input of the head."""
        value = self.head.inputs[position]
        assert value is not None
        return value

    def optional(self, position: int) -> Value | None:
        """Return an optional input of the head, or None if it is left out."""
        return self.head.inputs[position] if position < len(self.head.inputs) else None

    @property
    def output(self) -> Value:
        """The result of the group: the first output of its last node."""
        value = (self.tail[-1] if self.tail else self.head).outputs[0]
        assert value is not None
        return value


def group_nodes(
    graph: Graph, uses: Mapping[Value, int], elementwise: Set[Node], takes_tail: Callable[[Node], bool]
) -> list[Group]:
    """Group the nodes of a graph; the groups are returned in an order in which they can run.

    An element-wise node joins the group that computes one of its operands if nothing else uses that operand and the
    operand has the shape of the node's result. Among several such groups, those whose head takes a tail are preferred,
    and then the latest: a residual addition is fused into the convolution that runs last, while the value is still in
    registers.

    Args:
        graph: the graph.
        uses: how often each value is read, from :func:`count_uses`.
        elementwise: the nodes that can be part of a tail.
        takes_tail: returns True if the step of a node can also compute the element-wise nodes after it.
    """
    open_groups: dict[Value, Group] = {}  # groups that can take another node, by their result
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
        if output is not None and len(group.tail) < _MAX_TAIL and (node in elementwise or takes_tail(node)):
            open_groups[output] = group
    return sorted(groups, key=lambda g: g.position)


def absorb_producers(
    groups: list[Group], uses: Mapping[Value, int], fits: Callable[[Group, Group], bool]
) -> list[Group]:
    """Move groups into the step of the only group that reads their result, and return the groups that remain.

    Args:
        groups: the groups from :func:`group_nodes`.
        uses: how often each value is read, from :func:`count_uses`.
        fits: returns True if the first group, which computes the first input of the second group's head, should run
            inside the second.
    """
    producers = {value: group for group in groups for value in group.nodes[-1].outputs[:1] if value is not None}
    absorbed: set[Group] = set()
    for group in groups:
        value = group.head.inputs[0] if group.head.inputs else None
        producer = None if value is None or uses[value] > 1 else producers.get(value)
        if producer is not None and producer.producer is None and fits(producer, group):
            group.producer = producer
            absorbed.add(producer)
    return [group for group in groups if group not in absorbed]


def count_uses(graph: Graph) -> dict[Value, int]:
    """Count how often each value is read; being an output of the graph counts as one read."""
    uses: dict[Value, int] = {}
    for node in graph.nodes:
        for value in node.used():
            uses[value] = uses.get(value, 0) + 1
    for value in graph.outputs:
        uses[value] = uses.get(value, 0) + 1
    return uses
