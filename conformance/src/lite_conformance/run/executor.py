"""Running one case, and making the record of its result."""

from __future__ import annotations

import shlex
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.resources import files
from json import loads

from lite_conformance.cases.case import Case, Context, Settings
from lite_conformance.drive.subject import Subject
from lite_conformance.judge.outcome import Failure, Outcome, PackageCasesError, Refused, Replay, Skipped
from lite_conformance.reports.record import Record, Status
from lite_core.errors import BackendUnavailableError

__all__ = ["execute", "fill_record", "repro_command", "start_record"]


def execute(case: Case, context: Context, on_failure: Callable[[Replay], object] | None = None) -> Record:
    """Run a case in this process.

    Args:
        case: the case.
        context: its context.
        on_failure: called with the replay of a failure, if there is one.
    """
    record = start_record(case, context.settings, context.subject)
    fill_record(record, lambda: case.run(_with_precision(case, context)), on_failure)
    return record


def fill_record(
    record: Record, run: Callable[[], Outcome], on_failure: Callable[[Replay], object] | None = None
) -> None:
    """Call a function that runs a case, and write its outcome, or the exception, to the record.

    Args:
        record: the record of the case that has not been run.
        run: runs the case.
        on_failure: called with the replay of a failure, if there is one.
    """
    start = time.perf_counter()
    try:
        outcome = run()
    except Refused as refused:
        record.status, record.reason, record.details = Status.UNSUPPORTED, str(refused), refused.details
    except Skipped as skipped:
        record.status, record.reason = Status.SKIPPED, str(skipped)
    except BackendUnavailableError as error:
        record.status, record.reason = Status.SKIPPED, str(error)
    except Failure as failure:
        _fail(record, failure)
        if failure.replay is not None and on_failure is not None:
            _write_replay(record, failure.replay, on_failure)
    except PackageCasesError as error:
        record.status, record.reason, record.details = Status.ERROR, str(error), error.details
    except Exception as error:
        record.status = Status.ERROR
        record.reason = f"the suite failed with {type(error).__name__}: {error}"
        record.details = traceback.format_exc()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, which only a backend raises
        record.status = Status.FAILED
        record.reason = f"the backend raised {type(error).__name__}: {error}"
        record.details = traceback.format_exc()
    else:
        _pass(record, outcome)
    record.seconds = time.perf_counter() - start


def _with_precision(case: Case, context: Context) -> Context:
    """Ask the backend for the precision level of a case, and return the context with this level."""
    precision = case.precision(context.settings)
    context.subject.ask_for(precision)
    return replace(context, allowance=replace(context.allowance, precision=precision))


def start_record(case: Case, settings: Settings, subject: Subject | None = None) -> Record:
    """Return a record of a case that has not been run."""
    level = case.precision(settings)
    return Record(
        case=case.name,
        level=case.level,
        suite=case.suite,
        op=case.op,
        dtype=case.dtype,
        backend=subject.backend.name if subject else settings.backend,
        device=f"{subject.device.label}: {subject.device.name}" if subject else "",
        seed=settings.seed,
        weight=_weights().get(case.op, 0.0),
        precision=level.name if level.is_low else "",
        repro=repro_command(case.name, settings),
    )


def repro_command(case: str, settings: Settings) -> str:
    """Return the command that runs one case again."""
    command = ["lite-conformance", *(["plugin", settings.plugin] if settings.plugin else [])]
    command += ["--backend", settings.backend, "--case", case, "--seed", str(settings.seed)]
    for model in settings.models:
        if case.startswith("model["):
            command += ["--model", model]
    if settings.node_data and case.startswith("onnx["):
        command += ["--node-data", settings.node_data]
    if settings.examples != Settings(settings.backend).examples and (settings.plugin or case.endswith(",drawn]")):
        command += ["--examples", str(settings.examples)]
    if settings.expectations:
        command += ["--expectations", settings.expectations]
    if settings.precision != Settings(settings.backend).precision:
        command += ["--precision", settings.precision]
    return shlex.join(command)


def _write_replay(record: Record, replay: Replay, on_failure: Callable[[Replay], object]) -> None:
    """Write the script of a failure; an error of writing is added to the details and does not change the status."""
    try:
        on_failure(replay)
    except Exception as error:
        note = f"the script that repeats it could not be written: {type(error).__name__}: {error}"
        record.details = "\n".join(filter(None, [record.details, note]))


def _pass(record: Record, outcome: Outcome) -> None:
    record.tolerance, record.measured = outcome.tolerance, outcome.measured
    record.examples, record.reason = outcome.examples, outcome.note


def _fail(record: Record, failure: Failure) -> None:
    record.status, record.reason = Status.FAILED, failure.reason
    record.tolerance, record.measured = failure.tolerance, failure.measured
    record.examples = failure.examples
    cause = failure.__cause__
    lines = [failure.details] if failure.details else []
    if cause is not None:
        lines += traceback.format_exception(type(cause), cause, cause.__traceback__)
    record.details = "\n".join(lines)


@cache
def _weights() -> dict[str, float]:
    """Return each operator's share of the nodes of real models; the file has a note on its source."""
    weights: dict[str, float] = loads(files(__package__).joinpath("operator_weights.json").read_text(encoding="utf-8"))[
        "weights"
    ]
    return weights
