"""The report of a conversion, which is printed as tables or converted to plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lite_core.container import ModelFile
from lite_core.ir import Graph
from lite_core.notebooks import Shown
from lite_tools.conversion.targets import Refusal
from lite_tools.quantization import OutputAccuracy, QuantizationReport, WeightRecord
from lite_tools.quantization.schemes import stored_bytes

__all__ = ["Check", "ConversionReport", "GraphSummary", "TargetReport", "file_split"]


@dataclass(frozen=True, slots=True)
class GraphSummary:
    """Counts of a graph, including its sub-graphs.

    Attributes:
        nodes: the number of nodes.
        operators: the number of nodes of each operator, most frequent first.
        weight_bytes: the size of all constants.
    """

    nodes: int
    operators: Mapping[str, int]
    weight_bytes: int

    @staticmethod
    def of(graph: Graph) -> GraphSummary:
        """Count the nodes and constants of a graph."""
        counts = graph.op_counts()
        size = sum(stored_bytes(array) for scope in graph.walk() for array in scope.constants.values())
        return GraphSummary(sum(counts.values()), counts, size)


def file_split(file: ModelFile) -> dict[str, int]:
    """Return the size in bytes of each part of a model file: weights, weights packed besides, code, graph and plans."""
    parts = {"constants": "weights", "weights": "weights packed besides", "code": "code"}
    sizes = dict.fromkeys([*parts.values(), "graph and plans"], 0)
    for section in file.sections:
        sizes[parts.get(section.name.partition("/")[0], "graph and plans")] += section.size
    return sizes


@dataclass(frozen=True, slots=True)
class TargetReport:
    """The content of the file for one target.

    Attributes:
        name: the backend's name.
        level: the level of the processor that the code is for; empty if the backend has none.
        plugin: the distribution of the backend, with its version.
        absent: the reason why this machine has no device of it; empty if it has one.
        nodes: the number of nodes that each backend runs for this target; empty if no device could be asked.
        refusals: the nodes that the target itself refuses.
        plans: the input shapes that plans were prepared for.
        threads: the numbers of threads that plans were prepared for, for each of the shapes.
        saved_bytes: the size of the state that its backends saved; pieces that several plans share count once.
        notes: sentences about limitations, and what to do.
    """

    name: str
    level: str
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
    """One run of the new file, compared with the references.

    Attributes:
        target: the target that ran it, or ``references`` for the references of host.
        threads: the number of threads of the session; None for the references.
        shapes: the shapes of the inputs.
        data: the source of the inputs.
        differences: the largest difference of each output, as a share of its range.
        limit: the largest allowed difference.
        problem: the reason why it could not run; empty if it ran.
        prepared: True if it used the plan that is prepared for these shapes, False if not, None if there is no plan.
        unused: the reason why the plan was not used.
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
        """The largest of the differences; infinite if the file did not run."""
        return float("inf") if self.problem else max(self.differences.values(), default=0.0)

    @property
    def agrees(self) -> bool:
        """True if the file ran and the differences are within the limit."""
        return self.worst <= self.limit

    def __str__(self) -> str:
        """Describe the check in one sentence."""
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
class ConversionReport(Shown):
    """The report of a conversion.

    Attributes:
        model: the model that was converted.
        output: the file that was written.
        size: the size of the file in bytes.
        split: the size in bytes of each part of the file, see :func:`file_split`.
        precision: the type that backends may compute in.
        stored_as: the type that weights are stored in.
        before: the graph as it was read.
        after: the graph in the file.
        passes: the names of the passes that changed the graph, in the order of their first changes.
        targets: the reports of the targets, in the order of the request.
        weights: the records of weights that were considered for storage in fewer bits.
        accuracy: the accuracy of each output with weights in fewer bits.
        quantization: the report about layers that compute with 8-bit integers; None if none were asked for.
        checks: the verification runs; empty if the file was not verified.
        notes: sentences for the user.
    """

    model: str
    output: Path
    size: int
    split: Mapping[str, int]
    precision: str
    stored_as: str
    before: GraphSummary
    after: GraphSummary
    passes: tuple[str, ...]
    targets: tuple[TargetReport, ...]
    weights: tuple[WeightRecord, ...]
    accuracy: tuple[OutputAccuracy, ...]
    quantization: QuantizationReport | None
    checks: tuple[Check, ...]
    notes: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """True if all checks agree; False only for a file that was written with ``force``."""
        return all(check.agrees for check in self.checks)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about prepared plans that sessions do not use even on this machine."""
        return tuple(
            dict.fromkeys(
                f"the plans prepared for {check.target} are not used on this machine, where sessions compile when they "
                f"load: {check.unused}"
                for check in self.checks
                if check.prepared is False
            )
        )

    def __repr__(self) -> str:
        agreed = "not verified" if not self.checks else "verified" if self.agrees else "its results DISAGREE"
        counts = f"{self.before.nodes} nodes read, {self.after.nodes} written; {agreed}"
        lines = [f"Conversion of {self.model} to {self.output} ({self.size / 1e6:.2f} MB): {counts}"]
        for target in self.targets:
            nodes = ", ".join(f"{count} node(s) on {name}" for name, count in target.nodes.items()) or "not asked"
            saved = f"plans: {len(target.plans)}, saved: {target.saved_bytes / 1e6:.2f} MB"
            absent = ", no device here" if target.absent else ""
            lines.append(f"{' '.join(filter(None, (target.name, target.level)))}: {nodes}; {saved}{absent}")
        return "\n  ".join([*lines, *self.warnings])

    def as_dict(self) -> dict[str, Any]:
        """Convert the report to plain data."""
        data = asdict(self)
        for check, entry in zip(self.checks, data["checks"]):
            entry["agrees"] = check.agrees
        return {**data, "agrees": self.agrees, "warnings": self.warnings}
