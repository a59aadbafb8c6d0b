"""The results of the zoo: files in ``docs/results/zoo``, one for each processor, with one line for each model.

A new measurement of a model replaces its row as a whole; rows that were not measured again stay.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from side_by_side.engines import LITE
from side_by_side.result_file import PROCESSOR, content_of, name_of, text_of, write

__all__ = ["SCHEMA", "SCHEMA_VERSION", "Recorded", "Row", "read", "update"]

SCHEMA = "lite-zoo-results"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Row:
    """A model in Lite and in the engine that it was made for.

    Attributes:
        model: a name of the table.
        engine: the engine that it was made for.
        measured: the day, ISO 8601.
        revision: the commit of Lite's sources.
        versions: the engines' versions.
        load: load of the machine before.
        refusal: the error with which Lite refuses the model; empty if it runs.
        peer_refusal: the same of the other engine.
        difference: the largest difference of an output as a share of its range; None if nothing can be compared, shapes
            differ or only one is finite.
        native: share of the nodes' time in Lite's compiled code.
        notes: what Lite says about nodes that are not compiled.
        timings: by the number of threads and the engine: ``median``, ``minimum`` and processor time ``cpu`` of a run in
            milliseconds.
        memory: peak memory of the process until its first result in bytes, with one thread, by engine.
    """

    model: str
    engine: str
    measured: str
    revision: str
    versions: Mapping[str, str]
    load: float
    refusal: str = ""
    peer_refusal: str = ""
    difference: float | None = None
    native: float | None = None
    notes: Sequence[str] = ()
    timings: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)

    def ratio(self, threads: str, figure: str = "median") -> float | None:
        """Return the other engine's time over Lite's, or None if one was not measured."""
        times = self.timings.get(threads, {})
        if LITE not in times or self.engine not in times:
            return None
        return times[self.engine][figure] / times[LITE][figure]

    @property
    def worst_ratio(self) -> float | None:
        """The smallest :meth:`ratio` of all numbers of threads."""
        ratios = [ratio for threads in self.timings if (ratio := self.ratio(threads)) is not None]
        return min(ratios, default=None)

    @property
    def memory_ratio(self) -> float | None:
        """The other engine's memory over Lite's."""
        if LITE not in self.memory or self.engine not in self.memory:
            return None
        return self.memory[self.engine] / self.memory[LITE]

    def is_right(self, max_difference: float) -> bool:
        """Return True if the outputs are those of the other engine, or that engine has none."""
        return bool(self.peer_refusal) or (self.difference is not None and self.difference <= max_difference)


@dataclass(frozen=True)
class Recorded:
    """The rows of one processor."""

    machine: Mapping[str, Any]
    rows: tuple[Row, ...]

    @property
    def name(self) -> str:
        """The processor in a few words."""
        return name_of(self.machine)

    def to_text(self) -> str:
        """Return the content of the file: JSON with one line for each row."""
        entries = map(dataclasses.asdict, self.rows)
        return text_of((SCHEMA, SCHEMA_VERSION), self.machine, "rows", entries)


def read(file: Path) -> Recorded:
    """Read a file of results.

    Raises:
        ValueError: it is no such file, or of another version, or a row has a field too many or too few.
    """
    content = content_of(file, (SCHEMA, SCHEMA_VERSION))
    names = {entry.name for entry in dataclasses.fields(Row)}
    for entry in content["rows"]:
        if differing := ", ".join(sorted(entry.keys() ^ names)):
            raise ValueError(f"{file}: a row has a field too many or too few: {differing}; measure again")
    return Recorded(content["machine"], tuple(Row(**entry) for entry in content["rows"]))


def update(file: Path, machine: Mapping[str, Any], rows: Iterable[Row], order: Sequence[str]) -> Recorded:
    """Write rows into the file of their processor, which is made if it is missing; return its new content.

    Rows of models that are not in ``order``, the names of the table, are dropped.

    Raises:
        ValueError: the file that is there cannot be read; see :func:`read`.
    """
    every = {row.model: row for row in (*(read(file).rows if file.exists() else ()), *rows)}
    ordered = tuple(every[name] for name in order if name in every)
    recorded = Recorded({name: machine[name] for name in PROCESSOR}, ordered)
    write(file, recorded.to_text())
    return recorded
