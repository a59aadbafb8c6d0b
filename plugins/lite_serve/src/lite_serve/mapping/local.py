"""The parts of a job on the cores of this machine: threads that share one session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from threading import Event

from lite_core.errors import LiteError
from lite_serve.mapping.job import Job
from lite_serve.mapping.manifest import Failed, Finished
from lite_serve.mapping.parts import Part
from lite_serve.mapping.work import Stopped, do_part

__all__ = ["finished_locally"]

#: Seconds between two looks at the progress.
_PERIOD = 0.25


def finished_locally(
    job: Job, parts: Iterable[Part], workers: int, show: Callable[[int], None] = lambda rows: None
) -> Iterator[Finished | Failed]:
    """Do parts in threads, and yield the result of each as soon as there is one.

    If the iterator is closed, or the caller is interrupted, the threads stop after the batch that they run, and remove
    what they have not finished.

    Args:
        job: the job.
        parts: the parts to do.
        workers: the number of threads.
        show: called a few times a second with the number of rows of this run so far.

    Raises:
        LiteError: the model cannot be loaded.
        OSError: a file cannot be written.
    """
    waiting = iter(parts)
    stop = Event()
    rows = _Counter()
    with ThreadPoolExecutor(workers, thread_name_prefix="lite-map") as pool:
        running: dict[Future[Finished | Failed], Part] = {}
        try:
            while True:
                for part in islice(waiting, workers - len(running)):
                    running[pool.submit(_done, job, part, rows, stop)] = part
                if not running:
                    return
                done, _ = wait(running, _PERIOD, FIRST_COMPLETED)
                show(rows.value)
                for future in done:
                    del running[future]
                    yield future.result()
        finally:
            stop.set()


class _Counter:
    """A number of rows that several threads add to; a lost update of what is only shown does no harm."""

    def __init__(self) -> None:
        self.value = 0

    def add(self, rows: int) -> None:
        self.value += rows


def _done(job: Job, part: Part, rows: _Counter, stop: Event) -> Finished | Failed:
    try:
        return do_part(job, part, progress=rows.add, is_stopped=stop.is_set)
    except (LiteError, MemoryError) as error:
        return Failed(part, str(error) or type(error).__name__)
    except Stopped:
        return Failed(part, "stopped")
