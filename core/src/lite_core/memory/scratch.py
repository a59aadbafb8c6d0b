"""Blocks of memory that are kept between runs."""

from __future__ import annotations

import threading
from typing import Any

from lite_core.backend import Buffer, Memory, ViewsMemory
from lite_core.ir import DType, TensorType
from lite_core.memory.host_memory import HostMemory

__all__ = ["ScratchBlock", "ScratchPool"]

_ALIGNMENT = 64


class ScratchBlock:
    """Memory for one run at a time, of undefined content; in main memory at a multiple of 64."""

    __slots__ = ("_buffer", "_storage", "_views", "capacity", "memory")

    def __init__(self, memory: Memory, size: int) -> None:
        self.memory = memory
        self._views = memory if isinstance(memory, ViewsMemory) else None
        self.capacity = size
        self._storage = _allocate(memory, size)
        self._buffer = Buffer(_bytes(size), memory, self._storage)

    def fits(self, size: int) -> bool:
        """Whether there are this many bytes, or exactly these where the memory gives no views."""
        return size == self.capacity or (size < self.capacity and self._views is not None)

    def at(self, offset: int, size: int) -> Buffer:
        """``size`` bytes of it, ``offset`` bytes from its start."""
        if self._buffer.type.shape == (size,) and not offset:
            return self._buffer
        buffer = self.tensor(offset, _bytes(size))
        if not offset:
            self._buffer = buffer  # the next run is likely to ask for the same
        return buffer

    def tensor(self, offset: int, type: TensorType) -> Buffer:
        """A tensor that lies ``offset`` bytes from the start."""
        assert self._views is not None
        return Buffer(type, self.memory, self._views.view(self._storage, offset, type))


class ScratchPool:
    """Blocks of one session, handed from run to run.

    Memory that was just allocated costs a page fault for every 4 KiB that is touched: milliseconds for a large
    model. The pool keeps as many blocks as runs overlap, each as large as the largest run that had it; a block
    that is too small makes way for a larger one. May be used by many threads at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: dict[str, list[ScratchBlock]] = {}

    def take(self, memory: Memory, size: int) -> ScratchBlock:
        """Memory for one run: at least ``size`` bytes."""
        with self._lock:
            free = self._free.get(memory.space)
            if free:
                index = next((i for i, block in enumerate(free) if block.fits(size)), -1)
                block = free.pop(index)
                if index >= 0:
                    return block
        return ScratchBlock(memory, size)

    def give_back(self, block: ScratchBlock) -> None:
        """Keep the memory of a run that is over for the next one."""
        with self._lock:
            self._free.setdefault(block.memory.space, []).append(block)


def _allocate(memory: Memory, size: int) -> Any:
    if not isinstance(memory, HostMemory):
        return memory.allocate(_bytes(size))
    block = memory.allocate(_bytes(size + _ALIGNMENT))
    start = -block.ctypes.data % _ALIGNMENT
    return block[start : start + size]


def _bytes(size: int) -> TensorType:
    return TensorType(DType.UINT8, (size,))
