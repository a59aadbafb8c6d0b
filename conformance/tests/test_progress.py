"""Progress in logs, where no terminal shows a bar."""

from __future__ import annotations

import io

from lite_conformance.cli.progress import ProgressLines
from lite_conformance.reports.record import Record, Status


def lines(total: int, seconds_per_case: float, *bad: int) -> list[str]:
    """Return the lines of a run whose cases all take the same time."""
    stream, now = io.StringIO(), 0.0
    progress = ProgressLines(stream, lambda: now)
    for number in range(1, total + 1):
        now += seconds_per_case
        status = Status.FAILED if number in bad else Status.PASSED
        progress(Record(f"case[{number}]", 2, "ops", status=status, reason="wrong"), total)
    return stream.getvalue().splitlines()


def test_short_run_prints_nothing() -> None:
    assert lines(100, 0.04) == []


def test_long_run_prints_a_line_for_each_twentieth() -> None:
    found = lines(1000, 0.5)
    assert len(found) == 19
    assert found[0] == "50 of 1,000 cases (5 %), 0 bad, 25 s elapsed, about 7 min 55 s remaining"
    assert found[-1] == "950 of 1,000 cases (95 %), 0 bad, 7 min 55 s elapsed, about 25 s remaining"


def test_slow_cases_print_a_line_each_half_minute() -> None:
    assert len(lines(10_000, 10.0)[:100]) == 100
    assert lines(10_000, 10.0)[0].startswith("3 of 10,000 cases (0 %)")


def test_fast_run_prints_at_most_every_five_seconds() -> None:
    found = lines(100_000, 0.0002)  # 20 s in all
    assert len(found) == 3


def test_bad_cases_are_named_at_once_and_counted() -> None:
    found = lines(100, 1.0, 3, 60)
    assert found[0] == "failed: case[3]: wrong"
    assert any(line.startswith("65 of 100 cases (65 %), 2 bad") for line in found)
