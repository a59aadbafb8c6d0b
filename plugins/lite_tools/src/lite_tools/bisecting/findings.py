"""The result of a bisection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lite_tools.bisecting.criteria import Judgement

__all__ = ["FOUND", "NOTHING", "UNSTEADY", "Culprit", "Findings"]

NOTHING, FOUND, UNSTEADY = "nothing found", "found", "not deterministic"


@dataclass(frozen=True)
class Culprit:
    """A node, a device or a graph pass that makes the outputs wrong.

    Attributes:
        name: its name.
        op: the operator of a node.
        origin: operator and name of a node in the model that was read.
        device_a: the device that runs it on the trusted side.
        device_b: the device that runs it on the other side.
        kernel: the kernels that compute it there, if the backend shows them.
        details: what else is known: the nodes of a device, or those that a pass changed.
    """

    name: str
    op: str = ""
    origin: str = ""
    device_a: str = ""
    device_b: str = ""
    kernel: str = ""
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Findings:
    """The result of a bisection.

    Attributes:
        by: what was bisected by.
        verdict: ``"found"``, ``"nothing found"`` if the side in doubt is good, or ``"not deterministic"`` if equal
            runs were judged differently.
        criterion: the criterion in words.
        units: number of nodes, devices or applications of passes that the culprits were searched among.
        whole: the judgement on the whole side in doubt.
        culprits: the culprits, in the order of the graph.
        alone: the judgement if only the culprits run as on the side in doubt; for precision, if all others do.
        others: the judgement if all others do: another culprit is left if it is not good. None if unknown.
        precision: for precision, the argument of :func:`lite_core.load` that keeps the culprits in float32.
        verified: the judgement on a session with that precision.
        runs: number of configurations that ran.
        reused: number of judgements that were known from an interrupted start.
        notes: lines for the user.
    """

    by: str
    verdict: str
    criterion: str
    units: int
    whole: Judgement
    culprits: tuple[Culprit, ...] = ()
    alone: Judgement | None = None
    others: Judgement | None = None
    precision: Mapping[str, str] | None = None
    verified: Judgement | None = None
    runs: int = 0
    reused: int = 0
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the findings as JSON."""
        found = asdict(self)
        for name in ("whole", "alone", "others", "verified"):
            judgement = getattr(self, name)
            found[name] = judgement and judgement._asdict()
        return found
