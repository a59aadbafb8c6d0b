"""The results in fewer bits: files in ``docs/results/precision``, one for each processor.

A file has one line for each cell: a model in a precision with a number of threads. A new measurement of a cell replaces
the cell as a whole; cells that were not measured again stay.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from side_by_side.engines import ENGINES, LITE
from side_by_side.result_file import PROCESSOR, content_of, name_of, text_of, write

__all__ = ["FLOAT32", "SCHEMA", "SCHEMA_VERSION", "Cell", "Figures", "Recorded", "read", "update"]

SCHEMA = "lite-precision-results"
SCHEMA_VERSION = 1
#: The form of a model that all others are compared with.
FLOAT32 = "float32"


@dataclass(frozen=True)
class Figures:
    """What was measured of one form of a model in one engine.

    Attributes:
        median, lower, upper, minimum: the times of all runs in milliseconds; ``lower`` and ``upper`` are the quartiles.
        runs: number of runs.
        snr: signal-to-noise ratio of the output beside float64 in dB; see :func:`~side_by_side.exact.distances`.
        error: greatest error of an element, as a share of the range of the output.
        memory: peak resident memory of the process until its first result, in bytes.
        computes: what the engine says that it computes in; empty if it says nothing.
    """

    median: float
    lower: float
    upper: float
    minimum: float
    runs: int
    snr: float
    error: float
    memory: int
    computes: str


@dataclass(frozen=True)
class Cell:
    """A model in one precision with a number of threads, in all engines of one run.

    Attributes:
        model, title: name of the model, and its name in tables.
        precision: a key of ``PRECISIONS``.
        threads: number of threads.
        measured: the day, ISO 8601.
        revision: the commit of Lite.
        versions: versions of the engines, by name.
        load: the machine's load before the run.
        engines: for each engine its figures by form: the precision, if it has it, and float32.
        absent: for each engine that lacks a figure, the reason.
    """

    model: str
    title: str
    precision: str
    threads: int
    measured: str
    revision: str
    versions: Mapping[str, str]
    load: float
    engines: Mapping[str, Mapping[str, Figures]]
    absent: Mapping[str, str]

    @property
    def key(self) -> tuple[str, str, int]:
        """What identifies the cell."""
        return self.precision, self.model, self.threads

    def figures(self, engine: str, form: str = "") -> Figures | None:
        """Return the figures of an engine in a form, by default in the cell's precision; None if it has none."""
        return self.engines.get(engine, {}).get(form or self.precision)

    @property
    def best_peer(self) -> tuple[str, str] | None:
        """The engine other than Lite, and its form, with the shortest median; None if there is no other engine.

        Float32 counts: it is what a user of an engine has that is slower, or not possible, in the precision.
        """
        medians = {
            (engine, form): figures.median
            for engine, forms in self.engines.items()
            for form, figures in forms.items()
            if engine != LITE
        }
        return min(medians, key=lambda key: medians[key]) if medians else None

    @property
    def ratio(self) -> float | None:
        """The best other engine's median over Lite's in the precision, above 1 if Lite is faster; None without both."""
        lite, best = self.figures(LITE), self.best_peer
        if lite is None or best is None:
            return None
        return self.engines[best[0]][best[1]].median / lite.median

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
        cells: the cells.
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


def read(file: Path) -> Recorded:
    """Read a file of results.

    Raises:
        ValueError: it is no such file, or of another version, or a cell has a field too many or too few.
    """
    content = content_of(file, (SCHEMA, SCHEMA_VERSION))
    return Recorded(content["machine"], tuple(_cell(file, entry) for entry in content["cells"]))


def update(
    file: Path, machine: Mapping[str, Any], cells: Iterable[Cell], order: Mapping[str, Sequence[str]]
) -> Recorded:
    """Write cells into the file of their processor, which is made if it is missing; return its new content.

    Args:
        file: the file.
        machine: the processor, as ``machine.describe`` returns it.
        cells: the cells.
        order: the names of the models by precision, all in the order in which they are shown.

    Raises:
        ValueError: the file that is there cannot be read; see :func:`read`.
    """
    new = {cell.key: cell for cell in cells}
    kept = [new.pop(cell.key, cell) for cell in (read(file).cells if file.exists() else ())]
    places = {(name, model): (i, j) for i, name in enumerate(order) for j, model in enumerate(order[name])}

    def place(cell: Cell) -> tuple[int, int, int]:
        precision, model = places[cell.precision, cell.model]
        return precision, cell.threads, model

    ordered = sorted([*kept, *new.values()], key=place)
    recorded = Recorded({name: machine[name] for name in PROCESSOR}, tuple(ordered))
    write(file, recorded.to_text())
    return recorded


def _cell(file: Path, entry: dict[str, Any]) -> Cell:
    names = {field.name for field in dataclasses.fields(Cell)}
    if entry.keys() != names or not entry["engines"].keys() <= ENGINES.keys():
        differing = ", ".join(sorted(entry.keys() ^ names)) or "an unknown engine"
        raise ValueError(f"{file}: a cell has a field too many or too few: {differing}; measure again with --record")
    engines = {
        name: {form: Figures(**figures) for form, figures in forms.items()} for name, forms in entry["engines"].items()
    }
    return Cell(**{**entry, "engines": engines})
