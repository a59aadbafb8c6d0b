"""How a case ends: what it returns, and the exceptions that say more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lite_conformance.judge.compare import Array, Measured, merge
from lite_conformance.judge.tolerances import Tolerance
from lite_core.ir import Graph

__all__ = ["Failure", "Outcome", "Refused", "Replay", "Skipped", "merged"]


@dataclass(frozen=True, slots=True)
class Replay:
    """What it takes to repeat a run outside the suite.

    Attributes:
        graph: what was run.
        inputs: an array for each input.
        expected: what each output should be; float64 for floating outputs.
        allowed: how far each element of each output may be from that.
    """

    graph: Graph
    inputs: Sequence[Array]
    expected: Sequence[Array]
    allowed: Sequence[Array]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A case that passed."""

    tolerance: Tolerance | None = None
    measured: Measured | None = None
    examples: int = 1
    note: str = ""


def merged(outcomes: Sequence[Outcome], note: str = "") -> Outcome:
    """Several runs as one outcome: the tolerance of the first that has one, and the worst of all that was measured."""
    tolerance = next((o.tolerance for o in outcomes if o.tolerance), None)
    return Outcome(tolerance, merge([o.measured for o in outcomes if o.measured]), len(outcomes), note)


class Failure(Exception):
    """The backend did not do what it claims.

    Args:
        reason: one sentence.
        tolerance: what was allowed, where numbers were compared.
        measured: what was found.
        replay: what it takes to repeat it.
        details: more lines for the reader.
    """

    def __init__(
        self,
        reason: str,
        *,
        tolerance: Tolerance | None = None,
        measured: Measured | None = None,
        replay: Replay | None = None,
        details: str = "",
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.tolerance = tolerance
        self.measured = measured
        self.replay = replay
        self.details = details
        self.examples = 1


class Refused(Exception):
    """The backend answered No; the reason is its own."""


class Skipped(Exception):
    """Something that is not the backend's is missing."""
