"""Benchmark of `lite map`: a table by the workers of one machine, directly and by Dask, and what a part costs.

    python benchmarks/mapping.py [--rows N] [--workers N ...] [--json]

A perceptron of 2.2 million parameters reads 64 numbers of each row. Every run is a process of its own, with an empty
output folder. *Time* is that of the whole command, *processor time* that of all its processes, and *memory* the largest
sum of their proportional set sizes (PSS), in which a page that several processes share counts once. The cost of a part
follows from the same table in ten times as many parts, that of a run from a table of one part. Linux only.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as parquet

import lite_core as lite
from lite_tools.writing import write_model

FEATURES, WIDTH, CLASSES = 64, 1024, 16
ROWS_PER_PART = 1000
#: Divides the rows of every part: the rest of a batch would be filled up, and computed.
BATCH = 100
#: Seconds between two looks at the memory.
_PERIOD = 0.5


@dataclass(frozen=True)
class Cost:
    """What a run cost.

    Attributes:
        way: how the table was mapped.
        parts: the number of parts.
        seconds: of the whole command.
        processor_seconds: of all its processes.
        megabytes: the largest memory of all processes together.
    """

    way: str
    parts: int
    seconds: float
    processor_seconds: float
    megabytes: float


def write_perceptron(path: Path) -> None:
    """Write the model: x, float32 [n, 64], to scores, float32 [n, 16]."""
    rng = np.random.default_rng(0)
    graph = lite.GraphBuilder("perceptron")
    value = graph.input("x", "float32", ["n", FEATURES])
    sizes = [FEATURES, WIDTH, WIDTH, WIDTH, CLASSES]
    for inner, outer in itertools.pairwise(sizes):
        weights = rng.standard_normal((inner, outer), np.float32) / np.float32(np.sqrt(inner))
        value = graph.add("MatMul", [value, graph.constant(weights)])
        value = value if outer == CLASSES else graph.add("Relu", [value])
    graph.output(value, "scores")
    write_model(path, graph.build())


def write_table(path: Path, rows: int, rows_per_part: int) -> None:
    """Write a Parquet file with a column ``x`` of 64 numbers, and a row group for each part."""
    rng = np.random.default_rng(1)
    kind = pa.list_(pa.float32(), FEATURES)
    with parquet.ParquetWriter(path, pa.schema([("row", pa.int64()), ("x", kind)])) as writer:
        for first in range(0, rows, rows_per_part):
            count = min(rows_per_part, rows - first)
            values = pa.array(rng.standard_normal(count * FEATURES, np.float32))
            columns = [pa.array(np.arange(first, first + count)), pa.FixedSizeListArray.from_arrays(values, FEATURES)]
            writer.write_table(pa.table(columns, ["row", "x"]), row_group_size=rows_per_part)


def cost_of(way: str, options: Sequence[str], model: Path, table: Path, rows: int, rows_per_part: int) -> Cost:
    """Map a table, and return what that cost.

    Raises:
        SystemExit: the run failed, or a row is missing.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "results")
        command = [sys.executable, "-m", "lite_core", "map", str(model), str(table), "-o", str(output), "--json"]
        command += ["--part-rows", str(rows_per_part), "--batch", str(BATCH), *options]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        watch = _Memory(process.pid)
        printed, _ = process.communicate()
        seconds = time.perf_counter() - start
        watch.stop()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode:
            raise SystemExit(f"mapping.py: {way} failed:\n{printed}")
        found = sum(parquet.read_metadata(file).num_rows for file in output.rglob("*.parquet"))
        if found != rows:
            raise SystemExit(f"mapping.py: {way}: {found} rows instead of {rows}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(way, parquet.read_metadata(table).num_row_groups, seconds, used, watch.most / 1e6)


class _Memory:
    """The largest memory of a process and those that it started, in bytes, as a thread sees it."""

    def __init__(self, pid: int) -> None:
        self.most = 0
        self._root = psutil.Process(pid)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(_PERIOD):
            total = 0
            with suppress(psutil.Error):
                for process in (self._root, *self._root.children(recursive=True)):
                    with suppress(psutil.Error):
                        total += process.memory_full_info().pss
            self.most = max(self.most, total)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000, metavar="N", help="default: 200000")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], metavar="N", help="default: 1 2 4")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args(arguments)
    kinds: list[tuple[str, list[str]]] = [("threads", []), ("Dask workers", ["--dask"])]
    ways = [
        (f"{kind}: {count}", [*flags, "--workers", str(count)]) for kind, flags in kinds for count in options.workers
    ]
    costs: list[Cost] = []
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "perceptron.lite")
        write_perceptron(model)
        sizes = ((ROWS_PER_PART, ROWS_PER_PART), (options.rows, ROWS_PER_PART), (options.rows, ROWS_PER_PART // 10))
        for rows, rows_per_part in sizes:
            table = Path(folder, f"table-{rows}-{rows_per_part}.parquet")
            write_table(table, rows, rows_per_part)
            for way, flags in ways:
                costs.append(cost_of(way, flags, model, table, rows, rows_per_part))
                if not options.json:
                    print(_line(costs[-1]), flush=True)
    if options.json:
        print(json.dumps({"processor": _processor(), "costs": [asdict(cost) for cost in costs]}, indent=2))
        return
    print(f"\n{options.rows} rows on {_processor()}, {os.cpu_count()} processors\n")
    for way, _ in ways:
        one, whole, fine = (cost for cost in costs if cost.way == way)
        more = fine.parts - whole.parts
        time_of_part = 1e3 * (fine.seconds - whole.seconds) / more
        processor_time_of_part = 1e3 * (fine.processor_seconds - whole.processor_seconds) / more
        print(
            f"{way:16} {one.seconds:6.2f} s to begin and end; a part costs {time_of_part:6.2f} ms, and "
            f"{processor_time_of_part:6.2f} ms of processors"
        )


def _line(cost: Cost) -> str:
    return (f"{cost.way:16} {cost.parts:5d} parts {cost.seconds:8.2f} s {cost.processor_seconds:8.2f} s of processors "
            f"{cost.megabytes:8.0f} MB")  # fmt: skip


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


if __name__ == "__main__":
    main()
