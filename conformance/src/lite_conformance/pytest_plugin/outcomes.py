"""The status of a case as an outcome of pytest."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lite_conformance.reports.record import Record, Status

__all__ = ["raise_outcome"]


def raise_outcome(records: Sequence[Record]) -> None:
    """Skip, fail or xfail the running test, as its records say; return if they passed."""
    for record in records:
        if record.status in (Status.UNSUPPORTED, Status.SKIPPED):
            pytest.skip(record.reason)
        if record.status is Status.XFAIL:
            pytest.xfail(record.expectation)
    bad = [record for record in records if record.status.is_bad]
    if bad:
        pytest.fail("\n".join(map(_failure_text, bad)), pytrace=False)


def _failure_text(record: Record) -> str:
    lines = [f"{record.status}: {record.case}: {record.reason}"]
    if record.tolerance is not None and record.measured is not None:
        tolerance, measured = record.tolerance, record.measured
        lines.append(
            f"allowed rtol {tolerance.rtol:.3g}, atol {tolerance.atol:.3g}; required rtol "
            f"{measured.required_rtol:.3g} or atol {measured.required_atol:.3g}"
        )
    if record.details:
        lines.append(record.details)
    return "\n".join([*lines, *([f"repeat: {record.repro}"] if record.repro else [])])
