"""How a case ends: what it returns, and the exceptions that say more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from lite_conformance.cases.tensors import Array
from lite_conformance.judge.record import Measured, Tolerance
from lite_core.errors import LiteError
from lite_core.ir import Graph

__all__ = ["Failure", "Outcome", "Refused", "Replay", "Skipped", "backend_call"]


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


@contextmanager
def backend_call(what: str) -> Iterator[None]:
    """Around each call of the backend under test: what it raises is its failure, not the suite's.

    Afterwards NumPy's error settings are what they were before, so that a backend's do not reach the suite's numbers.

    Args:
        what: begins the sentence: ``"run()"``.

    Raises:
        Failure: the backend raised anything, ``SystemExit`` included; only an interrupt by the user passes.
    """
    try:
        with np.errstate():
            yield
    except (Failure, KeyboardInterrupt):
        raise
    except BaseException as error:
        told = f"{what} raised {type(error).__name__}: {_text(error)}"
        advice = "" if isinstance(error, LiteError) else "; backends raise LiteError with a sentence for the user"
        raise Failure(told + advice) from error


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as another:
        return f"(its text cannot be had: {type(another).__name__})"
