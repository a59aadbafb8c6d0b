"""A case of the suite, the settings of a run, and the context in which a case runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from lite_conformance.drive.subject import Subject
from lite_conformance.judge.checks import Allowance
from lite_conformance.judge.compare import Array, Expected
from lite_conformance.judge.outcome import Outcome
from lite_conformance.judge.precision import FLOAT32, Precision, find_precision
from lite_conformance.judge.tolerances import Numerics
from lite_core.errors import InputError
from lite_core.ir import DType, Graph

__all__ = ["Case", "Context", "Example", "Settings"]

_COMPUTING_LEVELS = (2, 3, 4)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run of the suite, the same in all of its processes.

    Attributes:
        backend: see :func:`lite_conformance.drive.find_backend.find_backend`.
        seed: seed of all random numbers.
        examples: number of examples that hypothesis draws for an operator and element type.
        models: model files to run in level 4.
        node_data: folder or wheel with the ONNX project's node data; None for the data of the installed onnx.
        expectations: file to use instead of the backend's own ``conformance.toml``.
        precision: the name of the precision level that float32 cases are computed in, see
            :mod:`lite_conformance.judge.precision`.
        plugin: the distribution whose operators, passes and formats are tested, instead of the whole suite.

    Raises:
        InputError: the seed is negative, there are no examples, or there is no such precision level.
    """

    backend: str
    seed: int = 0
    examples: int = 20
    models: Sequence[str] = ()
    node_data: str | None = None
    expectations: str | None = None
    precision: str = "float32"
    plugin: str = ""

    @property
    def title(self) -> str:
        """The name of what is tested: the backend, or a package on a backend."""
        return f"{self.plugin} on {self.backend}" if self.plugin else self.backend

    def __post_init__(self) -> None:
        find_precision(self.precision)
        if not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"seed must be a whole number of at least 0, is {self.seed!r}")
        if not isinstance(self.examples, int) or self.examples < 1:
            raise InputError(f"examples must be a whole number of at least 1, is {self.examples!r}")


@dataclass(frozen=True, slots=True)
class Context:
    """The context in which a case runs.

    Attributes:
        subject: the backend under test.
        settings: settings of the run.
        allowance: the tolerance that the backend's package sets for this case.
    """

    subject: Subject
    settings: Settings
    allowance: Allowance = field(default_factory=Allowance)


@dataclass(frozen=True, slots=True)
class Example:
    """A graph with inputs and expected outputs: a case, or one run of it, as data.

    Attributes:
        graph: the graph; the examples of a case may share it.
        inputs: an array for each input.
        expected: the expected value of each output.
        numerics: the required accuracy.
        dtype: the element type whose tolerance applies to floating outputs; None for each output's own.
        task_error: describes what is wrong with outputs that are within tolerance, or returns None: a network must
            solve its task.
    """

    graph: Graph
    inputs: Sequence[Array]
    expected: Sequence[Expected]
    numerics: Numerics
    dtype: DType | None = None
    task_error: Callable[[Sequence[Array]], str | None] | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One check of a backend.

    Attributes:
        name: unique name, for example ``Conv[f32,n1c3h8w8,o4,k3s2p1]``.
        level: 0 to 5.
        suite: the part of the suite that it belongs to.
        run: performs the check: returns an outcome on success, otherwise raises Failure, Refused or Skipped.
        op: the operator under test, with its domain.
        dtype: the element type under test.
        timeout_factor: multiple of the usual time limit that the case may take.
        always: True if every selection has the case, whatever its level, operator and element type.
        examples: yields what the case compares, for those who run it elsewhere; None if it is not data, as the cases of
            the contract, and those whose data another case has.
    """

    name: str
    level: int
    suite: str
    run: Callable[[Context], Outcome]
    op: str = ""
    dtype: str = ""
    timeout_factor: int = 1
    always: bool = False
    examples: Callable[[Settings], Iterator[Example]] | None = None

    def precision(self, settings: Settings) -> Precision:
        """Return the precision level of the case: that of the run for operators, graphs and models in float32."""
        in_float32 = self.dtype in ("", DType.FLOAT32.value)
        return find_precision(settings.precision) if self.level in _COMPUTING_LEVELS and in_float32 else FLOAT32
