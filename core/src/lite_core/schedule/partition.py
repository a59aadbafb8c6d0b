"""Cutting a graph into partitions according to the placement of its nodes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from lite_core.backend import Partition, PartitionIdentity, RestoresState
from lite_core.ir import Graph, Node, Value
from lite_core.schedule.devices import Candidate
from lite_core.schedule.placement import Placement

__all__ = ["PartitionIdentities", "PlacedPartition", "cut", "split"]


class PlacedPartition(NamedTuple):
    """A partition and its device. Its graph shares values with the graph it was cut from.

    ``is_control`` is True for a single node whose sub-graphs have separate plans.
    """

    partition: Partition
    candidate: Candidate
    is_control: bool = False


class PartitionIdentities:
    """The identities of one session's partitions. Thread-safe."""

    def __init__(self) -> None:
        self._found: dict[Hashable, PartitionIdentity] = {}

    def of(self, name: str, positions: Sequence[int], graph: Graph) -> PartitionIdentity:
        """Return the identity of a partition; the same object for partitions that differ only in sizes.

        Args:
            name: the partition's name; it contains the device and, for a body, the enclosing node.
            positions: indices of its nodes in the graph that it is cut from; they differ for another placement.
            graph: the partition's graph.
        """
        # Ranks may depend on sizes: a Squeeze without axes removes the dimensions of size 1.
        ranks = tuple([None if v.type.shape is None else len(v.type.shape) for v in graph.defined()])
        return self._found.setdefault((name, tuple(positions), ranks), PartitionIdentity())


def split(
    graph: Graph, placement: Placement, prefix: str = "", identities: PartitionIdentities | None = None
) -> list[PlacedPartition]:
    """Cut the graph into partitions that can run one after another in the order of the list.

    Every partition is convex: no path leaves it and comes back. Nodes of one device and one level form a partition. A
    node is a partition by itself if its sub-graphs have separate plans, or if sizes first depend on data there and its
    backend saves partitions: those before it have known sizes, which can be saved.

    Args:
        graph: the graph, with inferred types.
        placement: the device of every node.
        prefix: prefix of the partitions' names.
        identities: identities shared with the graph's partitions for other shapes; new ones by default.
    """
    identities = identities or PartitionIdentities()
    # For each node its device, and 0 or a unique number if the node is a partition by itself.
    bodies = placement.bodies
    saves = [isinstance(candidate.backend, RestoresState) for candidate in placement.candidates]
    chosen = enumerate(zip(placement.choice, graph.nodes))
    owners = [(c, i + 1 if i in bodies or (saves[c] and _begins_unknown_sizes(n)) else 0) for i, (c, n) in chosen]
    levels = _levels(graph, owners)
    members: dict[tuple[int, tuple[int, int]], list[int]] = {}
    for index, key in enumerate(zip(levels, owners)):
        members.setdefault(key, []).append(index)
    placed = []
    for number, ((_, (choice, _)), positions) in enumerate(sorted(members.items(), key=lambda item: item[0])):
        candidate = placement.candidates[choice]
        changes = "".join(f" {option}={value}" for option, value in candidate.changes.items())
        name = f"{prefix}{candidate.device.label}/{number}{changes}"
        own = cut(graph, name, [graph.nodes[index] for index in positions])
        part = Partition(name, own, identities.of(name, positions, own))
        placed.append(PlacedPartition(part, candidate, is_control=positions[0] in bodies))
    return placed


def _begins_unknown_sizes(node: Node) -> bool:
    """Return True if the sizes of a node's results depend on data, and those of its inputs do not."""
    return not all(v is None or v.type.is_static for v in node.outputs) and all(v.type.is_static for v in node.used())


def _levels(graph: Graph, owners: Sequence[tuple[int, int]]) -> list[int]:
    """Return for each node the largest number of changes between ``owners`` on a path that leads to it."""
    if len(set(owners)) <= 1:
        return [0] * len(graph.nodes)
    producer_of: dict[Value, int] = {}
    levels: list[int] = []
    for index, node in enumerate(graph.nodes):
        before = [producer_of[value] for value in node.used() if value in producer_of]
        levels.append(max([levels[b] + (owners[b] != owners[index]) for b in before], default=0))
        producer_of.update((v, index) for v in node.outputs if v is not None)
    return levels


def cut(graph: Graph, name: str, nodes: list[Node]) -> Graph:
    """Return some nodes of a graph as a separate graph that shares its values."""
    produced = [v for node in nodes for v in node.outputs if v is not None]
    inside = set(produced)
    used = dict.fromkeys(v for node in nodes for v in node.used() if v not in inside)
    own = set(nodes)
    outside_uses = {v for node in graph.nodes if node not in own for v in node.used()} | set(graph.outputs)
    return Graph(
        name,
        inputs=[v for v in used if v not in graph.constants],
        outputs=[v for v in produced if v in outside_uses],
        nodes=nodes,
        constants={v: graph.constants[v] for v in used if v in graph.constants},
    )
