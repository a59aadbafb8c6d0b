"""Memory blocks that are reused from run to run."""

from __future__ import annotations

from lite_core.backend import Buffer, Memory, ViewsMemory
from lite_core.forking import new_lock
from lite_core.ir import DType, TensorType
from lite_core.memory.host_memory import HostMemory

__all__ = ["ScratchBlock", "ScratchPool"]


class ScratchBlock:
    """A block of memory for one run at a time, with undefined content; in main memory aligned to 64 bytes."""

    __slots__ = ("_buffer", "_storage", "_views", "capacity", "memory")

    def __init__(self, memory: Memory, size: int) -> None:
        self.memory = memory
        self._views = memory if isinstance(memory, ViewsMemory) else None
        self.capacity = size
        self._storage = memory.aligned_bytes(size) if isinstance(memory, HostMemory) else memory.allocate(_bytes(size))
        self._buffer = Buffer(_bytes(size), memory, self._storage)

    def fits(self, size: int) -> bool:
        """Return True if the block has at least ``size`` bytes; exactly ``size`` if the memory has no views."""
        return size == self.capacity or (size < self.capacity and self._views is not None)

    def at(self, offset: int, size: int) -> Buffer:
        """Return ``size`` bytes of the block, starting at ``offset``."""
        if self._buffer.type.shape == (size,) and not offset:
            return self._buffer
        buffer = self.tensor(offset, _bytes(size))
        if not offset:
            self._buffer = buffer  # the next run is likely to request the same view
        return buffer

    def tensor(self, offset: int, type: TensorType) -> Buffer:
        """Return a tensor at ``offset`` bytes from the start of the block."""
        assert self._views is not None
        return Buffer(type, self.memory, self._views.view(self._storage, offset, type))


class ScratchPool:
    """The memory blocks of one session, reused from run to run. Thread-safe.

    Newly allocated memory costs a page fault for every 4 KiB touched: milliseconds for a large model. The pool keeps as
    many blocks as there are concurrent runs, each as large as the largest run that used it. A block that is too small
    is replaced by a larger one.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._free: dict[str, list[ScratchBlock]] = {}

    def take(self, memory: Memory, size: int) -> ScratchBlock:
        """Return a block for one run, of at least ``size`` bytes."""
        with self._lock:
            free = self._free.get(memory.space)
            if free:
                index = next((i for i, block in enumerate(free) if block.fits(size)), -1)
                block = free.pop(index)
                if index >= 0:
                    return block
        return ScratchBlock(memory, size)

    def give_back(self, block: ScratchBlock) -> None:
        """Return the block of a finished run to the pool."""
        with self._lock:
            self._free.setdefault(block.memory.space, []).append(block)


def _bytes(size: int) -> TensorType:
    return TensorType(DType.UINT8, (size,))
