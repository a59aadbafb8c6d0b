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
from functools import cache

from lite_conformance.cases.case import Context, Settings
from lite_conformance.cases.plugins.importing import imported_after
from lite_conformance.drive.find_backend import require_backend
from lite_conformance.drive.subject import Subject
from lite_conformance.judge.outcome import Failure
from lite_conformance.reports.record import Record, Report, Status
from lite_conformance.run.collector import Collector, Progress
from lite_conformance.run.executor import execute
from lite_conformance.run.header import describe, expectations_for
from lite_conformance.run.journal import Journal
from lite_conformance.run.pool import Pool, Worker, WorkerDiedError
from lite_conformance.run.selection import EVERYTHING, Selection, parse_level, parse_shard
from lite_conformance.run.worker import failure_writer
from lite_core.backend import Backend
from lite_core.errors import InputError

__all__ = ["check_backend", "run_suite"]


def check_backend(
    backend: str | Backend,
    level: str = "L5",
    *,
    cases: Sequence[str] = (),
    ops: Sequence[str] = (),
    dtypes: Sequence[str] = (),
    exclude: Sequence[str] = (),
    shard: str = "1/1",
    maxfail: int | None = None,
    seed: int = 0,
    examples: int = 20,
    jobs: int = 1,
    timeout: float = 60.0,
    models: Sequence[str | os.PathLike[str]] = (),
    node_data: str | os.PathLike[str] | None = None,
    expectations: str | os.PathLike[str] | None = None,
    precision: str = "float32",
) -> list[Record]:
    """Run the suite on a backend.

    The arguments that select cases restrict each other: a case runs if all of them allow it.

    Args:
        backend: an installed backend's name (``"opencl"``, ``"opencl:1"``), ``"module:attribute"``,
            ``"file.py:attribute"``, or a backend object. A backend object runs in this process, which a crash or
            a hang of a case then affects.
        level: ``"L2"`` for levels 0 to 2, ``"L2-L3"`` for a range.
        cases: run only cases that match one of these patterns (``*`` and ``?``).
        ops: run only cases of operators that match one of these patterns: ``"Conv"``, ``"lite.*"``.
        dtypes: run only cases in these element types: ``"float16"`` or ``"f16"``.
        exclude: leave out cases that match one of these patterns.
        shard: ``"2/4"`` for the second of four parts of equal size, which together are the whole.
        maxfail: stop after this number of bad cases; None for no limit.
        seed: seed of all random numbers.
        examples: number of examples that hypothesis draws for an operator and element type.
        jobs: number of processes.
        timeout: time limit of a case in seconds.
        models: model files to run in level 4.
        node_data: folder or wheel with the ONNX project's node data.
        expectations: file to use instead of the backend's own ``conformance.toml``.
        precision: the level that float32 cases may be computed in: ``"bfloat16"``, ``"int8"``, ...

    Returns:
        One record for each case, in the order of the suite.

    Raises:
        BackendUnavailableError: the backend is not installed, or has no device here.
        InputError: an argument is wrong.
        PluginError: the name of a backend object is the name of an installed backend.
        KeyboardInterrupt: the run was interrupted.
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
        precision,
    )
    selection = Selection(
        parse_level(level), _texts(cases), _texts(ops), _texts(dtypes), _texts(exclude), None, parse_shard(shard)
    )
    if isinstance(backend, str):
        report = run_suite(settings, selection, jobs=jobs, timeout=timeout, maxfail=maxfail)
    else:
        report = _run_in_process(lambda: Subject.first(backend), settings, selection, maxfail=maxfail)
    if report.is_interrupted:
        raise KeyboardInterrupt
    return report.records


def run_suite(
    settings: Settings,
    selection: Selection = EVERYTHING,
    *,
    jobs: int = 1,
    timeout: float = 60.0,
    maxfail: int | None = None,
    repro: str | None = None,
    isolate: bool = True,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> Report:
    """Run the suite on the backend that the settings name.

    Args:
        settings: the backend and the settings of the run.
        selection: the cases to run.
        jobs: number of worker processes.
        timeout: time limit of a case in seconds.
        maxfail: stop after this number of bad cases; None for no limit.
        repro: folder for scripts that repeat failures.
        isolate: run cases in worker processes; without it, in this process, where a crash or hang affects all.
        journal: where records are kept while the run lasts, and where those of an interrupted run are found.
        progress: called with each record and the total number of cases, in this thread.

    Returns:
        The report. After an interrupt (KeyboardInterrupt), or when ``maxfail`` is reached, it has the records so far,
        and :attr:`Report.incomplete` says so.

    Raises:
        BackendUnavailableError: the backend is not installed, or has no device here.
        InputError: the settings or a pattern are wrong, or the journal is of another run.
        KeyboardInterrupt: the run was interrupted before the first case.
    """
    if not isinstance(jobs, int) or jobs < 1:
        raise InputError(f"jobs must be a whole number of at least 1, is {jobs!r}")
    if not 0 < timeout < math.inf:
        raise InputError(f"timeout must be a number of seconds above 0, is {timeout!r}")
    if repro is not None:
        repro = os.path.abspath(repro)  # a backend may change the working folder
    if not isolate:
        return _run_in_process(
            lambda: Subject.open(settings.backend), settings, selection, maxfail, repro, journal, progress
        )
    start = time.perf_counter()
    # The process starts while this one generates the cases.
    worker = Worker(settings, wait=False)
    try:
        await_ready = cache(worker.await_ready)
        with imported_after(await_ready):  # the worker imports the plugins first: that may end a process
            chosen = selection.choose(settings)
        await_ready()
    except WorkerDiedError as death:
        return _startup_failure(settings, death)
    except BaseException:
        worker.close()
        raise
    run = Collector(settings, selection, worker.header, worker.expectations, chosen, maxfail, journal, progress)
    with run.stops():
        Pool(settings, jobs, timeout, repro).run(run.to_run, worker, run.add)
    worker.close()
    return run.report(time.perf_counter() - start, jobs=jobs, timeout=timeout)


def _run_in_process(
    find: Callable[[], Subject],
    settings: Settings,
    selection: Selection,
    maxfail: int | None = None,
    repro: str | None = None,
    journal: Journal | None = None,
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
        chosen = selection.choose(settings)
        header = describe(subject, expectations)
        run = Collector(settings, selection, header, expectations, chosen, maxfail, journal, progress)
        with run.stops():
            for case in run.to_run:
                context = Context(subject, settings, expectations.allowance(case.name))
                run.add(case, execute(case, context, failure_writer(case, settings, repro)))
    return run.report(time.perf_counter() - start, isolated=False)


def _texts(patterns: Sequence[str]) -> tuple[str, ...]:
    return (patterns,) if isinstance(patterns, str) else tuple(patterns)


@contextmanager
def _without_forced_backend() -> Iterator[None]:
    """Unset LITE_BACKEND, which would redirect the sessions of the suite to another device."""
    forced = os.environ.pop("LITE_BACKEND", None)
    try:
        yield
    finally:
        if forced is not None:
            os.environ["LITE_BACKEND"] = forced


def _startup_failure(settings: Settings, death: WorkerDiedError) -> Report:
    """Return the report of a backend that fails or crashes the process when it is opened."""
    record = Record("probe[open]", 0, "probe", backend=settings.backend, seed=settings.seed, examples=1)
    record.status = death.status
    record.reason = f"while the backend was opened: {death}"
    record.details = death.details
    record.repro = shlex.join(["lite-conformance", "--backend", settings.backend, "--level", "L0"])
    system = f"{platform.system()} {platform.machine()}, Python {sys.version.split()[0]}"
    return Report({"backend": settings.backend, "device": "", "platform": system}, [record], 0.0)
