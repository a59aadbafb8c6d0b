"""The answers of backends about each operator in each element type: those about the nodes of a recorded model.

The model `operators.lite` has a node for each operator and each of its working element types: an ordinary case of the
conformance suite. scripts/record_operator_nodes.py writes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from lite_core.backend import No
from lite_core.ir import Graph
from lite_core.schedule import Candidate
from lite_core.schedule.placement import ask
from lite_core.session import open_model

__all__ = ["FILE", "TypeSupport", "operator_nodes", "support_of"]

#: The model; each node is named OPERATOR/TYPE, such as ``Conv/float32``.
FILE = Path(__file__).with_name("operators.lite")


class TypeSupport(NamedTuple):
    """The answer about an operator in an element type; ``reason`` is why it is refused, or empty."""

    operator: str
    dtype: str
    reason: str = ""


def operator_nodes() -> Graph:
    """Return the recorded model."""
    return open_model(FILE).graph


def support_of(candidate: Candidate, graph: Graph) -> list[TypeSupport]:
    """Ask a device about every node of the recorded model, in the order of the file.

    A device that refuses a node may accept the operator with other attributes, and the other way round.
    """
    found = []
    for node in graph.nodes:
        operator, _, dtype = node.name.rpartition("/")
        answer = ask(candidate, node)
        found.append(TypeSupport(operator, dtype, answer.reason if isinstance(answer, No) else ""))
    return found
