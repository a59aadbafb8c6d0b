"""Benchmark of `lite serve`: models under load beside ONNX Runtime, and what the server itself costs.

    python benchmarks/serving.py [--short] [--only SECTION ...] [--record [FOLDER]]

- *throughput*: two models behind the same server, once run by Lite and once by ONNX Runtime (`--backend`), with and
  without batching. `hey` sends requests from 1 to 32 connections, in turns; of each, answers per second, and the
  latency. What counts is the throughput at which 99 of 100 requests are answered within 50 ms.
- *lines*: text lines of ten widths for PP-OCR's recogniser, by `locust`.
- *cost*: a model that does nothing, by JSON, binary tensors and gRPC.
- *idle*: the processor time of a server that nobody asks. *many*: its memory over 100,000 requests of each kind.

Everything is on this machine, on the loopback interface; the load generator takes its part of the processors. Every
part is bounded in requests or time. ``--record`` keeps the results of this processor in docs/results/serving, from
which `make docs` makes tables. Linux only; `make clients` installs `hey` and `locust`.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "models"))
from serving_load import hey, own_cost, under_load  # noqa: E402
from serving_load.recorded import KINDS, Entry, update  # noqa: E402
from serving_process import CLIENTS  # noqa: E402
from side_by_side import machine  # noqa: E402

RESULTS = ROOT / "docs/results/serving"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="one model, one round, fewer requests")
    parser.add_argument("--only", nargs="+", choices=KINDS, metavar="SECTION", help=f"only these: {', '.join(KINDS)}")
    parser.add_argument(
        "--record", nargs="?", type=Path, const=RESULTS, metavar="FOLDER", help="keep the results of this processor"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and record."""
    options = parse(arguments)
    if not hey.is_installed():
        sys.exit("hey is not on the PATH: make clients")
    about = {
        "measured": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "revision": machine.revision(),
        "load": round(os.getloadavg()[0], 1),
    }
    print(f"load of the machine before: {about['load']}")
    entries: dict[str, list[Any]] = {}
    with tempfile.TemporaryDirectory(prefix="lite-serving-") as folder:
        for section, measure in sections(Path(folder), options.short, about).items():
            if not options.only or section in options.only:
                entries[section] = list(measure())
    if options.record:
        file = options.record / f"{machine.own_file_stem()}.json"
        update(file, machine.describe("auto", ()), entries)
        print(f"recorded: {file}; `make docs` makes the tables of docs/serving.md")


def sections(folder: Path, short: bool, about: dict[str, Any]) -> dict[str, Callable[[], Sequence[Entry]]]:
    """Return what measures each section."""

    def throughput() -> list[Entry]:
        connections, rounds, seconds = ((2, 8), 1, 1.0) if short else ((1, 2, 4, 8, 16, 32), 3, 2.0)
        names = list(under_load.MODELS)[: 1 if short else None]
        return [
            entry
            for name in names
            for entry in under_load.throughput(name, folder, connections, rounds, seconds, about)
        ]

    def lines() -> list[Entry]:
        if not CLIENTS.exists():
            print("locust is not installed, text lines are left out: make clients")
            return []
        return [*under_load.text_lines(4, 3 if short else 10, about)]

    return {
        "throughput": throughput,
        "lines": lines,
        "cost": lambda: own_cost.costs(folder, 1000 if short else 5000, about),
        "idle": lambda: own_cost.idle(folder, 5.0 if short else 30.0, about),
        "many": lambda: own_cost.many_requests(folder, 2000 if short else 100_000, about),
    }


if __name__ == "__main__":
    main()
