"""The tables of the benchmark of `lite serve`, from the files in docs/results/serving, one for each processor.

``benchmarks/serving.py --record`` writes these files.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from markdown_tables import table
from workspace import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
from serving_load import recorded
from serving_load.recorded import ENGINES, LATENCY, Entry, Recorded, Throughput

__all__ = ["BLOCKS", "FOLDER", "results"]

FOLDER = ROOT / "docs" / "results" / "serving"
_NOTHING = (
    "No results are recorded yet: `benchmarks/serving.py --record` measures this machine, `make docs` writes this part."
)
_LITE, _OTHER = ENGINES


def results(folder: Path = FOLDER) -> str:
    """Return the tables of every processor."""
    files = sorted(folder.glob("*.json"))
    if not files:
        return f"\n{_NOTHING}\n\n"
    return "\n" + "\n".join(_processor(recorded.read(file)) for file in files) + "\n"


def _processor(found: Recorded) -> str:
    machine, entries = found.machine, found.entries
    every = [entry for listed in entries.values() for entry in listed]
    parts = [
        f"### {found.name}\n",
        f"family {machine['family']}, model {machine['model']}; {' '.join(machine['extensions'])}; {machine['system']}."
        f" {_origin(every)}\n",
    ]
    if entries.get("throughput"):
        parts += [_throughput(entries["throughput"]), _levels(entries["throughput"])]
    if entries.get("lines"):
        parts.append(_lines(entries["lines"]))
    if entries.get("cost"):
        parts.append(_cost(entries["cost"]))
    parts += [
        f"**Idle**: {one.processor:.2f} s of processor time in {one.seconds:.0f} s without a request.\n"
        for one in entries.get("idle", ())
    ]
    if entries.get("many"):
        parts.append(_many(entries["many"]))
    return "\n".join(parts)


def _origin(entries: Iterable[Entry]) -> str:
    listed = list(entries)
    days, revisions = (sorted({getattr(entry, name) for entry in listed}) for name in ("measured", "revision"))
    loads = [entry.load for entry in listed]
    return (
        f"Measured {', '.join(days)} at commit {', '.join(filter(None, revisions)) or 'unknown'}; load of the machine "
        f"before: {min(loads):.1f} to {max(loads):.1f}."
    )


def _throughput(entries: Sequence[Throughput]) -> str:
    """Return the table of the throughput that keeps the latency, with the ratio of the engines."""
    best = recorded.best(entries)
    rows = []
    for model, batching in dict.fromkeys((entry.model, entry.batching) for entry in entries):
        lite, other = (best.get((model, engine, batching)) for engine in ENGINES)
        ratio = f"**{lite.per_second / other.per_second:.2f}**" if lite and other else "-"
        rows.append([model, batching, _answers(lite), _answers(other), ratio])
    titles = ["model", "`--batching`", f"{ENGINES[_LITE]}, per second", f"{ENGINES[_OTHER]}, per second", "ratio"]
    return f"Answers per second with p99 < {LATENCY:.0f} ms, and on how many connections:\n\n" + table(
        titles, rows, right=(2, 3, 4)
    )


def _answers(entry: Throughput | None) -> str:
    return f"{entry.per_second:,.0f} ({entry.connections})" if entry else f"p99 is always over {LATENCY:.0f} ms"


def _levels(entries: Sequence[Throughput]) -> str:
    """Return the table of latencies on each number of connections."""
    connections = list(dict.fromkeys(entry.connections for entry in entries))
    found = {(one.model, one.batching, one.engine, one.connections): one for one in entries}
    rows = []
    for model, batching, engine in dict.fromkeys((one.model, one.batching, one.engine) for one in entries):
        cells = [found.get((model, batching, engine, count)) for count in connections]
        times = [f"{cell.median:.1f} / {cell.p99:.1f}" if cell else "" for cell in cells]
        rows.append([model, batching, ENGINES[engine], *times])
    titles = ["model", "`--batching`", "engine", *(f"{count}" for count in connections)]
    return "Latency in milliseconds, median / p99, by connections:\n\n" + table(
        titles, rows, right=range(3, len(titles))
    )


def _lines(entries: Sequence[recorded.Lines]) -> str:
    rows = []
    for batching in dict.fromkeys(entry.batching for entry in entries):
        lite, other = (
            next((one for one in entries if (one.engine, one.batching) == (engine, batching)), None)
            for engine in ENGINES
        )
        if lite and other:
            times = [f"{one.per_second:.0f}, {one.median:.0f} / {one.p99:.0f} ms" for one in (lite, other)]
            rows.append([batching, *times, f"**{lite.per_second / other.per_second:.2f}**"])
    titles = ["`--batching`", *(f"{name}, per second, median / p99" for name in ENGINES.values()), "ratio"]
    head = f"PP-OCRv4 rec on lines of ten widths from 160 to 592, {entries[0].users} users of locust:"
    return f"{head}\n\n" + table(titles, rows, right=(1, 2, 3))


def _cost(entries: Sequence[recorded.Cost]) -> str:
    rows = [
        [one.way, f"{one.size:,}", f"{one.median:.2f} ms", f"{one.processor:.2f} ms", f"{one.per_second:,.0f}"]
        for one in entries
    ]
    titles = ["way", "bytes of input", "a request", "processor time", "per second on 8 connections"]
    return "The server itself, with a model that does nothing:\n\n" + table(titles, rows, right=(1, 2, 3, 4))


def _many(entries: Sequence[recorded.Many]) -> str:
    rows = [
        [one.way, f"{one.requests:,}", f"{one.before / 2**20:.1f} MiB", f"{one.after / 2**20:.1f} MiB"]
        for one in entries
    ]
    titles = ["way", "requests", "memory before", "after"]
    return "Memory of one server, without mapped files, before and after many requests:\n\n" + table(
        titles, rows, right=(1, 2, 3)
    )


BLOCKS = {"serving results": results}
