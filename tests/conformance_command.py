"""The conformance suite by its own command, as the tests of a backend call it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lite_conformance.reports.record import Record, Report, Status, read_report

__all__ = ["assert_every_letter", "assert_green"]

#: Failures that are shown in full.
_SHOWN = 20


def assert_green(backend: str, options: list[str], folder: Path) -> None:
    """Run a part of the suite in one process (pytest's own workers are what runs at the same time): all must be right.

    Args:
        backend: its name.
        options: which cases.
        folder: for the report.
    """
    written = folder / "report.json"
    command = [sys.executable, "-m", "lite_conformance", "--backend", backend, "--jobs", "1", *options]
    done = subprocess.run([*command, "--quiet", "--json", str(written)], capture_output=True, text=True)
    report = read_report(written) if written.exists() else None
    bad = [record for record in report.records if record.status.is_bad] if report else []
    if report is None or bad or done.returncode:
        said = f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        shown = "\n".join(map(_explain, bad[:_SHOWN])) or said
        pytest.fail(
            f"exit code {done.returncode}, {len(bad)} bad cases\n{shown}\nall: {shlex.join(command)}", pytrace=False
        )
    _check_reasons(report)


def _explain(record: Record) -> str:
    return f"{record.status}: {record.case}: {record.reason}\n    repeat: {record.repro}"


def _check_reasons(report: Report) -> None:
    """Something passed, no failure is announced, and whatever did not pass has a reason."""
    statuses = {record.status for record in report.records}
    assert Status.PASSED in statuses
    assert Status.XFAIL not in statuses, "the package announces a failure"
    assert not [record.case for record in report.records if record.status is not Status.PASSED and not record.reason]


def assert_every_letter(parts: list[str]) -> None:
    """The parts, ``A-C`` and so on, leave out no operator."""
    letters = [chr(n) for part in parts for n in range(ord(part[0]), ord(part[-1]) + 1)]
    assert sorted(letters) == [chr(n) for n in range(ord("A"), ord("Z") + 1)]
