"""Which device runs which node, and why not an earlier one."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lite_core.backend import No, Yes
from lite_core.errors import BackendUnavailableError, InputError, OperatorProblem, UnsupportedOperatorError
from lite_core.ir import Graph, Node
from lite_core.schedule.devices import Candidate

__all__ = ["NodeAssignment", "Placement", "place"]


@dataclass(frozen=True, slots=True)
class NodeAssignment:
    """Where one node runs.

    Attributes:
        node: the node's name.
        op: its operator.
        origin: what it was in the user's model.
        device: label of the device that runs it.
        refusals: label and reason of every preferred device that cannot.
    """

    node: str
    op: str
    origin: str
    device: str
    refusals: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """The device of every node, in the graph's order."""

    candidates: tuple[Candidate, ...]
    choice: tuple[int, ...]
    assignments: tuple[NodeAssignment, ...]


def place(graph: Graph, candidates: Sequence[Candidate], pins: Mapping[str, str] | None = None) -> Placement:
    """Give each node to the first device that says Yes.

    Args:
        graph: the graph; its sub-graphs stay with the node that holds them.
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
        if not any(fnmatch.fnmatchcase(node.name, pattern) for node in graph.nodes):
            import difflib

            near = difflib.get_close_matches(pattern, [node.name for node in graph.nodes], n=5, cutoff=0.3)
            raise InputError(
                f"placement pins {pattern!r}, but no node of the optimized graph is called so"
                f"{' (near: ' + ', '.join(near) + ')' if near else ''}; `lite inspect MODEL --optimized` shows them"
            )
    choice: list[int] = []
    assignments: list[NodeAssignment] = []
    homeless: dict[tuple[str, str], list[str]] = {}
    for node in graph.nodes:
        pinned = next((label for p, label in (pins or {}).items() if fnmatch.fnmatchcase(node.name, p)), None)
        refusals: list[tuple[str, str]] = []
        for index, candidate in enumerate(candidates):
            label = labels[index]
            if pinned is not None and label != pinned:
                continue
            answer = _ask(candidate, node)
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
    return Placement(tuple(candidates), tuple(choice), tuple(assignments))


def _ask(candidate: Candidate, node: Node) -> Yes | No:
    try:
        answer = candidate.backend.supports(node, candidate.device)
    except Exception as error:  # a backend that fails to answer has not said Yes
        return No(f"its supports() failed with {type(error).__name__}: {error}")
    return answer if isinstance(answer, (Yes, No)) else No(f"its supports() answered {answer!r}, not Yes or No")
