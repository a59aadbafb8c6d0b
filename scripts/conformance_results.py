"""Record reports of the conformance suite for the page of Lite's own backends.

    python scripts/conformance_results.py host.json x86.json opencl-1.json opencl-2.json arm.json

The reports are those of ``lite-conformance --json``; several of one backend, such as shards, are added up.
A backend that is given replaces what was recorded of it. ``make docs`` then writes the page.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lite_conformance.reports.record import Report, Status, read_report
from workspace import ROOT

__all__ = ["FILE", "Results", "add_up", "read"]

FILE = ROOT / "docs/results/conformance/backends.json"


@dataclass(frozen=True)
class Results:
    """The results of a backend.

    Attributes:
        backend: its name.
        device: the device that it ran on.
        day: the day of the first report.
        selection: the options that chose the cases; empty for the whole suite.
        levels: for each level, the number of cases by status.
    """

    backend: str
    device: str
    day: str
    selection: str
    levels: Mapping[str, Mapping[str, int]]


def add_up(reports: Sequence[Report]) -> list[Results]:
    """Return the results of each backend, in the order of the reports."""
    results = []
    for backend in dict.fromkeys(report.header["backend"] for report in reports):
        own = [report for report in reports if report.header["backend"] == backend]
        levels: dict[str, Counter[str]] = {}
        for record in (record for report in own for record in report.records):
            levels.setdefault(str(record.level), Counter())[str(record.status)] += 1
        device = ", ".join(dict.fromkeys(str(report.header["device_name"]) for report in own))
        day = min(str(report.header["started"]) for report in own)[:10]
        results.append(
            Results(
                backend,
                device,
                day,
                _selection(own),
                {level: dict(statuses) for level, statuses in sorted(levels.items())},
            )
        )
    return results


def _selection(reports: Sequence[Report]) -> str:
    """Return what was left out: the levels and samples, unless the reports are all shards of the whole suite."""
    chosen = []
    for report in reports:
        options = report.header["options"]
        shown = [f"{key} {options[key]}" for key in ("level", "cases", "ops", "dtypes", "sample") if key in options]
        chosen.append(", ".join(shown))
    shards = {str(report.header["options"].get("shard", "1/1")) for report in reports}
    counts = {int(shard.partition("/")[2]) for shard in shards}
    if shards != {f"{number + 1}/{count}" for count in counts for number in range(count)}:
        chosen.append(f"shards {', '.join(sorted(shards))}")
    return "; ".join(filter(None, dict.fromkeys(chosen)))


def read() -> list[Results]:
    """Return what was recorded; nothing if there is no file."""
    return [Results(**entry) for entry in json.loads(FILE.read_text())] if FILE.exists() else []


def main(arguments: Sequence[str] | None = None) -> int:
    """Record the reports on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", type=Path)
    found = {results.backend: results for results in read()}
    new = add_up([read_report(file) for file in parser.parse_args(arguments).reports])
    found |= {results.backend: results for results in new}
    FILE.write_text(json.dumps([asdict(results) for results in found.values()], indent=1) + "\n")
    for results in new:
        bad = sum(count for statuses in results.levels.values() for s, count in statuses.items() if Status(s).is_bad)
        total = sum(sum(statuses.values()) for statuses in results.levels.values())
        print(f"{results.backend}: {total} cases, {bad} bad; recorded in {FILE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
