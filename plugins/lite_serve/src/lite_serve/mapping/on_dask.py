"""A job on the workers of a Dask cluster, on this machine or on many.

Only descriptions travel: a worker gets the job and a part, reads its rows from the file system that all share, writes
its file there, and returns the row of the manifest. The driver lists the parts, keeps the manifest and decides what is
finished, as for a run without Dask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from lite_core.errors import LiteError
from lite_serve.mapping.dask_cluster import connected
from lite_serve.mapping.dask_parts import Failure, done_on_workers
from lite_serve.mapping.dask_worker import Misfit, do_on_worker, release_on_worker
from lite_serve.mapping.job import Job
from lite_serve.mapping.manifest import Failed, Finished
from lite_serve.mapping.parts import Part

__all__ = ["finished_on_dask"]


def finished_on_dask(
    job: Job,
    parts: Sequence[Part],
    address: str,
    workers: int | None,
    note: Callable[[str], None],
    began: Callable[[int], object] = lambda threads: None,
) -> Iterator[Finished | Failed]:
    """Let the workers do parts, and yield the result of each as soon as there is one.

    At the end, and if the iterator is closed, the workers drop what they keep for the job. A part runs with one thread,
    unless the job says otherwise: a worker does as many parts at once as it has threads.

    Args:
        job: the job.
        parts: the parts to do.
        address: the address of a running scheduler; empty for a cluster of this machine, which ends with the iterator.
        workers: the number of workers to start on this machine; None for one per core.
        note: called with what the user should know.
        began: called once with the number of parts that the cluster can do at once.

    Raises:
        InputError: the address is none.
        BackendUnavailableError: there is no Dask, no such scheduler, or no worker that fits.
        LiteError: a worker cannot do any part, or the scheduler ended.
    """
    if not parts:
        return  # no cluster is needed to find that out
    job = replace(job, threads=job.threads or 1)
    with connected(address, workers, note) as client:
        began(sum(client.nthreads().values()))
        results = done_on_workers(client, partial(do_on_worker, job), parts)
        try:
            for part, result in results:
                if isinstance(result, Misfit):
                    raise LiteError(result.message)
                yield Failed(part, f"{part}: {result.message}") if isinstance(result, Failure) else result
        finally:
            results.close()
            with suppress(Exception):  # the scheduler may be gone
                client.run(release_on_worker, job, on_error="ignore")
