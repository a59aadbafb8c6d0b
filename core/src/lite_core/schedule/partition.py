"""Cutting a placed graph into partitions: nodes of one device that can run in one go."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from lite_core.backend import Partition, PartitionIdentity
from lite_core.ir import Graph, Node, Value
from lite_core.schedule.devices import Candidate
from lite_core.schedule.placement import Placement

__all__ = ["PartitionIdentities", "PlacedPartition", "cut", "split"]


class PlacedPartition(NamedTuple):
    """A partition and the device it runs on. Its graph shares values with the graph it was cut from.

    ``is_control`` says that it is one node whose sub-graphs have plans of their own.
    """

    partition: Partition
    candidate: Candidate
    is_control: bool = False


class PartitionIdentities:
    """The identities of one session's partitions. May be used by many threads at once."""

    def __init__(self) -> None:
        self._found: dict[Hashable, PartitionIdentity] = {}

    def of(self, name: str, positions: Sequence[int], graph: Graph) -> PartitionIdentity:
        """The identity of a partition.

        Args:
            name: the partition's; it names the device and, for a body, the node around it.
            positions: where its nodes stand in the graph that it is cut from. With another placement they may differ.
            graph: its own.
        """
        # Ranks may follow from sizes: a Squeeze without axes drops the dimensions of size 1.
        ranks = tuple([None if v.type.shape is None else len(v.type.shape) for v in graph.defined()])
        return self._found.setdefault((name, tuple(positions), ranks), PartitionIdentity())


def split(
    graph: Graph, placement: Placement, prefix: str = "", identities: PartitionIdentities | None = None
) -> list[PlacedPartition]:
    """Cut the graph into partitions that can run one after another in the order of the list.

    Every partition is convex: no path leaves it and comes back. Nodes of one device and one level form a partition;
    a node whose sub-graphs have plans of their own is one by itself.

    Args:
        graph: the graph, with inferred types.
        placement: the device of every node.
        prefix: what the names of the partitions begin with.
        identities: those of the graph's partitions for other shapes; each partition is the first of its own if omitted.
    """
    identities = identities or PartitionIdentities()
    #: For each node the device, and a number of its own for one that is alone.
    places = [(choice, index + 1 if index in placement.bodies else 0) for index, choice in enumerate(placement.choice)]
    levels = _levels(graph, places)
    groups: dict[tuple[int, tuple[int, int]], list[int]] = {}
    for index, key in enumerate(zip(levels, places)):
        groups.setdefault(key, []).append(index)
    placed = []
    for number, ((_, (choice, alone)), positions) in enumerate(sorted(groups.items(), key=lambda item: item[0])):
        candidate = placement.candidates[choice]
        name = f"{prefix}{candidate.device.label}/{number}"
        own = cut(graph, name, [graph.nodes[index] for index in positions])
        part = Partition(name, own, identities.of(name, positions, own))
        placed.append(PlacedPartition(part, candidate, is_control=alone > 0))
    return placed


def _levels(graph: Graph, places: Sequence[tuple[int, int]]) -> list[int]:
    """For each node the largest number of changes of place on a path that leads to it."""
    if len(set(places)) <= 1:
        return [0] * len(graph.nodes)
    producer_of: dict[Value, int] = {}
    levels: list[int] = []
    for index, node in enumerate(graph.nodes):
        level = 0
        for value in node.used():
            before = producer_of.get(value)
            if before is not None:
                level = max(level, levels[before] + (places[before] != places[index]))
        levels.append(level)
        producer_of.update((v, index) for v in node.outputs if v is not None)
    return levels


def cut(graph: Graph, name: str, nodes: list[Node]) -> Graph:
    """The nodes as a graph of their own."""
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
