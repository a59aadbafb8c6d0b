"""Moving nodes next to their neighbours where the copies that this saves take longer than what it costs.

Every node is first placed on the best device that can run it. One node that only another device can run then costs
two copies, or leaves a few cheap nodes alone between copies. What follows is greedy:

1. An island is a largest set of nodes of one device that hang together: each shares a tensor with another.
2. For each island and each device next to it, nodes of the island are given to that device one after another, those
   first that are cheap to move and near to it. The best part of the island is where the total is least on the way.
3. Such moves are made, the largest gain first, each only if it still gains; then again from 1, until none does.

The order of the devices says which one is the better for a node: a node moves to save copies, never because the
estimate finds another device faster.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from lite_core.backend import Yes
from lite_core.ir import Graph
from lite_core.memory import HostMemory
from lite_core.schedule.compile import memory_of
from lite_core.schedule.costs import Costs, bytes_of
from lite_core.schedule.devices import Candidate
from lite_core.schedule.placement import Placement, ask

__all__ = ["estimated_seconds", "merge_islands"]

logger = logging.getLogger("lite.schedule")

_HOST = HostMemory.space
_LEAST_GAIN = 1e-9  # seconds; less is rounding


def merge_islands(graph: Graph, placement: Placement, costs: Costs) -> Placement:
    """Move nodes to the device of a neighbour where that takes less time in all, by the estimates of ``costs``.

    A node stays where it is if it is pinned, if the other device refuses it or has refused it before, or if its cost
    is unknown on either of them: dimensions that depend on data, or a device that does not say how fast it is.

    Args:
        graph: the graph with the types of one input signature.
        placement: the device of every node.
        costs: what nodes and copies cost.

    Returns:
        A placement whose assignments say why nodes moved; ``placement`` itself if none did.
    """
    used = [placement.candidates[index] for index in set(placement.choice)]
    if len(used) < 2 or len({_space_of(candidate) for candidate in used}) < 2:
        return placement  # there is no copy to save, and nothing is measured
    labels = [candidate.device.label for candidate in placement.candidates]
    split = _Split(graph, placement, costs)
    reasons: dict[int, list[tuple[str, str]]] = {}
    moved = True
    while moved:
        moved = False
        for move in sorted(split.moves(), key=lambda m: (-m.gain, m.nodes, m.target)):
            there = split.seconds(move.nodes)
            if not split.make(move):
                continue
            moved = True
            times = f"{there * 1e3:.3g} ms there, {split.seconds(move.nodes) * 1e3:.3g} ms here"
            count = len(move.nodes)
            why = f"moved to {labels[move.target]}: its island of {count} node(s) with copies would take {times}"
            logger.debug("%s: %s", labels[move.source], why)
            for node in move.nodes:
                reasons.setdefault(node, []).append((labels[move.source], why))
    if tuple(split.choice) == placement.choice:
        return placement
    assignments = list(placement.assignments)
    for node, chosen in enumerate(split.choice):
        if chosen != placement.choice[node]:
            refusals = (*assignments[node].refusals, *reasons[node])
            assignments[node] = assignments[node]._replace(device=labels[chosen], refusals=refusals)
    return replace(placement, choice=tuple(split.choice), assignments=tuple(assignments))


def _space_of(candidate: Candidate) -> str:
    """The memory space of a device; its own where its memory fails: :class:`Costs` says what is wrong with it."""
    try:
        return memory_of(candidate).space
    except Exception:
        return candidate.device.label


def estimated_seconds(graph: Graph, placement: Placement, costs: Costs) -> float:
    """What a run takes by the estimates: nodes, where they are known, and copies between memory spaces."""
    return _Split(graph, placement, costs).seconds(range(len(graph.nodes)))


class _Move(NamedTuple):
    """Nodes that go from one device to another, which gains some seconds."""

    nodes: tuple[int, ...]
    source: int
    target: int
    gain: float


@dataclass(slots=True, eq=False)
class _Tensor:
    """A tensor that nodes touch: that they make or read."""

    size: int
    is_output: bool = False
    producer: int | None = None
    readers: list[int] = field(default_factory=list)
    #: What its copies cost at present.
    copying: float = 0.0

    @property
    def nodes(self) -> list[int]:
        return self.readers if self.producer is None else [self.producer, *self.readers]


def _tensors(graph: Graph) -> list[list[_Tensor]]:
    """For each node the tensors that it touches. Constants are not among them: they are copied once, at load."""
    found = {value: _Tensor(bytes_of(value)) for value in graph.inputs}
    touched: list[list[_Tensor]] = []
    for node, operation in enumerate(graph.nodes):
        used = [found[v] for v in dict.fromkeys(operation.used()) if v in found]
        made = {v: _Tensor(bytes_of(v), producer=node) for v in operation.outputs if v is not None}
        for tensor in used:
            tensor.readers.append(node)
        found.update(made)
        touched.append([*used, *made.values()])
    for value in graph.outputs:
        if value in found:
            found[value].is_output = True
    return touched


class _Split:
    """Which node runs on which device, and what that costs. Nodes and devices are numbers."""

    def __init__(self, graph: Graph, placement: Placement, costs: Costs) -> None:
        self.choice = list(placement.choice)
        self._nodes = graph.nodes
        self._placement = placement
        self._costs = costs
        links = {device: costs.link(placement.candidates[device]) for device in sorted(set(placement.choice))}
        self._spaces = {device: link.space for device, link in links.items()}
        self._links = {link.space: link for link in links.values()}
        self._touched = _tensors(graph)
        self._node_seconds: dict[tuple[int, int], float | None] = {}
        self._answers: dict[tuple[int, int], bool] = {}
        for tensor in _all_tensors(self._touched):
            tensor.copying = self._copy_seconds(tensor)

    def seconds(self, nodes: Iterable[int]) -> float:
        """What nodes cost where they are, those of unknown cost left out, with all copies of what they touch."""
        nodes = list(nodes)
        tensors = _all_tensors(self._touched[node] for node in nodes)
        computing = sum(self._seconds_on(node, self.choice[node]) or 0.0 for node in nodes)
        return computing + sum(tensor.copying for tensor in tensors)

    def moves(self) -> list[_Move]:
        """For each island and each device next to it the best move, where there is one."""
        found = []
        for island in self._islands():
            source = self.choice[island[0]]
            tensors = _all_tensors(self._touched[node] for node in island)
            saved_at_most = sum(tensor.copying for tensor in tensors)
            neighbours = {self.choice[node] for tensor in tensors for node in tensor.nodes}
            for target in sorted(neighbours):
                if self._spaces[target] != self._spaces[source]:
                    found += self._best_part(island, source, target, saved_at_most)
        return found

    def make(self, move: _Move) -> bool:
        """Make a move, unless others were made since it was found, and it does not gain any more."""
        if any(self.choice[node] != move.source for node in move.nodes):
            return False
        extra = sum(self._extra_seconds(node, move.source, move.target) or 0.0 for node in move.nodes)
        if self._give(move.nodes, move.target) - extra > _LEAST_GAIN:
            return True
        self._give(move.nodes, move.source)
        return False

    def _islands(self) -> list[list[int]]:
        """Nodes of one device that hang together by tensors that they touch."""
        seen: set[int] = set()
        islands: list[list[int]] = []
        for first in range(len(self.choice)):
            if first in seen:
                continue
            seen.add(first)
            island = [first]
            for node in island:  # grows on the way
                for tensor in self._touched[node]:
                    for other in tensor.nodes:
                        if other not in seen and self.choice[other] == self.choice[first]:
                            seen.add(other)
                            island.append(other)
            islands.append(island)
        return islands

    def _best_part(self, island: Sequence[int], source: int, target: int, saved_at_most: float) -> list[_Move]:
        """The part of an island that gains most at another device, if any does: found by giving it node after node."""
        rest = set(island)
        waiting: list[tuple[float, int, float]] = []  # what the way to a node costs, the node, what it costs itself

        def offer(nodes: Iterable[int], way: float) -> None:
            for node in nodes:
                if node in rest:
                    rest.remove(node)
                    extra = self._extra_seconds(node, source, target)
                    if extra is not None:
                        heapq.heappush(waiting, (way + extra, node, extra))

        offer((node for node in island if target in {self.choice[other] for other in self._neighbours(node)}), 0.0)
        given: list[int] = []
        saved = spent = gain = 0.0
        best = 0
        while waiting:
            way, node, extra = heapq.heappop(waiting)
            spent += extra
            if spent >= saved_at_most:
                break
            given.append(node)
            saved += self._give([node], target)
            if saved - spent > gain:
                gain, best = saved - spent, len(given)
            offer(self._neighbours(node), way)
        self._give(given, source)
        return [_Move(tuple(given[:best]), source, target, gain)] if gain > _LEAST_GAIN else []

    def _neighbours(self, node: int) -> Iterator[int]:
        return (other for tensor in self._touched[node] for other in tensor.nodes)

    def _give(self, nodes: Iterable[int], device: int) -> float:
        """Put nodes on a device; returns the seconds of copying that this saves."""
        saved = 0.0
        for node in nodes:
            self.choice[node] = device
            for tensor in self._touched[node]:
                saved += tensor.copying
                tensor.copying = self._copy_seconds(tensor)
                saved -= tensor.copying
        return saved

    def _copy_seconds(self, tensor: _Tensor) -> float:
        """One copy for each memory space that needs a tensor and has it not, by way of main memory."""
        source = _HOST if tensor.producer is None else self._spaces[self.choice[tensor.producer]]
        needed = {self._spaces[self.choice[reader]] for reader in tensor.readers}
        if tensor.is_output:
            needed.add(_HOST)
        needed.discard(source)
        if not needed:
            return 0.0
        down = 0.0 if source == _HOST else self._links[source].download_seconds(tensor.size)
        return down + sum(self._links[space].upload_seconds(tensor.size) for space in sorted(needed) if space != _HOST)

    def _extra_seconds(self, node: int, source: int, target: int) -> float | None:
        """How much longer a node takes on another device, never below zero; None where it may not go there."""
        now, then = self._seconds_on(node, source), self._seconds_on(node, target)
        if now is None or then is None or not self._may_go(node, target):
            return None
        return max(0.0, then - now)

    def _seconds_on(self, node: int, device: int) -> float | None:
        key = (node, device)
        if key not in self._node_seconds:
            candidate = self._placement.candidates[device]
            self._node_seconds[key] = self._costs.node_seconds(self._nodes[node], candidate)
        return self._node_seconds[key]

    def _may_go(self, node: int, device: int) -> bool:
        """Whether a node may go to a device: nobody has pinned it, and the device takes it, now and before."""
        key = (node, device)
        if key not in self._answers:
            candidate = self._placement.candidates[device]
            refused = {label for label, _ in self._placement.assignments[node].refusals}
            self._answers[key] = (
                node not in self._placement.pinned
                and candidate.device.label not in refused
                and isinstance(ask(candidate, self._nodes[node]), Yes)
            )
        return self._answers[key]


def _all_tensors(of_nodes: Iterable[Iterable[_Tensor]]) -> list[_Tensor]:
    """Each tensor once."""
    return list(dict.fromkeys(tensor for tensors in of_nodes for tensor in tensors))
