"""The results of benchmarks/serving.py: files in ``docs/results/serving``, one for each processor.

A new run replaces the entries of the sections that it measured; others stay.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from side_by_side.result_file import PROCESSOR, content_of, name_of, text_of, write

__all__ = ["ENGINES", "Cost", "Entry", "Idle", "Lines", "Many", "Recorded", "Throughput", "best", "read", "update"]

SCHEMA = ("lite-serving-results", 1)
#: The backends that are compared, by the names of ``lite serve --backend``, with their names in tables.
ENGINES = {"x86": "Lite", "onnxruntime": "ONNX Runtime"}
#: The latency that 99 of 100 requests must keep, in milliseconds.
LATENCY = 50.0


@dataclass(frozen=True)
class Entry:
    """A measured fact.

    Attributes:
        measured: the day, ISO 8601.
        revision: the commit of Lite.
        load: the machine's load before the run.
    """

    measured: str
    revision: str
    load: float


@dataclass(frozen=True)
class Throughput(Entry):
    """A model under load from a number of connections: medians of several rounds.

    Attributes:
        model: its name in tables.
        engine: a key of :data:`ENGINES`.
        batching: the server's option.
        connections: connections, each with one request at a time.
        per_second: answers per second.
        median, p99: milliseconds of a request.
        processor: milliseconds of the server's processor time for a request.
    """

    model: str
    engine: str
    batching: str
    connections: int
    per_second: float
    median: float
    p99: float
    processor: float


@dataclass(frozen=True)
class Lines(Entry):
    """Text lines of different widths under load by locust.

    Attributes:
        engine, batching: as of :class:`Throughput`.
        users: users, each with one request at a time.
        per_second, median, p99: as of :class:`Throughput`.
    """

    engine: str
    batching: str
    users: int
    per_second: float
    median: float
    p99: float


@dataclass(frozen=True)
class Cost(Entry):
    """What the server itself costs: a model that does nothing.

    Attributes:
        way: how requests and answers travel.
        size: bytes of the input.
        median: milliseconds of a request on one connection.
        processor: milliseconds of the server's processor time for a request.
        per_second: answers per second to 8 connections.
    """

    way: str
    size: int
    median: float
    processor: float
    per_second: float


@dataclass(frozen=True)
class Idle(Entry):
    """A server that nobody asks.

    Attributes:
        seconds: how long.
        processor: seconds of processor time in it.
    """

    seconds: float
    processor: float


@dataclass(frozen=True)
class Many(Entry):
    """The memory of a server over many requests, in bytes, without pages of files.

    Attributes:
        way: how requests travel.
        requests: the number of requests after those that warm it up.
        before: after the warm-up.
        after: at the end.
    """

    way: str
    requests: int
    before: int
    after: int


KINDS: dict[str, type[Entry]] = {
    "throughput": Throughput,
    "lines": Lines,
    "cost": Cost,
    "idle": Idle,
    "many": Many,
}


@dataclass(frozen=True)
class Recorded:
    """The results of one processor.

    Attributes:
        machine: the processor.
        entries: by section, a key of :data:`KINDS`.
    """

    machine: Mapping[str, Any]
    entries: Mapping[str, Sequence[Any]]

    @property
    def name(self) -> str:
        """The name of the processor."""
        return name_of(self.machine)


def best(entries: Iterable[Throughput]) -> dict[tuple[str, str, str], Throughput]:
    """Return the entry with most answers per second among those that keep :data:`LATENCY`.

    The keys are model, engine and batching; a model that never keeps it is missing.
    """
    found: dict[tuple[str, str, str], Throughput] = {}
    for entry in entries:
        key = entry.model, entry.engine, entry.batching
        if entry.p99 < LATENCY and (key not in found or entry.per_second > found[key].per_second):
            found[key] = entry
    return found


def read(file: Path) -> Recorded:
    """Read a file.

    Raises:
        ValueError: it is no file of these results, or of another version.
    """
    content = content_of(file, SCHEMA)
    entries: dict[str, list[Entry]] = {}
    for row in content["entries"]:
        section = row.pop("section")
        entries.setdefault(section, []).append(KINDS[section](**row))
    return Recorded(content["machine"], entries)


def update(file: Path, machine: Mapping[str, Any], entries: Mapping[str, Sequence[Entry]]) -> None:
    """Replace the sections of a file that were measured."""
    old = read(file).entries if file.exists() else {}
    merged = {section: entries.get(section) or old.get(section, ()) for section in KINDS}
    rows = [{"section": section, **dataclasses.asdict(entry)} for section, found in merged.items() for entry in found]
    write(file, text_of(SCHEMA, {name: machine[name] for name in PROCESSOR}, "entries", rows))
