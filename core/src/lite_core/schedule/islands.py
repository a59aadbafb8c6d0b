"""Moving nodes to the devices of their neighbours if the saved copies take longer than the nodes' slower execution.

Every node is first placed on the best device that can run it. A single node that only another device can run then costs
two copies, or isolates a few cheap nodes between copies. A greedy algorithm removes such islands:

1. An island is a maximal connected set of nodes on one device; nodes are connected if they share a tensor.
2. For each island and each neighbouring device, the nodes of the island are moved to that device one after another, the
   cheapest and nearest first. The best part of the island is the prefix with the lowest total cost.
3. These moves are applied, largest gain first, each only if it still gains. Repeat from 1 until no move gains.

The order of the devices states which device is preferred for a node: a node moves to save copies, never because the
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
from lite_core.ops.work import bytes_of
from lite_core.schedule.compile import memory_of
from lite_core.schedule.costs import Costs
from lite_core.schedule.devices import Candidate
from lite_core.schedule.placement import Placement, ask

__all__ = ["merge_islands"]

logger = logging.getLogger("lite.schedule")

_HOST = HostMemory.space
_LEAST_GAIN = 1e-9  # seconds; less is rounding


def merge_islands(graph: Graph, placement: Placement, costs: Costs) -> Placement:
    """Move nodes to the device of a neighbour if the total time decreases, by the estimates of ``costs``.

    A node does not move if it is pinned, if the other device refuses it or has refused it before, or if its cost is
    unknown on either device: because dimensions depend on data, or because a device does not state its speed.

    Args:
        graph: the graph with the types of one input signature.
        placement: the device of every node.
        costs: costs of nodes and copies.

    Returns:
        A placement whose assignments contain the reasons for moves; ``placement`` itself if no node moves.
    """
    used = [placement.candidates[index] for index in set(placement.choice)]
    if len(used) < 2 or len({_space_of(candidate) for candidate in used}) < 2:
        return placement  # there are no copies to save, so that nothing needs to be measured
    labels = [candidate.device.label for candidate in placement.candidates]
    trial = _TrialPlacement(graph, placement, costs)
    reasons: dict[int, list[tuple[str, str]]] = {}
    moved = True
    while moved:
        moved = False
        for move in sorted(trial.moves(), key=lambda m: (-m.gain, m.nodes, m.target)):
            before = trial.seconds(move.nodes)
            if not trial.apply(move):
                continue
            moved = True
            source, target = labels[move.source], labels[move.target]
            after = trial.seconds(move.nodes)
            times = f"{before * 1e3:.3g} ms on {source}, {after * 1e3:.3g} ms on {target}"
            why = f"moved to {target}: {len(move.nodes)} node(s) with copies would take {times}"
            logger.debug("%s: %s", source, why)
            for node in move.nodes:
                reasons.setdefault(node, []).append((source, why))
    if tuple(trial.choice) == placement.choice:
        return placement
    assignments = list(placement.assignments)
    for node, chosen in enumerate(trial.choice):
        if chosen != placement.choice[node]:
            refusals = (*assignments[node].refusals, *reasons[node])
            assignments[node] = assignments[node]._replace(device=labels[chosen], refusals=refusals)
    return replace(placement, choice=tuple(trial.choice), assignments=tuple(assignments))


def _space_of(candidate: Candidate) -> str:
    """Return the memory space of a device; a separate one if ``memory`` fails, which :class:`Costs` then logs."""
    try:
        return memory_of(candidate).space
    except (Exception, SystemExit):
        return candidate.device.label


class _Move(NamedTuple):
    """A move of nodes from one device to another, and the seconds that it gains."""

    nodes: tuple[int, ...]
    source: int
    target: int
    gain: float


@dataclass(slots=True, eq=False)
class _Tensor:
    """A tensor with the nodes that write or read it."""

    size: int
    is_output: bool = False
    producer: int | None = None
    readers: list[int] = field(default_factory=list)
    #: Present cost of its copies, in seconds.
    copying: float = 0.0

    @property
    def nodes(self) -> list[int]:
        return self.readers if self.producer is None else [self.producer, *self.readers]


def _tensors(graph: Graph) -> list[list[_Tensor]]:
    """Return for each node the tensors that it reads or writes, except constants, which are copied once at load."""
    found = {value: _Tensor(bytes_of(value)) for value in graph.inputs}
    tensors: list[list[_Tensor]] = []
    for index, node in enumerate(graph.nodes):
        read = [found[v] for v in dict.fromkeys(node.used()) if v in found]
        written = {v: _Tensor(bytes_of(v), producer=index) for v in node.outputs if v is not None}
        for tensor in read:
            tensor.readers.append(index)
        found.update(written)
        tensors.append([*read, *written.values()])
    for value in graph.outputs:
        if value in found:
            found[value].is_output = True
    return tensors


class _TrialPlacement:
    """A placement that is changed by trial moves: the device and cost of each node. Nodes and devices are indices."""

    def __init__(self, graph: Graph, placement: Placement, costs: Costs) -> None:
        self.choice = list(placement.choice)
        self._nodes = graph.nodes
        self._placement, self._costs = placement, costs
        links = {device: costs.link(placement.candidates[device]) for device in sorted(set(placement.choice))}
        self._spaces = {device: link.space for device, link in links.items()}
        self._links = {link.space: link for link in links.values()}
        self._tensors = _tensors(graph)
        self._node_seconds: dict[tuple[int, int], float | None] = {}
        self._answers: dict[tuple[int, int], bool] = {}
        for tensor in _unique_tensors(self._tensors):
            tensor.copying = self._copy_seconds(tensor)

    def seconds(self, nodes: Sequence[int]) -> float:
        """Return the present cost of nodes, except nodes of unknown cost, and of all copies of their tensors."""
        tensors = _unique_tensors(self._tensors[node] for node in nodes)
        computing = sum(self._seconds_on(node, self.choice[node]) or 0.0 for node in nodes)
        return computing + sum(tensor.copying for tensor in tensors)

    def moves(self) -> list[_Move]:
        """Return the best move for each island and each neighbouring device, if it saves time."""
        found = []
        for island in self._islands():
            source = self.choice[island[0]]
            tensors = _unique_tensors(self._tensors[node] for node in island)
            saved_at_most = sum(tensor.copying for tensor in tensors)
            neighbours = {self.choice[node] for tensor in tensors for node in tensor.nodes}
            for target in sorted(neighbours):
                if self._spaces[target] != self._spaces[source]:
                    found += self._best_part(island, source, target, saved_at_most)
        return found

    def apply(self, move: _Move) -> bool:
        """Apply a move if it still gains after the moves applied since it was found; return True if applied."""
        if any(self.choice[node] != move.source for node in move.nodes):
            return False
        extra = sum(self._extra_seconds(node, move.source, move.target) or 0.0 for node in move.nodes)
        if self._assign(move.nodes, move.target) - extra > _LEAST_GAIN:
            return True
        self._assign(move.nodes, move.source)
        return False

    def _islands(self) -> list[list[int]]:
        """Return the maximal sets of nodes on one device that are connected by shared tensors."""
        seen: set[int] = set()
        islands: list[list[int]] = []
        for first in range(len(self.choice)):
            if first in seen:
                continue
            seen.add(first)
            island = [first]
            for node in island:  # grows during the iteration
                for other in self._neighbours(node):
                    if other not in seen and self.choice[other] == self.choice[first]:
                        seen.add(other)
                        island.append(other)
            islands.append(island)
        return islands

    def _best_part(self, island: Sequence[int], source: int, target: int, saved_at_most: float) -> list[_Move]:
        """Return the part of an island that saves most time on another device, found by moving nodes one by one."""
        rest = set(island)
        queue: list[tuple[float, int, float]] = []  # extra seconds on the path to a node, the node, its extra seconds

        def enqueue(nodes: Iterable[int], path_seconds: float) -> None:
            for node in nodes:
                if node in rest:
                    rest.remove(node)
                    if (extra := self._extra_seconds(node, source, target)) is not None:
                        heapq.heappush(queue, (path_seconds + extra, node, extra))

        enqueue((node for node in island if target in {self.choice[other] for other in self._neighbours(node)}), 0.0)
        moved: list[int] = []
        saved = spent = gain = 0.0
        best = 0
        while queue:
            path_seconds, node, extra = heapq.heappop(queue)
            spent += extra
            if spent >= saved_at_most:
                break
            moved.append(node)
            saved += self._assign([node], target)
            if saved - spent > gain:
                gain, best = saved - spent, len(moved)
            enqueue(self._neighbours(node), path_seconds)
        self._assign(moved, source)
        return [_Move(tuple(moved[:best]), source, target, gain)] if gain > _LEAST_GAIN else []

    def _neighbours(self, node: int) -> Iterator[int]:
        return (other for tensor in self._tensors[node] for other in tensor.nodes)

    def _assign(self, nodes: Iterable[int], device: int) -> float:
        """Assign nodes to a device; return the seconds of copying that this saves."""
        saved = 0.0
        for node in nodes:
            self.choice[node] = device
            for tensor in self._tensors[node]:
                saved += tensor.copying
                tensor.copying = self._copy_seconds(tensor)
                saved -= tensor.copying
        return saved

    def _copy_seconds(self, tensor: _Tensor) -> float:
        """Return the cost of one copy, through main memory, to each other memory space that needs a tensor."""
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
        """Return how much longer a node runs on another device, never below zero; None if it cannot move there."""
        now, then = self._seconds_on(node, source), self._seconds_on(node, target)
        if now is None or then is None or not self._can_move(node, target):
            return None
        return max(0.0, then - now)

    def _seconds_on(self, node: int, device: int) -> float | None:
        key = (node, device)
        if key not in self._node_seconds:
            candidate = self._placement.candidates[device]
            self._node_seconds[key] = self._costs.node_seconds(self._nodes[node], candidate)
        return self._node_seconds[key]

    def _can_move(self, node: int, device: int) -> bool:
        """Return True if a node can move to a device: it is not pinned, and the device does not refuse it."""
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


def _unique_tensors(of_nodes: Iterable[Iterable[_Tensor]]) -> list[_Tensor]:
    """Return each tensor of some nodes once."""
    return list(dict.fromkeys(tensor for tensors in of_nodes for tensor in tensors))
