"""Work in parts, on the workers of a Dask cluster: few at once, and each is done again if its worker dies."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from lite_core.errors import LiteError

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["Failure", "done_on_workers"]

Part = TypeVar("Part")
Result = TypeVar("Result")

#: Parts that the cluster has at once for each of its threads: the next one must not wait for the driver.
_PARTS_PER_THREAD = 2
#: Seconds after which the number of threads is asked for again: workers come and go.
_PERIOD = 2.0


class Failure(NamedTuple):
    """A part that could not be done.

    Attributes:
        message: why.
    """

    message: str


def done_on_workers(
    client: Client, do: Callable[[Part], Result], parts: Iterable[Part]
) -> Generator[tuple[Part, Result | Failure], None, None]:
    """Let the workers do parts, and yield each with its result as soon as there is one.

    A part whose worker dies is done again by another, at most as often as the scheduler's setting ``allowed-failures``
    says. So is a part that was done, but whose result had not arrived. If the iterator is closed, what is under way is
    cancelled.

    Args:
        client: the connection.
        do: does one part. It is pickled, and sent with each part.
        parts: the parts, of which only those are taken that the cluster can soon begin.

    Raises:
        LiteError: the scheduler ended.
    """
    from distributed import as_completed

    waiting = enumerate(parts)
    under_way: dict[str, tuple[Future, Part]] = {}
    completed = as_completed(loop=client.loop, with_results=True, raise_errors=False)
    run = uuid.uuid4().hex  # results of an earlier driver, whose parts the scheduler may still know, are not taken
    limit = _Limit(client)
    is_connected = True
    try:
        while True:
            for index, part in islice(waiting, max(0, limit.most() - len(under_way))):
                future = client.submit(do, part, key=f"lite-map-{run}-{index}", retries=0)
                under_way[future.key] = future, part
                completed.add(future)
            if not under_way:
                return
            for future, result in completed.next_batch():
                _, part = under_way.pop(future.key)
                if future.status not in {"finished", "error"}:
                    is_connected = False
                    raise LiteError(
                        "the scheduler ended, or cancelled the parts of this run. Type the same command again: what is "
                        "finished is kept"
                    )
                yield part, result if future.status == "finished" else Failure(_reason(future))
    finally:
        if is_connected:
            with suppress(Exception):  # what ended the run is the better message
                client.cancel([future for future, _ in under_way.values()], force=True)


def _reason(future: Future) -> str:
    from distributed import KilledWorker

    error = future.exception()
    if not isinstance(error, KilledWorker):
        return f"{type(error).__name__}: {error}"
    return (
        f"{error.allowed_failures + 1} workers died while doing it, the last one was {error.last_worker.address}; "
        "often their memory was full"
    )


class _Limit:
    """The number of parts that the cluster may have at once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._most, self._until = 0, 0.0

    def most(self) -> int:
        """Return the number, of the cluster as it was at most two seconds ago."""
        if monotonic() >= self._until:
            threads = sum(self._client.nthreads().values())
            self._most, self._until = _PARTS_PER_THREAD * max(1, threads), monotonic() + _PERIOD
        return self._most
