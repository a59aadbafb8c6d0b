"""Scratch memory that is kept between runs."""

from __future__ import annotations

import threading
from typing import Any

from lite_core.backend import Buffer, HostMemory, Memory
from lite_core.ir import DType, TensorType

__all__ = ["ScratchBlock", "ScratchPool"]

_ALIGNMENT = 64


class ScratchBlock:
    """Scratch memory for one run at a time. ``buffer`` has as many bytes as the run asked for."""

    __slots__ = ("_storage", "buffer", "capacity")

    def __init__(self, memory: Memory, size: int) -> None:
        self.capacity = size
        self._storage = _allocate(memory, size)
        self.buffer = Buffer(_bytes(size), memory, self._storage)

    def fits(self, size: int) -> bool:
        """Whether ``buffer`` has, or now has, exactly this many bytes."""
        if self.buffer.type.shape == (size,):
            return True
        memory = self.buffer.memory
        if size > self.capacity or not hasattr(memory, "view"):
            return False
        self.buffer = Buffer(_bytes(size), memory, memory.view(self._storage, 0, _bytes(size)))
        return True


class ScratchPool:
    """Scratch memory of one session, handed from run to run.

    Memory that was just allocated costs a page fault for every 4 KiB that is touched: milliseconds for a large
    model. The pool keeps as many blocks as runs overlap, each as large as the largest run that had it; a block
    that is too small makes way for a larger one. May be used by many threads at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: dict[str, list[ScratchBlock]] = {}

    def take(self, memory: Memory, size: int) -> ScratchBlock:
        """Memory for one run: ``size`` bytes, at least 1, of undefined content; in main memory at a multiple of 64."""
        with self._lock:
            free = self._free.get(memory.space)
            block = free.pop() if free else None
        return block if block is not None and block.fits(size) else ScratchBlock(memory, size)

    def give_back(self, block: ScratchBlock) -> None:
        """Keep the memory of a run that is over for the next one."""
        with self._lock:
            self._free.setdefault(block.buffer.memory.space, []).append(block)


def _allocate(memory: Memory, size: int) -> Any:
    if not isinstance(memory, HostMemory):
        return memory.allocate(_bytes(size))
    block = memory.allocate(_bytes(size + _ALIGNMENT))
    start = -block.ctypes.data % _ALIGNMENT
    return block[start : start + size]


def _bytes(size: int) -> TensorType:
    return TensorType(DType.UINT8, (size,))
