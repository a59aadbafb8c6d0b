"""Which nodes become one step: a producer and the element-wise operators that follow it, or a run of those.

That is the first stage, :func:`group_nodes`. The second, :func:`absorb_producers`, puts whole groups together where a
lowering function can run the one that makes a tensor inside of the one that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field

from lite_core.ir import Graph, Node, Value

__all__ = ["Group", "absorb_producers", "count_uses", "group_nodes"]


#: Longer runs gain nothing and need more registers than there are.
_LONGEST = 12


@dataclass(eq=False)
class Group:
    """Nodes that run as one step.

    Attributes:
        head: the node that makes the first value.
        tail: element-wise nodes applied to it, each to the result of the one before.
        position: when it runs: where its last node stands in the graph.
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
    def output(self) -> Value:
        """The value that leaves the group: first output of its last node."""
        value = (self.tail[-1] if self.tail else self.head).outputs[0]
        assert value is not None
        return value


def group_nodes(graph: Graph, uses: Mapping[Value, int], elementwise: Set[Node], hosts: Set[Node]) -> list[Group]:
    """Groups of a graph's nodes in an order in which they can run.

    An element-wise node joins the group that makes one of its operands when nothing else uses that operand and it
    has the shape of the node's result. Where several would do, the latest one takes it: a residual addition goes
    to the convolution that is computed last.

    Args:
        graph: whose nodes they are.
        uses: how often each value is read, from :func:`count_uses`.
        elementwise: the nodes that can be part of a chain.
        hosts: the nodes whose step can do what follows it, too.
    """
    open_groups: dict[Value, Group] = {}  # those that can take another node, by the value that leaves them
    groups: list[Group] = []
    for position, node in enumerate(graph.nodes):
        output, group = node.outputs[0], None
        if node in elementwise and output is not None:
            candidates = [
                open_groups[v]
                for v in node.inputs
                if v in open_groups and v is not None and uses[v] == 1 and v.shape == output.shape
            ]
            # A convolution is the better host: the value is still in its registers.
            group = max(candidates, key=lambda g: (g.head in hosts, g.position), default=None)
        if group is None:
            group = Group(node, position)
            groups.append(group)
        else:
            group.tail.append(node)
            group.position = position
        if output is not None and len(group.tail) < _LONGEST and (node in elementwise or node in hosts):
            open_groups[output] = group
    groups.sort(key=lambda g: g.position)
    return groups


def absorb_producers(
    groups: list[Group], uses: Mapping[Value, int], fits: Callable[[Group, Group], bool]
) -> list[Group]:
    """Second stage: the groups that are left when some run inside of the only group that reads what they make.

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
