"""Record reports of the conformance suite for the page of Lite's own backends.

    python scripts/conformance_results.py host.json x86.json opencl-1.json opencl-2.json arm.json

The reports are those of ``lite-conformance --json`` and of ``lite-conformance profiles --json``; several of one backend
and profile, such as shards, are added up. A backend that is given replaces what was recorded of it, and a profile what
was recorded of this profile. ``make docs`` then writes the page.
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
from lite_conformance.run.must_pass import conformity
from lite_conformance.run.profiles import PROFILE_KEY, PROFILES, is_rounded
from workspace import ROOT

__all__ = ["FILE", "PROFILE_FILE", "ProfileResults", "Results", "add_up", "add_up_profiles", "read", "read_profiles"]

FILE = ROOT / "docs/results/conformance/backends.json"
PROFILE_FILE = ROOT / "docs/results/conformance/profiles.json"


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


@dataclass(frozen=True)
class ProfileResults:
    """The results of a backend in one profile of precision.

    Attributes:
        backend, device, day, selection: as in :class:`Results`.
        profile: the name of the profile.
        statuses: the number of cases by status.
        rounded: the number of passed cases whose results are right because the precision allows rounding.
        must_pass: the verdict by the must-pass list; empty if the profile has none, or not all cases were to run.
    """

    backend: str
    device: str
    day: str
    selection: str
    profile: str
    statuses: Mapping[str, int]
    rounded: int
    must_pass: str = ""


def add_up_profiles(reports: Sequence[Report]) -> list[ProfileResults]:
    """Return the results of each backend and profile, in the order of the reports."""
    results = []
    for backend, profile in dict.fromkeys((r.header["backend"], r.header[PROFILE_KEY]) for r in reports):
        own = [r for r in reports if (r.header["backend"], r.header[PROFILE_KEY]) == (backend, profile)]
        records = [record for report in own for record in report.records]
        results.append(
            ProfileResults(
                backend,
                _device(own),
                _day(own),
                _selection(own),
                profile,
                dict(Counter(str(record.status) for record in records)),
                sum(is_rounded(record) for record in records),
                _must_pass(profile, own),
            )
        )
    return results


def _must_pass(profile: str, reports: Sequence[Report]) -> str:
    required = PROFILES[profile].must_pass
    if required is None or _selection(reports):
        return ""
    found = conformity(required, [record for report in reports for record in report.records])
    return (
        f"conforms to v{required.version}"
        if found.conforms
        else f"{len(found.missing)} missing for v{required.version}"
    )


def add_up(reports: Sequence[Report]) -> list[Results]:
    """Return the results of each backend, in the order of the reports."""
    results = []
    for backend in dict.fromkeys(report.header["backend"] for report in reports):
        own = [report for report in reports if report.header["backend"] == backend]
        levels: dict[str, Counter[str]] = {}
        for record in (record for report in own for record in report.records):
            levels.setdefault(str(record.level), Counter())[str(record.status)] += 1
        results.append(
            Results(
                backend,
                _device(own),
                _day(own),
                _selection(own),
                {level: dict(statuses) for level, statuses in sorted(levels.items())},
            )
        )
    return results


def _device(reports: Sequence[Report]) -> str:
    return ", ".join(dict.fromkeys(str(report.header["device_name"]) for report in reports))


def _day(reports: Sequence[Report]) -> str:
    return min(str(report.header["started"]) for report in reports)[:10]


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


def read_profiles() -> list[ProfileResults]:
    """Return what was recorded of profiles; nothing if there is no file."""
    return [ProfileResults(**entry) for entry in json.loads(PROFILE_FILE.read_text())] if PROFILE_FILE.exists() else []


def main(arguments: Sequence[str] | None = None) -> int:
    """Record the reports on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", type=Path)
    reports = [read_report(file) for file in parser.parse_args(arguments).reports]
    _record_backends(add_up([report for report in reports if PROFILE_KEY not in report.header]))
    _record_profiles(add_up_profiles([report for report in reports if PROFILE_KEY in report.header]))
    return 0


def _record_backends(new: Sequence[Results]) -> None:
    found = {results.backend: results for results in [*read(), *new]}
    FILE.write_text(json.dumps([asdict(results) for results in found.values()], indent=1) + "\n")
    for results in new:
        bad = sum(count for statuses in results.levels.values() for s, count in statuses.items() if Status(s).is_bad)
        total = sum(sum(statuses.values()) for statuses in results.levels.values())
        print(f"{results.backend}: {total} cases, {bad} bad; recorded in {FILE.relative_to(ROOT)}")


def _record_profiles(new: Sequence[ProfileResults]) -> None:
    if not new:
        return
    found = {(results.backend, results.profile): results for results in [*read_profiles(), *new]}
    backends = list(dict.fromkeys(backend for backend, _ in found))
    ordered = sorted(found.values(), key=lambda r: (backends.index(r.backend), list(PROFILES).index(r.profile)))
    PROFILE_FILE.write_text(json.dumps([asdict(results) for results in ordered], indent=1) + "\n")
    for results in new:
        bad = sum(count for status, count in results.statuses.items() if Status(status).is_bad)
        total = sum(results.statuses.values())
        print(f"{results.backend} {results.profile}: {total} cases, {bad} bad; recorded in {PROFILE_FILE.name}")


if __name__ == "__main__":
    sys.exit(main())
