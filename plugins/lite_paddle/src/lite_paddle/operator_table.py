"""The table of Paddle's operators: which of them lite-paddle lowers, and where the nodes run that they become.

Backends are asked about the recorded nodes of each operator, see :mod:`lite_paddle.recorded_nodes`: any backend,
through ``supports`` of the contract, for a device of this machine or, without one, for the device that it describes as
its target. A node with sub-graphs that a backend refuses counts as native if the backend supports the nodes of the
sub-graphs: host then only drives them.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from lite_core.backend import DescribesTarget, Device, No, Unavailable
from lite_core.ir import Node
from lite_core.plugins import available_backends, backend_sources, default_plugins
from lite_core.schedule import Candidate
from lite_core.schedule.placement import ask
from lite_core.schedule.probing import probe
from lite_paddle.lowering.left_out import groups
from lite_paddle.lowering.operators import supported_ops
from lite_paddle.recorded_nodes import recorded_nodes, recorded_operators

__all__ = ["HOST", "NATIVE", "NO", "OperatorRow", "Refuse", "operator_table", "rows"]

#: Returns the reason why a backend does not run a node, or None.
Refuse = Callable[[Node], str | None]

#: Every recorded node runs on the backend, some run on host, the operator has no lowering.
NATIVE, HOST, NO = "native", "host", "no"

#: Operators that the readers resolve, so that nothing of them is left to run.
_READ = {
    "feed": "an input of the graph",
    "fetch": "an output of the graph",
    "data": "an input of the graph",
    "conditional_block": "read as an operator if",
    "conditional_block_infer": "read as an operator if",
}
#: An operator of Paddle-Lite whose name PIR has for another one, which is lowered as reduce_max.
_OF_PADDLE_LITE = {"max": "only Paddle-Lite's OpenCL has a kernel of this name; what its attributes mean is not known"}


@dataclass(frozen=True)
class OperatorRow:
    """An operator of Paddle.

    Attributes:
        name: legacy name; that of PIR if there is no legacy one.
        backends: backend to :data:`NATIVE`, :data:`HOST` or :data:`NO`.
        operators: Lite's operators that its recorded programs become, sorted.
        to_host: backend to those of Lite's operators that it refuses, each with the reason it gives first.
        reason: the reason why it is left out, or what its reader makes of it.
        inputs: its input slots; a ``*`` is for several values, a ``?`` for an optional one. Empty if unknown.
        outputs: its output slots.
        attributes: its attributes, each with its type.
    """

    name: str
    backends: dict[str, str]
    operators: tuple[str, ...] = ()
    to_host: dict[str, dict[str, str]] = field(default_factory=dict)
    reason: str = ""
    inputs: str = ""
    outputs: str = ""
    attributes: str = ""


def operator_table(backends: Sequence[str] | None = None) -> list[OperatorRow]:
    """Return a row for every operator of Paddle and Paddle-Lite, those that are left out included, sorted by name.

    Args:
        backends: names of backends, such as ``["host", "x86"]``; by default all that are installed.
    """
    return rows({name: partial(_answer, candidate) for name, candidate in _candidates(backends).items()})


def rows(refusals: Mapping[str, Refuse]) -> list[OperatorRow]:
    """Return the rows of :func:`operator_table` for backends that a function answers for."""
    reasons = {backend: _reasons(refuse) for backend, refuse in refusals.items()}
    lowered = {*supported_ops(), *_READ}
    found = [_row(name, reasons) for name in lowered]
    found += [
        replace(_with_schema(name), backends=dict.fromkeys(reasons, NO), reason=reason)
        for name, reason in {**_left_out(), **_OF_PADDLE_LITE}.items()
        if name not in lowered
    ]
    return sorted(found, key=lambda row: row.name)


def _left_out() -> dict[str, str]:
    return {name: group.reason for group in groups() for name in group.names}


def _row(name: str, refusals: Mapping[str, Mapping[int, str]]) -> OperatorRow:
    numbers = recorded_operators().get(name, [])
    nodes = recorded_nodes()
    to_host: dict[str, dict[str, str]] = {}
    for backend, reasons in refusals.items():
        refused = {nodes[n].qualified_op: reasons[n] for n in reversed(numbers) if n in reasons}
        if refused:
            to_host[backend] = dict(sorted(refused.items()))
    marks = {backend: HOST if backend in to_host or backend == "host" else NATIVE for backend in refusals}
    operators = tuple(sorted({nodes[n].qualified_op for n in numbers}))
    return replace(_with_schema(name), backends=marks, operators=operators, to_host=to_host, reason=_READ.get(name, ""))


def _candidates(backends: Sequence[str] | None) -> dict[str, Candidate]:
    """Return a device of each backend to ask; backends without any are left out."""
    found: dict[str, Candidate] = {}
    sources = backend_sources(default_plugins())
    for name, backend in available_backends().items():
        if name == "null" or (backends is not None and name not in backends):
            continue
        answer = probe(backend, sources[name], automatic=backends is None)
        if not isinstance(answer, Unavailable):
            found[name] = Candidate(backend, answer[0])
        elif isinstance(backend, DescribesTarget) and isinstance(device := _target(backend), Device):
            found[name] = Candidate(backend, device)
    return found


def _target(backend: DescribesTarget) -> object:
    try:
        return backend.target()
    except Exception:  # a failing plugin counts as one without a device
        return None


def _answer(candidate: Candidate, node: Node) -> str | None:
    answer = ask(candidate, node)
    return answer.reason if isinstance(answer, No) else None


def _reasons(refuse: Refuse) -> dict[int, str]:
    """Return the numbers of the recorded nodes that are refused, with the reasons."""
    answers = ((number, _refusal(node, refuse)) for number, node in enumerate(recorded_nodes()))
    return {number: reason for number, reason in answers if reason is not None}


def _refusal(node: Node, refuse: Refuse) -> str | None:
    reason = refuse(node)
    if reason is None or not node.subgraphs:
        return reason
    inner = (_refusal(other, refuse) for graph in node.subgraphs for other in graph.nodes)
    return next((found for found in inner if found is not None), None)


@cache
def _schemas() -> dict[str, dict[str, Any]]:
    text = pkgutil.get_data("lite_paddle.paddle_lite", "operator_schemas.json")
    assert text is not None, "the package was installed without its operator_schemas.json"
    schemas: dict[str, dict[str, Any]] = json.loads(text)
    return schemas


def _with_schema(name: str) -> OperatorRow:
    """Return a row with the slots and attributes of an operator, if they are known."""
    found = _schemas().get(name, {})
    texts = (str(found.get(key, "")) for key in ("inputs", "outputs", "attributes"))
    return OperatorRow(name, {}, (), {}, "", *texts)
