"""Placement: the device of each node, with the refusals of preferred devices."""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lite_core.backend import No, Yes
from lite_core.errors import BackendUnavailableError, InputError, OperatorProblem, UnsupportedOperatorError
from lite_core.ir import DType, Graph, Node
from lite_core.plugins.contracts import fault_text
from lite_core.schedule.devices import Candidate

__all__ = [
    "NodeAssignment",
    "Placement",
    "ask",
    "place",
    "place_bodies",
    "place_nodes",
    "require_matches",
    "unknown_name",
]

logger = logging.getLogger("lite.schedule")

#: Backends whose supports() has failed: one warning each is enough.
_warned: set[str] = set()


class NodeAssignment(NamedTuple):
    """The device of one node.

    Attributes:
        node: the node's name.
        op: its operator.
        origin: operator and name in the model that was read.
        device: label of the device that runs it.
        refusals: label of every preferred device that does not run it, with the reason: the device cannot run it, or
            copies would take longer than running the node on another device.
    """

    node: str
    op: str
    origin: str
    device: str
    refusals: tuple[tuple[str, str], ...] = ()

    def describe(self) -> str:
        """Return a line with the node, its device, and the reasons against the preferred ones."""
        against = "".join(f"; not {label}: {reason}" for label, reason in self.refusals)
        return f"{self.op} {self.node!r} on {self.device}{against}"


@dataclass(frozen=True, slots=True)
class Placement:
    """The device of every node, in the graph's order.

    Attributes:
        candidates: the devices, in order of preference.
        choice: for each node the index of its device in ``candidates``.
        assignments: for each node its device label, with the refusals of preferred devices.
        pinned: indices of nodes that the user placed; they never move.
        bodies: assignments of the nodes in sub-graphs with separate plans, by the index of the node, on ``host``, that
            holds the sub-graphs. Sub-graphs have separate plans if other devices accept some of their nodes.
    """

    candidates: tuple[Candidate, ...]
    choice: tuple[int, ...]
    assignments: tuple[NodeAssignment, ...]
    pinned: frozenset[int] = frozenset()
    bodies: Mapping[int, tuple[NodeAssignment, ...]] = field(default_factory=dict)

    @property
    def all_assignments(self) -> tuple[NodeAssignment, ...]:
        """The assignments; a node's assignment is followed by the assignments in its sub-graphs with separate plans."""
        return tuple(a for i, outer in enumerate(self.assignments) for a in (outer, *self.bodies.get(i, ())))

    def log(self) -> None:
        """Log a line for each node if the level is debug."""
        if logger.isEnabledFor(logging.DEBUG):
            for assignment in self.all_assignments:
                logger.debug("%s", assignment.describe())


def place(graph: Graph, candidates: Sequence[Candidate], pins: Mapping[str, str] | None = None) -> Placement:
    """Place each node on the first device that says Yes.

    Args:
        graph: the graph. Sub-graphs run with the node that holds them, unless it runs on ``host`` and other devices
            accept nodes of its sub-graphs: see :attr:`Placement.bodies`.
        candidates: devices in order of preference.
        pins: node name pattern (``"conv*"``) to device label, for nodes that must run there.

    Raises:
        UnsupportedOperatorError: some nodes run on no candidate; all are listed with the reasons.
        BackendUnavailableError: a pin names a device that is not among the candidates.
        InputError: a pin's pattern matches no node.
    """
    labels = [c.device.label for c in candidates]
    for pattern, label in (pins or {}).items():
        if label not in labels:
            raise BackendUnavailableError(
                f"placement pins {pattern!r} to {label!r}, which this session does not use (it uses: "
                f"{', '.join(labels)}); add it to backend="
            )
    require_matches(graph, pins or (), "placement pins")
    return place_nodes(graph, candidates, pins or {})


def require_matches(graph: Graph, patterns: Iterable[str], use: str) -> None:
    """Raise an InputError, which begins with ``use``, if a node name pattern matches no node of the graph."""
    for pattern in patterns:
        names = [node.name for scope in graph.walk() for node in scope.nodes]
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
            raise unknown_name(f"{use} {pattern!r}, but no node of the optimized graph has", pattern, names)


def unknown_name(problem: str, given: str, names: Sequence[str]) -> InputError:
    """Return the error for a name that a graph does not have: ``problem``, and near names."""
    import difflib  # not at the top: few programs need it

    near = ", ".join(dict.fromkeys(difflib.get_close_matches(given, names, n=5, cutoff=0.3)))
    hint = f" (near: {near})" if near else ""
    return InputError(f"{problem} such a name{hint}; `lite inspect MODEL --optimized --origins` shows them")


def place_nodes(graph: Graph, candidates: Sequence[Candidate], pins: Mapping[str, str]) -> Placement:
    """Place nodes as :func:`place` does, without checking the pins: the graph may be a part of the model's graph."""
    labels = [c.device.label for c in candidates]
    choice: list[int] = []
    assignments: list[NodeAssignment] = []
    unsupported: dict[tuple[str, str], list[str]] = {}
    for node in graph.nodes:
        pinned = _pin(node, pins)
        inner = [n for body in node.subgraphs for scope in body.walk() for n in scope.nodes]
        refusals: list[tuple[str, str]] = []
        for index, (candidate, label) in enumerate(zip(candidates, labels)):
            if pinned is not None and label != pinned:
                continue
            apart = next((n.name for n in inner if label != "host" and _pin(n, pins) not in (None, label)), None)
            answer = ask(candidate, node) if apart is None else No(f"{apart!r} in its body is placed elsewhere")
            if isinstance(answer, Yes):
                choice.append(index)
                own = node.name, node.qualified_op, str(node.origin or "")
                assignments.append(NodeAssignment(*own, label, tuple(refusals)))
                break
            refusals.append((label, answer.reason))
        else:
            reason = "; ".join(f"{label}: {why}" for label, why in refusals)
            unsupported.setdefault((node.qualified_op, reason), []).append(node.name)
    if unsupported:
        cure = 'allow fallback="host", or add a backend that runs it'
        problems = [OperatorProblem(op, why, tuple(nodes), cure) for (op, why), nodes in unsupported.items()]
        raise UnsupportedOperatorError(f"graph {graph.name!r} on {', '.join(labels)}", problems)
    bodies = place_bodies(graph, assignments, candidates, pins)
    pinned_nodes = frozenset(i for i, node in enumerate(graph.nodes) if _pin(node, pins) is not None)
    return Placement(tuple(candidates), tuple(choice), tuple(assignments), pinned_nodes, bodies)


def _pin(node: Node, pins: Mapping[str, str]) -> str | None:
    return next((label for pattern, label in pins.items() if fnmatch.fnmatchcase(node.name, pattern)), None)


def place_bodies(
    graph: Graph, assignments: Sequence[NodeAssignment], candidates: Sequence[Candidate], pins: Mapping[str, str]
) -> dict[int, tuple[NodeAssignment, ...]]:
    """Return the indices of nodes whose sub-graphs get separate plans, with the assignments of the nodes inside.

    These are nodes on ``host`` whose sub-graphs have at least one node that another device accepts. Other sub-graphs
    run faster by the references than by plans.
    """
    bodies: dict[int, tuple[NodeAssignment, ...]] = {}
    for index, (node, assignment) in enumerate(zip(graph.nodes, assignments)):
        if node.subgraphs and assignment.device == "host":
            inner = tuple(a for body in node.subgraphs for a in place_nodes(body, candidates, pins).all_assignments)
            if any(a.device != "host" for a in inner):
                bodies[index] = inner
    return bodies


def ask(candidate: Candidate, node: Node) -> Yes | No:
    """Ask a backend whether a device can run a node; any failure of the backend counts as No.

    Backends other than ``host`` are not asked about strings, which are objects of Python.
    """
    values = [*node.used(), *node.outputs, *(v for body in node.subgraphs for g in body.walk() for v in g.defined())]
    if candidate.device.backend != "host" and any(v is not None and v.dtype is DType.STRING for v in values):
        return No("strings are only on host")
    try:
        answer: object = candidate.backend.supports(node, candidate.device)
        if isinstance(answer, (Yes, No)):
            return answer
        fault = f"its supports() answered {answer!r}, not Yes or No"
    except BaseException as error:
        fault = f"its supports() failed with {fault_text(error)}"
    logger.log(logging.DEBUG if str(candidate) in _warned else logging.WARNING, "%s: %s", candidate, fault)
    _warned.add(str(candidate))
    return No(fault)
