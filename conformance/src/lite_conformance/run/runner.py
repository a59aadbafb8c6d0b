"""Running the whole suite on a backend."""

from __future__ import annotations

import math
import os
import platform
import shlex
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from typing import Any

from lite_conformance.cases.case import Case, Context, Settings
from lite_conformance.cases.catalogue import all_cases
from lite_conformance.drive.find_backend import require_backend
from lite_conformance.drive.subject import Subject
from lite_conformance.judge.outcome import Failure
from lite_conformance.reports.record import Record, Report, Status
from lite_conformance.run.executor import execute, start_record
from lite_conformance.run.expectations import Expectations
from lite_conformance.run.pool import Pool, Worker, WorkerDiedError
from lite_conformance.run.selection import apply_expectation, parse_level, select, unmatched_entries
from lite_conformance.run.worker import describe, expectations_for, failure_writer
from lite_core.backend import Backend
from lite_core.errors import InputError

__all__ = ["check_backend", "run_suite"]

#: Called with the record of a case that has ended, and the total number of cases.
Progress = Callable[[Record, int], None]


def check_backend(
    backend: str | Backend,
    level: str = "L5",
    *,
    cases: Sequence[str] = (),
    seed: int = 0,
    examples: int = 20,
    jobs: int = 1,
    timeout: float = 60.0,
    models: Sequence[str | os.PathLike[str]] = (),
    node_data: str | os.PathLike[str] | None = None,
    expectations: str | os.PathLike[str] | None = None,
) -> list[Record]:
    """Run the suite on a backend.

    Args:
        backend: an installed backend's name (``"opencl"``, ``"opencl:1"``), ``"module:attribute"``,
            ``"file.py:attribute"``, or a backend object. A backend object runs in this process, which a crash or
            a hang of a case then affects.
        level: ``"L2"`` for levels 0 to 2, ``"L2-L3"`` for a range.
        cases: run only cases that match one of these patterns (``*`` and ``?``), of any level.
        seed: seed of all random numbers.
        examples: number of examples that hypothesis draws for an operator and element type.
        jobs: number of processes.
        timeout: time limit of a case in seconds.
        models: model files to run in level 4.
        node_data: folder or wheel with the ONNX project's node data.
        expectations: file to use instead of the backend's own ``conformance.toml``.

    Returns:
        One record for each case, in the order of the suite.

    Raises:
        BackendUnavailableError: the backend is not installed, or has no device here.
        InputError: an argument is wrong.
        PluginError: the name of a backend object is the name of an installed backend.
    """
    if not isinstance(backend, str):
        require_backend(backend, repr(backend))
    settings = Settings(
        backend if isinstance(backend, str) else backend.name,
        seed,
        examples,
        tuple(os.fspath(model) for model in models),
        None if node_data is None else os.fspath(node_data),
        None if expectations is None else os.fspath(expectations),
    )
    levels = parse_level(level)
    patterns = (cases,) if isinstance(cases, str) else tuple(cases)
    if isinstance(backend, str):
        return run_suite(settings, levels, patterns, jobs=jobs, timeout=timeout).records
    return _run_in_process(lambda: Subject.first(backend), settings, levels, patterns).records


def run_suite(
    settings: Settings,
    levels: range,
    patterns: Sequence[str] = (),
    *,
    jobs: int = 1,
    timeout: float = 60.0,
    repro: str | None = None,
    isolate: bool = True,
    progress: Progress | None = None,
) -> Report:
    """Run the suite on the backend that the settings name.

    Args:
        settings: the backend and the settings of the run.
        levels: the levels to run.
        patterns: run only cases that match one of these, of any level.
        jobs: number of worker processes.
        timeout: time limit of a case in seconds.
        repro: folder for scripts that repeat failures.
        isolate: run cases in worker processes; otherwise in this process, for debuggers.
        progress: called with each new record and the total number of cases.

    Raises:
        BackendUnavailableError: the backend is not installed, or has no device here.
        InputError: the settings or a pattern are wrong.
    """
    if not isinstance(jobs, int) or jobs < 1:
        raise InputError(f"jobs must be a whole number of at least 1, is {jobs!r}")
    if not 0 < timeout < math.inf:
        raise InputError(f"timeout must be a number of seconds above 0, is {timeout!r}")
    if repro is not None:
        repro = os.path.abspath(repro)  # a backend may change the working folder
    if not isolate:
        return _run_in_process(lambda: Subject.open(settings.backend), settings, levels, patterns, repro, progress)
    start = time.perf_counter()
    every = list(all_cases(settings))
    chosen = select(every, levels, patterns)
    try:
        worker = Worker(settings)
    except WorkerDiedError as death:
        return _startup_failure(settings, death)
    run = _Collector(settings, worker.expectations, every, chosen, progress)
    Pool(settings, jobs, timeout, repro).run(run.to_run, worker, run.add)
    return run.report(worker.header, time.perf_counter() - start, cases=list(patterns), jobs=jobs, timeout=timeout)


def _run_in_process(
    find: Callable[[], Subject],
    settings: Settings,
    levels: range,
    patterns: Sequence[str],
    repro: str | None = None,
    progress: Progress | None = None,
) -> Report:
    start = time.perf_counter()
    with _without_forced_backend():
        try:
            subject = find()
        except Failure as failure:
            details = "".join(traceback.format_exception(failure))
            return _startup_failure(settings, WorkerDiedError(failure.reason, Status.FAILED, details))
        expectations = expectations_for(settings, subject)
        every = list(all_cases(settings))
        chosen = select(every, levels, patterns)
        run = _Collector(settings, expectations, every, chosen, progress)
        for case in run.to_run:
            context = Context(subject, settings, expectations.allowance(case.name))
            run.add(case, execute(case, context, failure_writer(case, settings, repro)))
        header = describe(subject, expectations)
    return run.report(header, time.perf_counter() - start, cases=list(patterns), isolated=False)


@contextmanager
def _without_forced_backend() -> Iterator[None]:
    """Unset LITE_BACKEND, which would redirect the sessions of the suite to another device."""
    forced = os.environ.pop("LITE_BACKEND", None)
    try:
        yield
    finally:
        if forced is not None:
            os.environ["LITE_BACKEND"] = forced


class _Collector:
    """Collector of records in the order of the suite, which applies the expectations of the backend's package."""

    def __init__(
        self,
        settings: Settings,
        expectations: Expectations,
        every: Sequence[Case],
        chosen: Sequence[Case],
        progress: Progress | None,
    ) -> None:
        self._settings = settings
        self._expectations = expectations
        self._progress = progress
        self._order = [case.name for case in chosen]
        self._records: dict[str, Record] = {}
        self._errors = unmatched_entries(every, expectations, settings)
        self._total = len(chosen)
        self.to_run: list[Case] = []
        for case in chosen:
            entry = expectations.find("unsupported", case.name)
            if entry is None:
                self.to_run.append(case)
                continue
            record = start_record(case, settings)
            record.status, record.reason, record.expectation = Status.UNSUPPORTED, entry.reason, entry.reason
            self._store(record)

    def add(self, case: Case, record: Record) -> None:
        apply_expectation(record, self._expectations)
        self._store(record)

    def _store(self, record: Record) -> None:
        self._records[record.case] = record
        if self._progress is not None:
            self._progress(record, self._total)

    def report(self, header: dict[str, Any], seconds: float, **options: Any) -> Report:
        records = [*self._errors, *(self._records[name] for name in self._order if name in self._records)]
        for record in records:
            record.backend = header["backend"]
            record.device = record.device or f"{header['device']}: {header['device_name']}"
        started = datetime.now(timezone.utc) - timedelta(seconds=seconds)
        settings = self._settings
        options = {"seed": settings.seed, "examples": settings.examples, "models": list(settings.models), **options}
        options = {k: v for k, v in options.items() if v != []}
        return Report(
            {**header, "options": options, "started": started.isoformat(timespec="seconds")}, records, seconds
        )


def _startup_failure(settings: Settings, death: WorkerDiedError) -> Report:
    """Return the report of a backend that fails or crashes the process when it is opened."""
    record = Record("probe[open]", 0, "probe", backend=settings.backend, seed=settings.seed, examples=1)
    record.status = death.status
    record.reason = f"while the backend was opened: {death}"
    record.details = death.details
    record.repro = shlex.join(["lite-conformance", "--backend", settings.backend, "--level", "L0"])
    system = f"{platform.system()} {platform.machine()}, Python {sys.version.split()[0]}"
    return Report({"backend": settings.backend, "device": "", "platform": system}, [record], 0.0)
