"""Cutting a placed graph into partitions: nodes of one device that can run in one go."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.backend import Partition
from lite_core.ir import Graph, Node, Value
from lite_core.schedule.devices import Candidate
from lite_core.schedule.placement import Placement

__all__ = ["PlacedPartition", "split"]


@dataclass(frozen=True, slots=True)
class PlacedPartition:
    """A partition and the device it runs on. Its graph shares values with the graph it was cut from."""

    partition: Partition
    candidate: Candidate


def split(graph: Graph, placement: Placement) -> list[PlacedPartition]:
    """Cut the graph into partitions that can run one after another in the order of the list.

    Every partition is convex: no path leaves it and comes back. Nodes of one device and one level form a partition.
    """
    levels = _levels(graph, placement)
    groups: dict[tuple[int, int], list[Node]] = {}
    for index, node in enumerate(graph.nodes):
        groups.setdefault((levels[index], placement.choice[index]), []).append(node)
    placed = []
    for number, (key, nodes) in enumerate(sorted(groups.items(), key=lambda item: item[0])):
        candidate = placement.candidates[key[1]]
        name = f"{candidate.device.label}/{number}"
        placed.append(PlacedPartition(Partition(name, _cut(graph, name, nodes)), candidate))
    return placed


def _levels(graph: Graph, placement: Placement) -> list[int]:
    """For each node the largest number of device changes on a path that leads to it."""
    if len(set(placement.choice)) <= 1:
        return [0] * len(graph.nodes)
    producer_of: dict[Value, int] = {}
    levels: list[int] = []
    for index, node in enumerate(graph.nodes):
        level = 0
        for value in node.used():
            before = producer_of.get(value)
            if before is not None:
                level = max(level, levels[before] + (placement.choice[before] != placement.choice[index]))
        levels.append(level)
        producer_of.update((v, index) for v in node.outputs if v is not None)
    return levels


def _cut(graph: Graph, name: str, nodes: list[Node]) -> Graph:
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
