"""The queue of a model: requests that wait for an instance, first come, first served."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lite_serve.models.batching import Key
from lite_serve.protocol.errors import DeadlineError, OverloadedError, ProtocolError, UnavailableModelError
from lite_serve.protocol.messages import Array

__all__ = ["Answer", "Pending", "RequestQueue", "timed_out"]


class Answer(NamedTuple):
    """The outputs of a request.

    Attributes:
        outputs: an array for each output of the model.
        rows: rows of the requests that shared the run.
        requests: how many requests shared it.
    """

    outputs: Mapping[str, Array]
    rows: int
    requests: int


class Pending:
    """A request that waits, or runs. Made in the event loop that awaits its ``future``.

    Args:
        inputs: its checked inputs, in the order of the model's.
        key: equal for requests that may share a batch; None if it must run alone.
        rows: its rows.
        timeout: seconds within which it must be answered, or None.
        id: identifies it in messages and in the log.
    """

    __slots__ = ("deadline", "future", "id", "inputs", "is_abandoned", "key", "loop", "put_at", "rows", "timeout")

    def __init__(self, inputs: Mapping[str, Array], key: Key | None, rows: int, timeout: float | None, id: str) -> None:
        self.inputs = inputs
        self.key = key
        self.rows = rows
        self.timeout = timeout
        self.id = id
        self.put_at = time.monotonic()
        self.deadline = None if timeout is None else self.put_at + timeout
        #: True if nobody waits for the answer any more.
        self.is_abandoned = False
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Answer] = self.loop.create_future()

    def answer(self, result: Answer | ProtocolError) -> None:
        """Set the answer, in the event loop."""
        if self.future.done():  # the client is gone, or its time was over
            return
        if isinstance(result, ProtocolError):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)


class RequestQueue:
    """A bounded queue between the event loop and the instances. Thread-safe.

    Args:
        most: requests that may wait.
        largest_batch: rows that may be taken at once.
        delay: seconds that a request may wait for others to share its batch with.
        choose: returns how many of some requests should share a run, given their key and the rows of each.
    """

    def __init__(
        self, most: int, largest_batch: int, delay: float, choose: Callable[[Key, Sequence[int]], int]
    ) -> None:
        self._most = most
        self._largest = largest_batch
        self._delay = delay
        self._choose = choose
        self._waiting: deque[Pending] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._idle = 0
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, pending: Pending) -> None:
        """Add a request.

        Raises:
            OverloadedError: the queue is full.
            UnavailableModelError: the queue is closed.
        """
        with self._changed:
            if self._is_closed:
                raise UnavailableModelError("the model is being unloaded")
            if len(self._waiting) >= self._most:
                raise OverloadedError(f"{self._most} requests wait for this model already; try again later")
            self._waiting.append(pending)
            self._changed.notify()

    def discard(self, pending: Pending) -> bool:
        """Take a request out that nobody waits for; return False if it is no longer in the queue."""
        pending.is_abandoned = True
        with self._changed:
            try:
                self._waiting.remove(pending)
            except ValueError:
                return False
            return True

    def take(self) -> list[Pending]:
        """Wait for a request, and return it with those that share its run; an empty list when there are no more.

        Blocks without using processor time.
        """
        with self._changed:
            while True:
                taken, left = self._ready()
                if taken:
                    for each in taken:
                        self._waiting.remove(each)
                    if self._waiting:  # the notification for these may have been spent on this thread
                        self._changed.notify()
                    return taken
                if not self._waiting and self._is_closed:
                    return []
                self._idle += 1
                try:
                    self._changed.wait(left)
                finally:
                    self._idle -= 1

    def close(self) -> None:
        """Accept no more requests. Those that wait are still taken."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _ready(self) -> tuple[list[Pending], float | None]:
        """Return the requests to take now; if there are none, the seconds until some are, or None."""
        soonest: float | None = None
        seen: set[Key] = set()
        for first in self._waiting:
            if first.key is None:
                return [first], None
            if first.key in seen:
                continue
            seen.add(first.key)
            fitting = self._fitting(first.key)
            left = first.put_at + self._delay - time.monotonic() if self._delay else 0.0
            if left <= 0 or self._is_closed or sum(each.rows for each in fitting) >= self._largest:
                return fitting[: self._choose(first.key, [each.rows for each in fitting])], None
            soonest = left if soonest is None else min(left, soonest)
        return [], soonest

    def _fitting(self, key: Key) -> list[Pending]:
        """Return the waiting requests with a key that one instance should take at most, in their order."""
        fitting = [each for each in self._waiting if each.key == key]
        rows = sum(each.rows for each in fitting)
        # Instances that are idle take their share: two halves at once are done before a whole.
        most = self._largest if self._delay else min(self._largest, -(-rows // (self._idle + 1)))
        total, count = 0, 0
        for each in fitting:
            total += each.rows
            if count and total > most:
                break
            count += 1
        return fitting[:count]


def timed_out(pending: Pending, where: str) -> DeadlineError:
    """Return the error for a request whose time is over."""
    return DeadlineError(
        f"the request was not answered within {pending.timeout or 0:g} seconds: its time was over {where}"
    )
