"""Page-locked main memory, through which tensors go to a device that has a memory of its own, and come back."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyopencl as cl

__all__ = ["PinnedPool"]

Array = np.ndarray[Any, Any]

#: Enough for a transfer to cost more than its launch, and few enough to keep some for every thread.
_BLOCK_BYTES = 2 << 20
_MOST_KEPT = 16


class _Block:
    """Page-locked memory, mapped for as long as it is there."""

    def __init__(self, context: cl.Context, queue: cl.CommandQueue) -> None:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        self._buffer = cl.Buffer(context, flags, _BLOCK_BYTES)
        access: Any = cl.map_flags.READ | cl.map_flags.WRITE
        shape, bytes_ = (_BLOCK_BYTES,), np.dtype(np.uint8)
        self.array: Any = cl.enqueue_map_buffer(queue, self._buffer, access, 0, shape, bytes_, is_blocking=True)[0]


class PinnedPool:
    """Blocks of page-locked memory of one device. May be used by several threads at once.

    Devices read and write such memory themselves, while drivers first copy other memory to some. A transfer goes in
    pieces through two blocks: while the device moves one, the processor copies the other.

    Args:
        context: of the device.
        queue: runs the transfers.
    """

    def __init__(self, context: cl.Context, queue: cl.CommandQueue) -> None:
        self._context = context
        self._queue = queue
        self._lock = threading.Lock()
        self._free: list[_Block] = []

    def upload(self, source: Array, buffer: cl.Buffer, offset: int) -> None:
        """Copy bytes to a place in a buffer; done when this returns."""
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
        """Fill an array of bytes from a place in a buffer."""
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
        """As many blocks as a transfer of some bytes uses. After a failure they are not kept: it may still go on."""
        wanted = 2 if size > _BLOCK_BYTES else 1
        with self._lock:
            blocks = [self._free.pop() for _ in range(min(wanted, len(self._free)))]
        while len(blocks) < wanted:
            blocks.append(_Block(self._context, self._queue))
        yield blocks
        with self._lock:
            self._free += blocks[: _MOST_KEPT - len(self._free)]
