"""Which device runs which node, and why not an earlier one."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lite_core.backend import No, Yes
from lite_core.errors import BackendUnavailableError, InputError, OperatorProblem, UnsupportedOperatorError
from lite_core.ir import Graph, Node
from lite_core.schedule.devices import Candidate

__all__ = ["NodeAssignment", "Placement", "ask", "place", "place_bodies", "place_nodes"]


class NodeAssignment(NamedTuple):
    """Where one node runs.

    Attributes:
        node: the node's name.
        op: its operator.
        origin: what it was in the user's model.
        device: label of the device that runs it.
        refusals: label of every preferred device that does not run it, and why: it cannot, or copying to it and
            back would take longer than running the node elsewhere.
    """

    node: str
    op: str
    origin: str
    device: str
    refusals: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """The device of every node, in the graph's order.

    Attributes:
        candidates: the devices, in order of preference.
        choice: for each node the index of its device in ``candidates``.
        assignments: for each node the same in words, with reasons.
        pinned: indices of nodes that the user has placed; they stay.
        bodies: by the index of a node of ``host`` whose sub-graphs have plans of their own, because other devices take
            nodes in there: where those nodes run.
    """

    candidates: tuple[Candidate, ...]
    choice: tuple[int, ...]
    assignments: tuple[NodeAssignment, ...]
    pinned: frozenset[int] = frozenset()
    bodies: Mapping[int, tuple[NodeAssignment, ...]] = field(default_factory=dict)

    @property
    def everywhere(self) -> tuple[NodeAssignment, ...]:
        """The assignments, each followed by those of the nodes in its sub-graphs where these have plans."""
        return tuple(a for i, outer in enumerate(self.assignments) for a in (outer, *self.bodies.get(i, ())))


def place(graph: Graph, candidates: Sequence[Candidate], pins: Mapping[str, str] | None = None) -> Placement:
    """Give each node to the first device that says Yes.

    Args:
        graph: the graph. Sub-graphs stay with the node that holds them, unless that runs on ``host`` and other devices
            take nodes in there: see :attr:`Placement.bodies`.
        candidates: devices in order of preference.
        pins: node name pattern (``"conv*"``) to device label: those nodes run there or nowhere.

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
        names = [node.name for scope in graph.walk() for node in scope.nodes]
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
            import difflib

            near = difflib.get_close_matches(pattern, names, n=5, cutoff=0.3)
            raise InputError(
                f"placement pins {pattern!r}, but no node of the optimized graph is called so"
                f"{' (near: ' + ', '.join(near) + ')' if near else ''}; `lite inspect MODEL --optimized` shows them"
            )
    return place_nodes(graph, candidates, pins or {})


def place_nodes(graph: Graph, candidates: Sequence[Candidate], pins: Mapping[str, str]) -> Placement:
    """As :func:`place`, for a graph that may be a part of the one that the pins are for."""
    labels = [c.device.label for c in candidates]
    choice: list[int] = []
    assignments: list[NodeAssignment] = []
    homeless: dict[tuple[str, str], list[str]] = {}
    pinned_nodes: set[int] = set()
    for position, node in enumerate(graph.nodes):
        pinned = next((label for p, label in (pins or {}).items() if fnmatch.fnmatchcase(node.name, p)), None)
        if pinned is not None:
            pinned_nodes.add(position)
        refusals: list[tuple[str, str]] = []
        for index, candidate in enumerate(candidates):
            label = labels[index]
            if pinned is not None and label != pinned:
                continue
            answer = ask(candidate, node)
            if isinstance(answer, Yes):
                choice.append(index)
                origin = str(node.origin) if node.origin else ""
                assignments.append(NodeAssignment(node.name, node.qualified_op, origin, label, tuple(refusals)))
                break
            refusals.append((label, answer.reason))
        else:
            reason = "; ".join(f"{label}: {why}" for label, why in refusals)
            homeless.setdefault((node.qualified_op, reason), []).append(node.name)
    if homeless:
        raise UnsupportedOperatorError(
            f"graph {graph.name!r} on {', '.join(labels)}",
            [
                OperatorProblem(op, why, tuple(nodes), 'allow fallback="host", or add a backend that runs it')
                for (op, why), nodes in homeless.items()
            ],
        )
    bodies = place_bodies(graph, assignments, candidates, pins)
    return Placement(tuple(candidates), tuple(choice), tuple(assignments), frozenset(pinned_nodes), bodies)


def place_bodies(
    graph: Graph, assignments: Sequence[NodeAssignment], candidates: Sequence[Candidate], pins: Mapping[str, str]
) -> dict[int, tuple[NodeAssignment, ...]]:
    """Which nodes have sub-graphs that get plans of their own, by index, and where the nodes in there run.

    That is so where the node was left to ``host``, and not all in its sub-graphs is: else the references are faster
    without plans.
    """
    bodies: dict[int, tuple[NodeAssignment, ...]] = {}
    for index, (node, assignment) in enumerate(zip(graph.nodes, assignments)):
        if node.subgraphs and assignment.device == "host":
            inner = tuple(a for body in node.subgraphs for a in place_nodes(body, candidates, pins).everywhere)
            if any(a.device != "host" for a in inner):
                bodies[index] = inner
    return bodies


def ask(candidate: Candidate, node: Node) -> Yes | No:
    """Whether a device can run a node; whatever its backend does wrong is a No, too."""
    try:
        answer = candidate.backend.supports(node, candidate.device)
    except Exception as error:  # a backend that fails to answer has not said Yes
        return No(f"its supports() failed with {type(error).__name__}: {error}")
    return answer if isinstance(answer, (Yes, No)) else No(f"its supports() answered {answer!r}, not Yes or No")
