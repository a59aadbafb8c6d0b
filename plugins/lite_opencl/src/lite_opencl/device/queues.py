"""Command queues, one for each concurrent run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyopencl as cl

from lite_core.forking import new_lock
from lite_opencl.device.errors import opencl_call

__all__ = ["QueuePool"]


class QueuePool:
    """In-order command queues. Thread-safe.

    The pool has as many queues as runs have overlapped, so that a short run does not wait behind the long ones of
    other threads. Queues do not belong to threads.

    Args:
        context: the OpenCL context of the device.
        device: the name of the device, for messages.
    """

    def __init__(self, context: cl.Context, device: str) -> None:
        self._context = context
        self._device = device
        self._lock = new_lock()
        self._free: list[cl.CommandQueue] = []

    @contextmanager
    def take(self) -> Iterator[cl.CommandQueue]:
        """Lend a queue to the body, which must wait for its commands. After a failure the queue is not used again."""
        with self._lock:
            queue = self._free.pop() if self._free else None
        if queue is None:
            with opencl_call(self._device, "creating a command queue"):
                queue = cl.CommandQueue(self._context)
        yield queue
        with self._lock:
            self._free.append(queue)
