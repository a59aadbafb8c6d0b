"""The suite as pytest tests, with one line in a backend's test file::

    from lite_conformance.pytest_plugin import conformance_tests

    test_conformance = conformance_tests("toy", level="L2")

Each case is a test: ``test_conformance[Relu[f32,2x3]]``. Cases run in a worker process, so a kernel that crashes its
process is a failed test, and the other tests still run.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lite_conformance.cases.case import Case, Settings
from lite_conformance.reports.record import Record, Status
from lite_conformance.run.declared import apply_expectation, unmatched_entries
from lite_conformance.run.expectations import Expectations
from lite_conformance.run.pool import Pool, Worker, WorkerDiedError
from lite_conformance.run.selection import ALL_LEVELS, Selection, parse_level, parse_shard
from lite_core.errors import BackendUnavailableError, InputError

__all__ = ["conformance_tests"]


def conformance_tests(
    backend: str,
    level: str | None = None,
    *,
    cases: Sequence[str] = (),
    ops: Sequence[str] = (),
    dtypes: Sequence[str] = (),
    exclude: Sequence[str] = (),
    shard: str = "1/1",
    seed: int = 0,
    examples: int = 20,
    timeout: float = 60.0,
    models: Sequence[str] = (),
    expectations: str | Path | None = None,
    precision: str = "float32",
) -> Callable[..., None]:
    """Return a test function, parametrized with one test for each case.

    If the backend has no device, or answers No, the test is skipped with the reason. An ``xfail`` of the backend's
    package becomes pytest's; a test that passes although it is declared ``xfail`` fails. The arguments that select
    cases restrict each other.

    Args:
        backend: an installed backend's name, ``"module:attribute"`` or ``"file.py:attribute"``.
        level: ``"L2"`` for levels 0 to 2, ``"L2-L3"`` for a range; when omitted, L2, or with ``cases`` all levels.
        cases: run only cases that match one of these patterns.
        ops: run only cases of operators that match one of these patterns.
        dtypes: run only cases in these element types.
        exclude: leave out cases that match one of these patterns.
        shard: ``"2/4"`` for the second of four parts.
        seed: seed of all random numbers.
        examples: number of examples that hypothesis draws for an operator and element type.
        timeout: time limit of a case in seconds.
        models: model files to run in level 4.
        expectations: file to use instead of the backend's own ``conformance.toml``.
        precision: the level that float32 cases may be computed in: ``"bfloat16"``, ``"int8"``, ...
    """
    own = None if expectations is None else str(expectations)
    settings = Settings(backend, seed, examples, tuple(models), expectations=own, precision=precision)
    levels = parse_level(level or "L2") if level or not cases else ALL_LEVELS
    chosen = Selection(levels, cases, ops, dtypes, exclude, None, parse_shard(shard)).choose(settings)
    session = _Session(settings, timeout)

    @pytest.mark.parametrize("case", [None, *chosen], ids=lambda c: "expectations" if c is None else c.name)
    def test_conformance(case: Case | None) -> None:
        record = session.check_entries() if case is None else session.run(case)
        if record.status in (Status.UNSUPPORTED, Status.SKIPPED):
            pytest.skip(record.reason)
        if record.status is Status.XFAIL:
            pytest.xfail(record.expectation)
        if record.status.is_bad:
            pytest.fail(_failure_text(record), pytrace=False)

    return test_conformance


class _Session:
    """One worker process, started with the first test and replaced when a test crashes it."""

    def __init__(self, settings: Settings, timeout: float) -> None:
        self._settings = settings
        self._pool = Pool(settings, timeout=timeout)
        self._worker: Worker | None = None
        self._expectations: Expectations | None = None
        self._unavailable = ""
        self._broken = ""

    def run(self, case: Case) -> Record:
        self._start()
        assert self._expectations is not None
        declared = self._expectations.find("unsupported", case.name)
        if declared is not None:
            pytest.skip(declared.reason)
        self._worker, record = self._pool.run_one(case, self._worker)
        apply_expectation(record, self._expectations)
        return record

    def check_entries(self) -> Record:
        """Return a record that fails if an entry of the backend's file matches no case."""
        self._start()
        assert self._expectations is not None
        wrong = unmatched_entries(self._expectations, self._settings)
        if not wrong:
            return Record("expectations", 0, "expectations")
        wrong[0].reason = "\n".join(record.reason for record in wrong)
        return wrong[0]

    def _start(self) -> None:
        if self._unavailable:
            pytest.skip(self._unavailable)
        if self._broken:
            pytest.fail(self._broken, pytrace=False)
        if self._worker is None:
            try:
                self._worker = Worker(self._settings)
            except BackendUnavailableError as error:
                # A backend that was available before has lost its device: skipping would hide the loss.
                if self._expectations is not None:
                    pytest.fail(str(error), pytrace=False)
                self._unavailable = str(error)
                pytest.skip(self._unavailable)
            except WorkerDiedError as death:
                self._broken = f"{death.status}: while the backend was opened: {death}\n{death.details}"
                pytest.fail(self._broken, pytrace=False)
            except InputError as error:
                self._broken = str(error)
                pytest.fail(self._broken, pytrace=False)
            if self._expectations is None:
                atexit.register(self._close)
            self._expectations = self._worker.expectations

    def _close(self) -> None:
        if self._worker is not None:
            self._worker.close()


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
    return "\n".join([*lines, f"repeat: {record.repro}"])
