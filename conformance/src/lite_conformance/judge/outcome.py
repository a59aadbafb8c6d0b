"""The outcome of a case that passed, and the exceptions of a case that did not pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lite_conformance.judge.compare import Array, Measured, merge
from lite_conformance.judge.tolerances import Tolerance
from lite_core.ir import Graph

__all__ = ["Failure", "Outcome", "PackageCasesError", "Refused", "Replay", "Skipped", "merged"]


@dataclass(frozen=True, slots=True)
class Replay:
    """The data to repeat a run, or a compilation, outside the suite.

    Attributes:
        graph: the graph that ran, or was to be compiled.
        inputs: an array for each input; None if the graph is only compiled.
        expected: the expected value of each output; float64 for floating outputs.
        allowed: the largest error allowed for each element of each output: infinity if it may have any value, NaN
            if even the sign of a zero must be right.
    """

    graph: Graph
    inputs: Sequence[Array] | None = None
    expected: Sequence[Array] = ()
    allowed: Sequence[Array] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a case that passed."""

    tolerance: Tolerance | None = None
    measured: Measured | None = None
    examples: int = 1
    note: str = ""


def merged(outcomes: Sequence[Outcome], note: str = "") -> Outcome:
    """Combine the outcomes of several runs: the first tolerance, and the worst measurements of all."""
    tolerance = next((o.tolerance for o in outcomes if o.tolerance), None)
    measured = merge([o.measured for o in outcomes if o.measured])
    return Outcome(tolerance, measured, len(outcomes), note or next((o.note for o in outcomes if o.note), ""))


class Failure(Exception):
    """The backend did not do what it claims.

    Args:
        reason: one sentence.
        tolerance: the tolerance in force, if numbers were compared.
        measured: the error measures, if numbers were compared.
        replay: the data to repeat the run.
        details: further lines for the report.
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
    """The backend answered No; the message is its reason.

    Args:
        reason: one sentence, which reports count: the same one for all cases with this reason.
        details: further lines for the report, about this case.
    """

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(reason)
        self.details = details


class PackageCasesError(Exception):
    """The cases that a package brings cannot be used.

    Args:
        reason: one sentence, which names the package and its module.
        details: the traceback.
    """

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(reason)
        self.details = details


class Skipped(Exception):
    """The case cannot run here for a reason other than the backend: a device, file or package is missing."""
