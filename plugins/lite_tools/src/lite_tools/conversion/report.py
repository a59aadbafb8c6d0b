"""What a conversion did: read by people as tables, by programs as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lite_core.ir import Graph
from lite_tools.conversion.targets import Refusal
from lite_tools.quantization import OutputAccuracy, WeightRecord

__all__ = ["Check", "ConversionReport", "GraphSummary", "TargetReport"]


@dataclass(frozen=True, slots=True)
class GraphSummary:
    """A graph in numbers; sub-graphs count, too.

    Attributes:
        nodes: how many.
        operators: how often each occurs, the most frequent first.
        weight_bytes: of all constants.
    """

    nodes: int
    operators: Mapping[str, int]
    weight_bytes: int

    @staticmethod
    def of(graph: Graph) -> GraphSummary:
        """Count."""
        counts = graph.op_counts()
        size = sum(array.nbytes for scope in graph.walk() for array in scope.constants.values())
        return GraphSummary(sum(counts.values()), counts, size)


@dataclass(frozen=True, slots=True)
class TargetReport:
    """What the file holds for one target.

    Attributes:
        name: the backend's name.
        plugin: distribution and version that bring it.
        absent: why no device of it is on this machine, empty where one is.
        nodes: how many nodes each backend runs on this target; empty where nobody could be asked.
        refusals: the nodes that the target itself cannot run.
        plans: the input shapes that plans were prepared for.
        threads: the numbers of threads that there is a plan for, for each of the shapes.
        saved_bytes: what its backends saved; what several plans share counts once.
        notes: sentences about what is not as good as it could be, and what to do.
    """

    name: str
    plugin: str
    absent: str
    nodes: Mapping[str, int]
    refusals: tuple[Refusal, ...]
    plans: tuple[Mapping[str, tuple[int, ...]], ...]
    threads: tuple[int, ...]
    saved_bytes: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """One run of the written file, compared with the references.

    Attributes:
        target: where it ran: ``references``, which are the host's, or a target.
        threads: how many the session was allowed; None for the references.
        shapes: of the inputs.
        data: where the inputs come from.
        differences: for each output the largest difference as a share of its range.
        limit: the largest difference that is allowed.
        problem: why it could not run, empty where it ran.
        prepared: whether it ran with what the file has prepared for these shapes; None where it has nothing for them.
        unused: why it did not.
    """

    target: str
    threads: int | None
    shapes: Mapping[str, tuple[int, ...]]
    data: str
    differences: Mapping[str, float]
    limit: float
    problem: str = ""
    prepared: bool | None = None
    unused: str = ""

    @property
    def worst(self) -> float:
        """The largest of the differences; infinite where there are none because it did not run."""
        return float("inf") if self.problem else max(self.differences.values(), default=0.0)

    @property
    def agrees(self) -> bool:
        """Whether it ran and stayed within the limit."""
        return self.worst <= self.limit

    def __str__(self) -> str:
        """One sentence."""
        shapes = ", ".join(f"{name}={'x'.join(map(str, shape))}" for name, shape in self.shapes.items())
        where = self.target if self.threads is None else f"{self.target} (threads={self.threads})"
        if self.problem:
            return f"{where} with {shapes} ({self.data}): {self.problem}"
        name = max(self.differences, key=self.differences.__getitem__, default="")
        verdict = "agrees" if self.agrees else "disagrees"
        return (
            f"{where} with {shapes} ({self.data}) {verdict}: output {name!r} differs by {self.worst:.3g} of its "
            f"range, allowed is {self.limit:.3g}"
        )


@dataclass(frozen=True, slots=True)
class ConversionReport:
    """What a conversion did.

    Attributes:
        model: what was converted.
        output: the file that was written.
        size: of the file, in bytes.
        precision: the type that backends may compute in.
        stored_as: the type that weights are stored as.
        before: the graph as it was read.
        after: the graph as it is in the file.
        passes: names of the passes that changed something, in the order in which they first did.
        targets: in the order in which they were asked for.
        weights: what became of each weight, where they are stored in fewer bits.
        accuracy: what storing them in fewer bits costs, for each output.
        checks: runs of the file; empty where it was not verified.
        notes: sentences for the reader.
    """

    model: str
    output: Path
    size: int
    precision: str
    stored_as: str
    before: GraphSummary
    after: GraphSummary
    passes: tuple[str, ...]
    targets: tuple[TargetReport, ...]
    weights: tuple[WeightRecord, ...]
    accuracy: tuple[OutputAccuracy, ...]
    checks: tuple[Check, ...]
    notes: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether every check that was made agrees; False only in a file that was forced."""
        return all(check.agrees for check in self.checks)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was prepared in vain: not even this machine, which prepared it, uses it."""
        return tuple(
            dict.fromkeys(
                f"what the file has prepared for {check.target} is not used on this very machine, where sessions "
                f"compile when they load: {check.unused}"
                for check in self.checks
                if check.prepared is False
            )
        )

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        data = asdict(self)
        for check, entry in zip(self.checks, data["checks"]):
            entry["agrees"] = check.agrees
        return {**data, "agrees": self.agrees, "warnings": self.warnings}
