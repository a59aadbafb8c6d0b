"""The side of a Dask worker: parts whose errors are answers, and what shows that a worker does not fit at all."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any, NamedTuple

from lite_core.errors import InputError, LiteError
from lite_serve.mapping.job import Job
from lite_serve.mapping.manifest import NAME, Failed, Finished
from lite_serve.mapping.parts import Part

__all__ = ["Misfit", "dask_setup", "do_on_worker", "release_on_worker"]


class Misfit(NamedTuple):
    """The answer of a worker that cannot do any part of a job.

    Attributes:
        message: why; it names the worker.
    """

    message: str


def do_on_worker(job: Job, part: Part) -> Finished | Failed | Misfit:
    """Do a part on this worker, whose threads share the model.

    Errors are answers: Dask would log them, and they might not survive being pickled.
    """
    try:
        _require_files(job)
        from lite_serve.mapping.work import do_part, model_of  # imports pyarrow, which may be missing here

        model = model_of(job)
        _ = model.before, model.after  # imports the modules of the user, and compares them with the driver's
    except Exception as error:  # also what a module of the user raises when it is imported
        return Misfit(f"{_own_name()} cannot take part: {_told(error)}")
    try:
        return do_part(job, part)
    except LiteError as error:  # it names the part
        return Failed(part, str(error))
    except Exception as error:
        return Failed(part, f"{part}, on {_own_name()}: {_told(error)}")


def release_on_worker(job: Job) -> None:
    """Drop the model of a job."""
    from lite_serve.mapping.work import release

    release(job)


def dask_setup(worker: Any) -> None:
    """Leave Ctrl-C to the driver, which ends the workers that it started; Dask calls this when such a worker starts."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _own_name() -> str:
    from distributed import get_worker

    return f"the worker {get_worker().address}"


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, LiteError) else f"{type(error).__name__}: {error}"


def _require_files(job: Job) -> None:
    """Check that this machine sees the files of the job.

    Raises:
        InputError: it does not see one.
    """
    for kind, path in (
        ("model", Path(job.model)),
        ("input", Path(job.input)),
        ("output folder with this run's manifest,", Path(job.output, NAME)),
    ):
        if not path.exists():
            raise InputError(
                f"it does not see the {kind} {str(path)!r}. Model, input and output must be on a file system that all "
                "workers share, under the same path"
            )
