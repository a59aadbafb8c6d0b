"""Running must-pass cases on the machine of who verifies a submission."""

from __future__ import annotations

from collections.abc import Iterator

from lite_conformance.cases.case import Settings
from lite_conformance.reports.record import Record, Report, Status
from lite_conformance.run.collector import Progress
from lite_conformance.run.runner import run_suite
from lite_conformance.run.selection import Selection

__all__ = ["problems_when_repeated", "repeated", "run_on_host"]

_HOST = "host"


def run_on_host(names: frozenset[str], seed: int, jobs: int, progress: Progress | None = None) -> list[Record]:
    """Return the records of cases that the references compute."""
    return run_suite(Settings(_HOST, seed), Selection(only=names), jobs=jobs, progress=progress).records


def repeated(
    backend: str, names: frozenset[str], seed: int, count: int, jobs: int, progress: Progress | None = None
) -> Report:
    """Return the report of some of the cases, run again by the backend that is installed here.

    Raises:
        BackendUnavailableError: it is not installed, or has no device here.
    """
    return run_suite(Settings(backend, seed), Selection(only=names, sample=count), jobs=jobs, progress=progress)


def problems_when_repeated(report: Report) -> Iterator[str]:
    """Yield the cases that do not pass when they are repeated."""
    for record in report.records:
        if record.status is not Status.PASSED:
            yield f"{record.case} is {record.status} here: {record.reason or record.expectation}"
