"""Page-locked main memory for transfers to and from a device that has its own memory."""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyopencl as cl

from lite_core.forking import new_lock
from lite_opencl.device.mapping import unmap_quietly

__all__ = ["PinnedPool"]

Array = np.ndarray[Any, Any]

#: Large enough for a transfer to cost more than its launch, and small enough to keep some blocks for every thread.
_BLOCK_BYTES = 2 << 20
_MAX_FREE_BLOCKS = 16


class _Block:
    """Page-locked memory that is mapped for its whole life."""

    def __init__(self, context: cl.Context, queue: cl.CommandQueue) -> None:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        self._buffer = cl.Buffer(context, flags, _BLOCK_BYTES)
        access: Any = cl.map_flags.READ | cl.map_flags.WRITE
        shape, bytes_ = (_BLOCK_BYTES,), np.dtype(np.uint8)
        self.array: Any = cl.enqueue_map_buffer(queue, self._buffer, access, 0, shape, bytes_, is_blocking=True)[0]
        # The queue is in order: transfers that may still be running after a failure end before the mapping does.
        weakref.finalize(self, unmap_quietly, self.array, queue, os.getpid())


class PinnedPool:
    """Blocks of page-locked memory of one device. Thread-safe.

    Devices read and write such memory directly; drivers copy other memory into page-locked memory first. A transfer is
    split into pieces that alternate between two blocks: while the device moves one, the processor copies the other.

    Args:
        context: the OpenCL context of the device.
        queue: the queue that runs the transfers.
    """

    def __init__(self, context: cl.Context, queue: cl.CommandQueue) -> None:
        self._context = context
        self._queue = queue
        self._lock = new_lock()
        self._free: list[_Block] = []

    def upload(self, source: Array, buffer: cl.Buffer, offset: int) -> None:
        """Copy bytes to an offset in a buffer; the copy is complete when this returns."""
        with self._blocks(source.nbytes) as blocks:
            moving: deque[cl.Event] = deque()
            for number, start in enumerate(range(0, source.nbytes, _BLOCK_BYTES)):
                if len(moving) == len(blocks):
                    moving.popleft().wait()
                piece = source[start : start + _BLOCK_BYTES]
                pinned = blocks[number % len(blocks)].array[: piece.nbytes]
                np.copyto(pinned, piece)
                moving.append(
                    cl.enqueue_copy(self._queue, buffer, pinned, dst_offset=offset + start, is_blocking=False)
                )
                self._queue.flush()
            cl.wait_for_events(list(moving))

    def download(self, buffer: cl.Buffer, offset: int, target: Array) -> None:
        """Copy bytes from an offset in a buffer into an array; the copy is complete when this returns."""
        with self._blocks(target.nbytes) as blocks:
            moving: deque[tuple[cl.Event, Array, int]] = deque()

            def finish_first() -> None:
                event, pinned, start = moving.popleft()
                event.wait()
                np.copyto(target[start : start + pinned.nbytes], pinned)

            for number, start in enumerate(range(0, target.nbytes, _BLOCK_BYTES)):
                if len(moving) == len(blocks):
                    finish_first()
                pinned = blocks[number % len(blocks)].array[: target.nbytes - start]
                event = cl.enqueue_copy(self._queue, pinned, buffer, src_offset=offset + start, is_blocking=False)
                moving.append((event, pinned, start))
                self._queue.flush()
            while moving:
                finish_first()

    @contextmanager
    def _blocks(self, size: int) -> Iterator[list[_Block]]:
        """Lend the one or two blocks that a transfer of ``size`` bytes uses.

        After a failure they are not used again, since the transfer may still be running.
        """
        wanted = 2 if size > _BLOCK_BYTES else 1
        with self._lock:
            blocks = [self._free.pop() for _ in range(min(wanted, len(self._free)))]
        while len(blocks) < wanted:
            blocks.append(_Block(self._context, self._queue))
        yield blocks
        with self._lock:
            self._free += blocks[: _MAX_FREE_BLOCKS - len(self._free)]
