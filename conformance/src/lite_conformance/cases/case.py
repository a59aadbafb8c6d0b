"""A case of the suite, and what it is given when it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lite_conformance.drive.subject import Subject
from lite_conformance.judge.checks import Allowance
from lite_conformance.judge.outcome import Outcome
from lite_core.errors import InputError

__all__ = ["Case", "Context", "Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run of the suite is asked to do; the same in every process that takes part.

    Attributes:
        backend: see :func:`lite_conformance.drive.find_backend.find_backend`.
        seed: of all random numbers.
        examples: how many examples hypothesis draws for an operator and element type.
        models: model files to run in level 4.
        node_data: folder or wheel with the ONNX project's node data; None takes that of the installed onnx.
        expectations: file to take instead of the backend's own ``conformance.toml``.

    Raises:
        InputError: the seed is negative, or there are no examples.
    """

    backend: str
    seed: int = 0
    examples: int = 20
    models: Sequence[str] = ()
    node_data: str | None = None
    expectations: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"seed must be a whole number of at least 0, is {self.seed!r}")
        if not isinstance(self.examples, int) or self.examples < 1:
            raise InputError(f"examples must be a whole number of at least 1, is {self.examples!r}")


@dataclass(frozen=True, slots=True)
class Context:
    """What a case may use.

    Attributes:
        subject: the backend under test.
        settings: of the run.
        allowance: what the backend's package says about the tolerance of this case.
    """

    subject: Subject
    settings: Settings
    allowance: Allowance = field(default_factory=Allowance)


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to find out about a backend.

    Attributes:
        name: unique, for example ``Conv[f32,n1c3h8w8,o4,k3s2p1]``.
        level: 0 to 5.
        suite: the part of the suite that it belongs to.
        run: does it; returns when all is well, raises Failure, Refused or Skipped when not.
        op: the operator it is about, with its domain.
        dtype: the element type it is about.
        patience: how many times the usual time limit it may take.
    """

    name: str
    level: int
    suite: str
    run: Callable[[Context], Outcome]
    op: str = ""
    dtype: str = ""
    patience: int = 1
