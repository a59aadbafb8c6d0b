"""The results that are kept in ``docs/results``: one file for each processor, which tables and charts are made from.

A file has one line for each cell, a model under a condition. A new measurement of a cell replaces the cell as a whole,
because its times are comparable only with each other; cells that were not measured again stay.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from side_by_side.conditions import LEVELS, Condition
from side_by_side.engines import ENGINES, LITE
from side_by_side.result_file import PROCESSOR, content_of, name_of, text_of, write
from side_by_side.results import Results

__all__ = ["SCHEMA", "SCHEMA_VERSION", "Cell", "Recorded", "Times", "cells_of", "geometric_mean", "read", "update"]

SCHEMA = "lite-results"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Times:
    """The times of one engine in a cell, in milliseconds.

    Attributes:
        median, lower, upper, minimum: of all runs; ``lower`` and ``upper`` are the quartiles.
        processor: mean processor time of a run, of all threads together.
        runs: number of runs.
    """

    median: float
    lower: float
    upper: float
    minimum: float
    processor: float
    runs: int


@dataclass(frozen=True)
class Cell:
    """A model under a condition, with the times of all engines in one run.

    Attributes:
        model, title: name of the model, with its variant, and its name in tables.
        group: ``paddle`` or ``onnx``.
        condition: the condition.
        measured: the day, ISO 8601.
        revision: the commit of Lite.
        versions: versions of the engines, by name.
        tuning: the lines of ``lite doctor`` about Lite's view of the processor.
        load: the machine's load before the run.
        engines: the times, by the engine's name.
    """

    model: str
    title: str
    group: str
    condition: Condition
    measured: str
    revision: str
    versions: Mapping[str, str]
    tuning: tuple[str, ...]
    load: float
    engines: Mapping[str, Times]

    @property
    def key(self) -> tuple[str, Condition]:
        """The model and the condition, which identify the cell."""
        return self.model, self.condition

    @property
    def variant(self) -> str:
        """The model's variant: empty, ``batch=4`` or ``large``."""
        return self.model.partition(",")[2]

    @property
    def best_peer(self) -> str | None:
        """The engine with the shortest median, other than Lite; None if only Lite was measured."""
        peers = {name: times.median for name, times in self.engines.items() if name != LITE}
        return min(peers, key=lambda name: peers[name]) if peers else None

    @property
    def ratio(self) -> float | None:
        """The best peer's median over Lite's, above 1 if Lite is faster; None if either is missing."""
        best = self.best_peer
        return (
            None if best is None or LITE not in self.engines else self.engines[best].median / self.engines[LITE].median
        )

    @property
    def ratio_text(self) -> str:
        """The ratio with two decimals; below 1 it is rounded down, so that it never looks like a tie."""
        ratio = self.ratio
        if ratio is None:
            return ""
        return f"{math.floor(ratio * 100) / 100 if ratio < 1 else ratio:.2f}"


@dataclass(frozen=True)
class Recorded:
    """The results of one processor.

    Attributes:
        machine: the processor.
        cells: the cells, in the order in which they are shown.
    """

    machine: Mapping[str, Any]
    cells: tuple[Cell, ...]

    @property
    def name(self) -> str:
        """The processor in a few words."""
        return name_of(self.machine)

    def to_text(self) -> str:
        """Return the content of the file: JSON with one line for each cell."""
        entries = map(dataclasses.asdict, self.cells)
        return text_of((SCHEMA, SCHEMA_VERSION), self.machine, "cells", entries)

    def updated(self, newer: Recorded) -> Recorded:
        """Return these results with the cells of a newer measurement of the same processor."""
        measured = {cell.key: cell for cell in newer.cells}
        kept = [measured.pop(cell.key, cell) for cell in self.cells]
        return Recorded(newer.machine, _in_order([*kept, *measured.values()]))


def read(file: Path) -> Recorded:
    """Read a file of results.

    Raises:
        ValueError: it is no such file, or of another version, or has a field too many or too few; the message names it.
    """
    content = content_of(file, (SCHEMA, SCHEMA_VERSION))
    _require(file, "the file", content, {"schema", "schema_version", "machine", "cells"})
    _require(file, "the machine", content["machine"], set(PROCESSOR))
    return Recorded(
        content["machine"], tuple(_cell(file, number, entry) for number, entry in enumerate(content["cells"]))
    )


def update(
    file: Path,
    results: Results,
    groups: Mapping[str, Iterable[str]],
    revision: str,
    keys: Collection[tuple[str, Condition]] | None = None,
) -> Recorded:
    """Write results into the file of their processor, which is made if it is missing; return its new content.

    Args:
        file: the file.
        results: the results.
        groups: names of models, by group.
        revision: the commit of Lite.
        keys: the cells to write; by default all.

    Raises:
        ValueError: the file that is there cannot be read; see :func:`read`.
    """
    cells = tuple(cell for cell in cells_of(results, groups, revision) if keys is None or cell.key in keys)
    newer = Recorded({name: results.machine[name] for name in PROCESSOR}, cells)
    recorded = read(file).updated(newer) if file.exists() else newer
    write(file, recorded.to_text())
    return recorded


def cells_of(results: Results, groups: Mapping[str, Iterable[str]], revision: str = "") -> tuple[Cell, ...]:
    """Return the cells of results.

    Args:
        results: the results.
        groups: names of models, by group.
        revision: the commit of Lite.
    """
    group_of = {model: group for group, models in groups.items() for model in models}
    cells = []
    for condition in results.conditions():
        for model, title in results.models.items():
            timings = [t for t in results.timings if (t.model, t.condition) == (model, condition)]
            if not timings:
                continue
            engines = {
                t.engine: Times(
                    *(round(value, 4) for value in (t.median, *t.quartiles, t.minimum)),
                    processor=round(statistics.mean(t.milliseconds) * t.cpu_per_wall, 4),
                    runs=len(t.milliseconds),
                )
                for t in timings
            }
            cells.append(
                Cell(
                    model,
                    title,
                    group_of.get(model.partition(",")[0], "paddle"),
                    condition,
                    results.made_at[:10],
                    revision,
                    {name: version for name, version in results.versions.items() if name in engines},
                    _about_lite(results, condition),
                    round(results.machine["load_average"], 2),
                    engines,
                )
            )
    return _in_order(cells)


def geometric_mean(cells: Iterable[Cell]) -> float | None:
    """Return the geometric mean of the cells' ratios; None if there is no ratio."""
    ratios = [cell.ratio for cell in cells if cell.ratio is not None]
    return statistics.geometric_mean(ratios) if ratios else None


def _about_lite(results: Results, condition: Condition) -> tuple[str, ...]:
    """Return the lines about Lite that its times depend on, and that the processor's features do not tell."""
    lines = results.machine["lite"].get(condition.level, [])
    return tuple(line for line in lines if line.startswith(("level:", "tuning:")))


def _in_order(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """Return cells by group, variant and condition; models in the order in which they were measured."""
    return tuple(sorted(cells, key=lambda cell: (cell.group != "paddle", cell.variant, cell.condition)))


def _cell(file: Path, number: int, entry: dict[str, Any]) -> Cell:
    where = f"cell {number}"
    _require(file, where, entry, {field.name for field in dataclasses.fields(Cell)})
    _require(file, f"the condition of {where}", entry["condition"], {f.name for f in dataclasses.fields(Condition)})
    condition = Condition(**entry["condition"])
    unknown = sorted(entry["engines"].keys() - ENGINES.keys()) + [condition.level] * (
        condition.level not in ("", *LEVELS)
    )
    if unknown:
        raise ValueError(f"{file}: {where} names {', '.join(map(repr, unknown))}, which is no engine and no level")
    for name, times in entry["engines"].items():
        _require(file, f"{name} in {where}", times, {field.name for field in dataclasses.fields(Times)})
    engines = {name: Times(**times) for name, times in entry["engines"].items()}
    return Cell(**{**entry, "condition": condition, "tuning": tuple(entry["tuning"]), "engines": engines})


def _require(file: Path, where: str, found: Mapping[str, Any], expected: set[str]) -> None:
    if found.keys() != expected:
        differing = ", ".join(sorted(found.keys() ^ expected))
        raise ValueError(f"{file}: {where} has a field too many or too few: {differing}; measure again with --record")
