"""Command queues, one for each run that is under way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyopencl as cl

from lite_opencl.device.errors import opencl_call

__all__ = ["QueuePool"]


class QueuePool:
    """Queues that run commands in the order in which they were enqueued. May be used by several threads at once.

    There are as many as runs overlap, so that a short run does not wait behind the long ones of other threads; a
    thread has none of its own.

    Args:
        context: of the device.
        device: its name, for messages.
    """

    def __init__(self, context: cl.Context, device: str) -> None:
        self._context = context
        self._device = device
        self._lock = threading.Lock()
        self._free: list[cl.CommandQueue] = []

    @contextmanager
    def take(self) -> Iterator[cl.CommandQueue]:
        """A queue for the body, which waits for all that it enqueues. After a failure the queue is not used again."""
        with self._lock:
            queue = self._free.pop() if self._free else None
        if queue is None:
            with opencl_call(self._device, "creating a command queue"):
                queue = cl.CommandQueue(self._context)
        yield queue
        with self._lock:
            self._free.append(queue)
