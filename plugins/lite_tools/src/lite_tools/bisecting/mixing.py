"""Plans that run some nodes of a model as one session does, and all others as another session does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from lite_core.backend import Options, Partition
from lite_core.errors import InputError
from lite_core.ir import Graph, Node
from lite_core.memory import ScratchPool
from lite_core.schedule import Candidate, CompileError, Placement, Plan, split
from lite_core.schedule.compile import CompiledPartition, compile_partition
from lite_core.schedule.control import ControlExecutable
from lite_core.schedule.costs import Costs
from lite_core.schedule.islands import merge_islands
from lite_core.schedule.placement import place_nodes
from lite_core.schedule.planner import Planner, decide_branches
from lite_core.session import Session

__all__ = ["Mixture", "Unit"]


class Unit(NamedTuple):
    """Nodes that run on the same side: one node, or several with one name, or a node with those in its sub-graphs."""

    label: str
    nodes: frozenset[str]


class _Side(NamedTuple):
    """A session, the placement of its plan, and what its options change of those of the first side."""

    planner: Planner
    candidates: tuple[Candidate, ...]
    placement: Placement
    changes: Mapping[str, Any]

    @staticmethod
    def of(session: Session, placement: Placement, base: Options) -> _Side:
        own, names = session.planner.options, [field.name for field in fields(Options) if field.name != "own"]
        changes = {name: getattr(own, name) for name in names if getattr(own, name) != getattr(base, name)}
        plain = tuple(candidate for candidate in placement.candidates if not candidate.changes)
        return _Side(session.planner, plain, _changed(placement, changes), changes)

    def placed(self, body: Graph, costs: Costs) -> Placement:
        """Return the placement that the session would choose for a body of a control node."""
        placement = merge_islands(body, place_nodes(body, self.candidates, {}), costs)
        return _changed(self.planner.precision.applied(body, placement), self.changes)


class Mixture:
    """Plans for one set of input shapes, in which each node runs as one of two sessions runs it.

    Both sessions must have loaded the same ready graph. Nodes are identified by their names; several nodes with one
    name are on the same side. Nothing moves between devices and nothing falls back, unlike in a session. If the other
    session cannot compile a partition, its side consists of the nodes of that partition.

    Args:
        a: the session whose options the plans have.
        b: the other session.
        shapes: a shape for each input.

    Raises:
        LiteError: a session cannot make its plan.
    """

    def __init__(self, a: Session, b: Session, shapes: Mapping[str, Sequence[int]]) -> None:
        plan = a.plan(shapes)
        self.graph, self._options = plan.graph, a.planner.options
        self._a = _Side.of(a, plan.placement, self._options)
        self._b = _Side.of(b, _placement_of(b, shapes, plan), self._options)
        self._costs, self._pool = Costs(), ScratchPool()
        #: The partitions of the latest plan, in which the next one finds its own. More would take too much memory.
        self._kept = {_partition_key(c.part, c.candidate): c for c in plan.compiled if not _is_control(c)}
        #: Units whose nodes the two sessions run differently, in the order of the graph.
        self.units = self._find_units()

    def devices(self, node: str) -> tuple[str, str]:
        """Return the labels of the devices that run a node on each side; empty for nodes in sub-graphs."""
        number = next((n for n, each in enumerate(self.graph.nodes) if each.name == node), None)
        if number is None:
            return "", ""
        return _label(self._a.placement, number), _label(self._b.placement, number)

    def node(self, name: str) -> Node:
        """Return the first node of a name, which may be in a sub-graph."""
        return next(node for scope in self.graph.walk() for node in scope.nodes if node.name == name)

    def plan(self, on_b: Collection[str]) -> Plan:
        """Make the plan in which the nodes of these names run as in the second session.

        Raises:
            CompileError: a backend failed to compile a partition.
        """
        return self._plan(self.graph, (self._a.placement, self._b.placement), frozenset(on_b), "")

    def _plan(self, graph: Graph, placements: tuple[Placement, Placement], on_b: frozenset[str], prefix: str) -> Plan:
        def plan_body(body: Graph, prefix: str) -> Plan:
            body = decide_branches(body) or body
            sides = self._a.placed(body, self._costs), self._b.placed(body, self._costs)
            return self._plan(body, sides, on_b, prefix)

        placement = _mixed(graph, placements, on_b)
        is_whole = graph is self.graph
        compiled = [
            (self._kept.get(_partition_key(part.partition, part.candidate)) if is_whole else None)
            or compile_partition(part, self._options, plan_body)
            for part in split(graph, placement, prefix)
        ]
        if is_whole:
            self._kept = {_partition_key(c.part, c.candidate): c for c in compiled if not _is_control(c)}
        return Plan(graph, placement, compiled, self._pool)

    def _find_units(self) -> list[Unit]:
        a, b = self._a.placement, self._b.placement
        units: dict[str, set[str]] = {}
        for number, node in enumerate(self.graph.nodes):
            inner = [each.name for body in node.subgraphs for scope in body.walk() for each in scope.nodes]
            if _key(a.candidates[a.choice[number]]) != _key(b.candidates[b.choice[number]]):
                units.setdefault(node.name, set()).update([node.name, *inner])
            elif number in a.bodies or number in b.bodies:
                for name in inner:
                    units.setdefault(name, set()).add(name)
        return [Unit(name, frozenset(nodes)) for name, nodes in units.items()]


def _placement_of(session: Session, shapes: Mapping[str, Sequence[int]], other: Plan) -> Placement:
    """Return the placement of a session's plan, or that of another plan with the partition that fails to compile."""
    try:
        plan = session.plan(shapes)
    except CompileError as error:
        failed, placement = {node.name for node in error.placed.partition.graph.nodes}, other.placement
        new = len(placement.candidates)
        choice = [new if n.name in failed else old for n, old in zip(other.graph.nodes, placement.choice)]
        if new not in choice:  # it is in a sub-graph
            raise
        candidates = (*placement.candidates, error.placed.candidate)
        return replace(placement, candidates=candidates, choice=tuple(choice), bodies={})
    if [node.name for node in plan.graph.nodes] != [node.name for node in other.graph.nodes]:
        raise InputError("the two configurations run different graphs: load both from the same ready graph")
    return plan.placement


def _changed(placement: Placement, changes: Mapping[str, Any]) -> Placement:
    """Return the placement with candidates whose options have some changes; those of ``host`` have no options."""
    candidates = [
        c if c.device.backend == "host" else c._replace(changes=MappingProxyType({**changes, **c.changes}))
        for c in placement.candidates
    ]
    return replace(placement, candidates=tuple(candidates))


def _mixed(graph: Graph, placements: tuple[Placement, Placement], on_b: frozenset[str]) -> Placement:
    sides = [placements[node.name in on_b] for node in graph.nodes]
    chosen = [side.candidates[side.choice[number]] for number, side in enumerate(sides)]
    candidates: dict[object, Candidate] = {}
    for candidate in chosen:
        candidates.setdefault(_key(candidate), candidate)
    keys = list(candidates)
    assignments = [side.assignments[number] for number, side in enumerate(sides)]
    bodies = {
        number: inner
        for placement in placements
        for number, inner in placement.bodies.items()
        if chosen[number].device.backend == "host"
    }
    choice = tuple(keys.index(_key(candidate)) for candidate in chosen)
    return Placement(tuple(candidates.values()), choice, tuple(assignments), bodies=bodies)


def _key(candidate: Candidate) -> object:
    """Return what two candidates must share to be the same: their devices may state speeds measured at two times."""
    return candidate.device.label, repr(sorted(candidate.changes.items())), repr(candidate.own_options)


def _partition_key(part: Partition, candidate: Candidate) -> object:
    """Return what two partitions of the same graph must share to be the same."""
    return _key(candidate), tuple(map(id, part.graph.nodes)), tuple(value.name for value in part.graph.outputs)


def _is_control(compiled: CompiledPartition) -> bool:
    """Return True for a control node, whose bodies run on the sides of their own plans."""
    return isinstance(compiled.executable, ControlExecutable)


def _label(placement: Placement, number: int) -> str:
    return placement.candidates[placement.choice[number]].device.label
