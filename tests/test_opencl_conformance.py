"""The conformance suite on the backend opencl, by its own command: all green, and a reason for all it does not run."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lite_conformance.case import Settings
from lite_conformance.catalogue import all_cases
from lite_conformance.record import Record, Report, Status, read_report
from lite_conformance.tensors import short_name
from lite_core.backend import Unavailable
from lite_core.ir import DType
from lite_core.plugins import available_backends, default_host

#: First letters of the operators of level 2, in parts that take about the same time on PoCL.
PARTS = ["A-B", "C-C", "D-F", "G-K", "L-M", "N-Q", "R-R", "S-Z"]
#: Kernels are compiled for each element type, a quarter of a second each on PoCL, and half an hour for all: cases of
#: other types than these are left to ``lite-conformance --backend opencl``, or to LITE_TEST_ALL_TYPES=1.
TYPES = {"f32", "i64", "bool"}
OTHER_TYPES = {short_name(dtype) for dtype in DType} - TYPES
ALL_TYPES = os.environ.get("LITE_TEST_ALL_TYPES") == "1"
#: Failures that are shown in full.
SHOWN = 20


@pytest.fixture(autouse=True)
def device() -> None:
    """Skips what needs a device where there is none."""
    found = available_backends(default_host())["opencl"].probe()
    if isinstance(found, Unavailable):
        pytest.skip(f"{found.reason}. {found.remedy}")


def is_chosen(case: str) -> bool:
    """Whether a case is run here: ``Relu[f32,5x7]``, ``graph[partitions-diamond]``, and not ``Relu[u16,5x7]``."""
    family, _, rest = case.partition("[")
    kind = rest.rstrip("]").partition(",")[0]
    return ALL_TYPES or (kind not in OTHER_TYPES and family != "onnx")


def cases_of(first_level: int, last_level: int, letters: str = "A-Z") -> list[str]:
    """The options for the cases of some levels, of operators and such whose names have these first letters."""
    first, last = letters.split("-")
    every = [c.name for c in all_cases(Settings("opencl")) if first_level <= c.level <= last_level]
    chosen = {name.partition(",")[0] for name in every if first <= name[0].upper() <= last and is_chosen(name)}
    level = f"--level=L{first_level}-L{last_level}"
    return [level, *(f"--case={start.rstrip(']')}*" for start in sorted(chosen))]


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


@pytest.mark.parametrize(("first", "last"), [(0, 1), (3, 3), (4, 5)])
def test_a_level(first: int, last: int, tmp_path: Path) -> None:
    check(run_suite(cases_of(first, last), tmp_path))


@pytest.mark.parametrize("part", PARTS)
def test_operators(part: str, tmp_path: Path) -> None:
    check(run_suite(cases_of(2, 2, part), tmp_path))


def test_no_operator_is_left_out() -> None:
    letters = [chr(n) for part in PARTS for n in range(ord(part[0]), ord(part[-1]) + 1)]
    assert sorted(letters) == [chr(n) for n in range(ord("A"), ord("Z") + 1)]
