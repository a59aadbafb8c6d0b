"""The results of a comparison, stored as JSON, and the ratios computed from them."""

from __future__ import annotations

import dataclasses
import statistics
from dataclasses import dataclass, field
from typing import Any

from side_by_side.conditions import Condition
from side_by_side.engines import LITE

SCHEMA = "lite-side-by-side"
SCHEMA_VERSION = 2


@dataclass(frozen=True)
class Timing:
    """The times of one model in one engine under one condition.

    Attributes:
        model, engine, condition: what the timing belongs to.
        runs_in_a_slice: number of runs in each of its turns.
        milliseconds: the time of every run.
        cpu_per_wall: CPU seconds for each second of its turns; more than its threads would be cheating, much less
            than 1 means that other work had the processor.
        idle_cpu_share: CPU seconds for each second of the other engines' turns.
        difference: largest difference of its output from the engines' median output, as a share of the range.
    """

    model: str
    engine: str
    condition: Condition
    runs_in_a_slice: int
    milliseconds: list[float]
    cpu_per_wall: float
    idle_cpu_share: float
    difference: float

    @property
    def median(self) -> float:
        """Median of the times, in milliseconds."""
        return statistics.median(self.milliseconds)

    @property
    def minimum(self) -> float:
        """Shortest of the times, in milliseconds."""
        return min(self.milliseconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """Lower and upper quartile of the times, in milliseconds."""
        if len(self.milliseconds) < 2:
            return self.milliseconds[0], self.milliseconds[0]
        lower, _, upper = statistics.quantiles(self.milliseconds, n=4, method="inclusive")
        return lower, upper


@dataclass(frozen=True)
class FirstResult:
    """Time from process start to first result with one thread, and the peak memory of the process until then.

    Attributes:
        model, engine: what the times belong to.
        cold_seconds, cold_bytes: one value for each process that started with an empty cache folder.
        warm_seconds, warm_bytes: one value for each process that started with the files cached by the one before.
    """

    model: str
    engine: str
    cold_seconds: list[float]
    cold_bytes: list[int]
    warm_seconds: list[float]
    warm_bytes: list[int]


@dataclass(frozen=True)
class LeftOut:
    """An engine that was not measured, and the reason; ``None`` means all models or all conditions."""

    engine: str
    reason: str
    model: str | None = None
    condition: Condition | None = None


@dataclass(frozen=True)
class Ratio:
    """Ratio of Lite to the fastest other engine on one model.

    Attributes:
        best_peer: name of the engine with the shortest median.
        of_medians: its median over Lite's: above 1, Lite is faster.
        of_minima: the shortest minimum of any peer over Lite's, which other work on the machine disturbs less.
    """

    best_peer: str
    of_medians: float
    of_minima: float


@dataclass
class Results:
    """All results of one run of the benchmark.

    Attributes:
        made_at: date and time, ISO 8601.
        machine: see ``machine.describe``.
        settings: the options that affect the results.
        versions: engine name to version.
        models: model name to title.
        timings, first_results, left_out: the measurements.
    """

    made_at: str
    machine: dict[str, Any]
    settings: dict[str, Any]
    versions: dict[str, str]
    models: dict[str, str]
    timings: list[Timing] = field(default_factory=list)
    first_results: list[FirstResult] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    def conditions(self) -> list[Condition]:
        """Return the measured conditions, in order."""
        return sorted({timing.condition for timing in self.timings})

    def has(self, model: str, condition: Condition) -> bool:
        """Return True if a model was measured under a condition, or no engine could be."""
        return any((entry.model, entry.condition) == (model, condition) for entry in [*self.timings, *self.left_out])

    def timing(self, model: str, engine: str, condition: Condition) -> Timing | None:
        """Return the timing of one cell, or None."""
        cell = (model, engine, condition)
        return next((t for t in self.timings if (t.model, t.engine, t.condition) == cell), None)

    def ratio(self, model: str, condition: Condition) -> Ratio | None:
        """Return the ratio of Lite to the best peer on a model, or None if either was not measured."""
        lite = self.timing(model, LITE, condition)
        peers = [t for t in self.timings if (t.model, t.condition) == (model, condition) and t.engine != LITE]
        if lite is None or not peers:
            return None
        best = min(peers, key=lambda timing: timing.median)
        shortest = min(timing.minimum for timing in peers)
        return Ratio(best.engine, best.median / lite.median, shortest / lite.minimum)

    def geometric_means(self, condition: Condition) -> tuple[float, float] | None:
        """Return the geometric means over the models of both ratios: of medians, and of minima."""
        ratios = [ratio for model in self.models if (ratio := self.ratio(model, condition))]
        if not ratios:
            return None
        return (
            statistics.geometric_mean(ratio.of_medians for ratio in ratios),
            statistics.geometric_mean(ratio.of_minima for ratio in ratios),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the measurements and, for other readers of the JSON, the figures computed from them."""
        content = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, **dataclasses.asdict(self)}
        for timing, entry in zip(self.timings, content["timings"]):
            lower, upper = timing.quartiles
            entry["summary"] = {
                "median": timing.median,
                "lower_quartile": lower,
                "upper_quartile": upper,
                "minimum": timing.minimum,
            }
        content["ratios"] = [
            {"model": model, "condition": dataclasses.asdict(condition), **dataclasses.asdict(ratio)}
            for condition in self.conditions()
            for model in self.models
            if (ratio := self.ratio(model, condition))
        ]
        content["geometric_means"] = [
            {"condition": dataclasses.asdict(condition), "of_medians": means[0], "of_minima": means[1]}
            for condition in self.conditions()
            if (means := self.geometric_means(condition))
        ]
        return content

    @staticmethod
    def from_json(content: dict[str, Any]) -> Results:
        """Return the results in the JSON that :meth:`to_json` returned.

        Raises:
            ValueError: the schema or its version differs.
        """
        found = (content.get("schema"), content.get("schema_version"))
        if found != (SCHEMA, SCHEMA_VERSION):
            raise ValueError(f"expected schema {SCHEMA!r}, version {SCHEMA_VERSION}, found {found[0]!r}, {found[1]!r}")

        def with_condition(entry: dict[str, Any]) -> dict[str, Any]:
            found = entry["condition"]
            rest = {key: value for key, value in entry.items() if key != "summary"}
            return {**rest, "condition": None if found is None else Condition(**found)}

        return Results(
            content["made_at"],
            content["machine"],
            content["settings"],
            content["versions"],
            content["models"],
            [Timing(**with_condition(entry)) for entry in content["timings"]],
            [FirstResult(**entry) for entry in content["first_results"]],
            [LeftOut(**with_condition(entry)) for entry in content["left_out"]],
        )
