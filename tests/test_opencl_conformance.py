"""The conformance suite on the backend opencl, by its own command: all green, and a reason for all it does not run."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from lite_conformance.case import Settings
from lite_conformance.catalogue import all_cases
from lite_conformance.record import Record, Report, Status, read_report
from lite_core.backend import Unavailable
from lite_core.plugins import available_backends, default_host

#: First letters of the operators of level 2, in parts that take about the same time on PoCL.
PARTS = ["A-B", "C-C", "D-F", "G-K", "L-M", "N-Q", "R-R", "S-Z"]
#: Element types of level 2 that are run. Kernels are compiled for each type, a quarter of a second each: all thirteen
#: types take half an hour, by ``lite-conformance --backend opencl``. With LITE_TEST_ALL_TYPES=1 that is done here, too.
TYPES = ["*"] if os.environ.get("LITE_TEST_ALL_TYPES") == "1" else ["f32", "i64", "bool"]
#: Failures that are shown in full.
SHOWN = 20


@pytest.fixture(autouse=True)
def device() -> None:
    """Skips what needs a device where there is none."""
    found = available_backends(default_host())["opencl"].probe()
    if isinstance(found, Unavailable):
        pytest.skip(f"{found.reason}. {found.remedy}")


def of_operators(part: str) -> list[str]:
    """The options that choose the cases of level 2 whose operators have these first letters."""
    first, last = part.split("-")
    cases = [case.name for case in all_cases(Settings("opencl")) if case.level == 2]
    chosen = {name.partition(",")[0] for name in cases if first <= name[0].upper() <= last}
    return [f"--case={start}*" for start in sorted(chosen) if any(fnmatch(start.partition("[")[2], t) for t in TYPES)]


def run_suite(options: list[str], folder: Path) -> Report:
    """The report of one process: pytest's own workers are what runs at the same time."""
    written = folder / "report.json"
    command = [sys.executable, "-m", "lite_conformance", "--backend", "opencl", "--jobs", "1", *options]
    done = subprocess.run([*command, "--quiet", "--json", str(written)], capture_output=True, text=True)
    report = read_report(written) if written.exists() else None
    bad = [record for record in report.records if record.status.is_bad] if report else []
    if report is None or bad or done.returncode:
        said = f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        shown = "\n".join(map(explain, bad[:SHOWN])) or said
        pytest.fail(
            f"exit code {done.returncode}, {len(bad)} bad cases\n{shown}\nall: {shlex.join(command)}", pytrace=False
        )
    return report


def explain(record: Record) -> str:
    return f"{record.status}: {record.case}: {record.reason}\n    repeat: {record.repro}"


def check(report: Report) -> None:
    statuses = {record.status for record in report.records}
    assert Status.PASSED in statuses
    assert Status.XFAIL not in statuses, "the package announces a failure"
    assert not [record.case for record in report.records if record.status is not Status.PASSED and not record.reason]


@pytest.mark.parametrize("levels", ["L0-L1", "L3-L3", "L4-L5"])
def test_a_level(levels: str, tmp_path: Path) -> None:
    check(run_suite(["--level", levels], tmp_path))


@pytest.mark.parametrize("part", PARTS)
def test_operators(part: str, tmp_path: Path) -> None:
    check(run_suite(of_operators(part), tmp_path))


def test_no_operator_is_left_out() -> None:
    letters = [chr(n) for part in PARTS for n in range(ord(part[0]), ord(part[-1]) + 1)]
    assert sorted(letters) == [chr(n) for n in range(ord("A"), ord("Z") + 1)]
