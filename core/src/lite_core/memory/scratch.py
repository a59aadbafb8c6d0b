"""Memory blocks that are reused from run to run."""

from __future__ import annotations

from lite_core.backend import Buffer, Memory, ViewsMemory
from lite_core.ir import DType, TensorType
from lite_core.memory.host_memory import HostMemory

__all__ = ["ScratchBlock", "ScratchPool"]


class ScratchBlock:
    """A block of memory for one run at a time, with undefined content; in main memory aligned to 64 bytes.

    ``storage`` is what the memory has allocated for it.
    """

    __slots__ = ("_views", "capacity", "memory", "storage")

    def __init__(self, memory: Memory, size: int) -> None:
        self.memory = memory
        self._views = memory if isinstance(memory, ViewsMemory) else None
        self.capacity = size
        self.storage = memory.aligned_bytes(size) if isinstance(memory, HostMemory) else memory.allocate(_bytes(size))

    def fits(self, size: int) -> bool:
        """Return True if the block has at least ``size`` bytes; exactly ``size`` if the memory has no views."""
        return size == self.capacity or (size < self.capacity and self._views is not None)

    def at(self, offset: int, size: int) -> Buffer:
        """Return ``size`` bytes of the block, starting at ``offset``."""
        whole = Buffer(_bytes(size), self.memory, self.storage)
        return whole if size == self.capacity else self.tensor(offset, whole.type)

    def tensor(self, offset: int, type: TensorType) -> Buffer:
        """Return a tensor at ``offset`` bytes from the start of the block."""
        assert self._views is not None
        return Buffer(type, self.memory, self._views.view(self.storage, offset, type))


class ScratchPool:
    """The memory blocks of one session, reused from run to run. Thread-safe.

    Newly allocated memory costs a page fault for every 4 KiB touched: milliseconds for a large model. The pool keeps as
    many blocks as there are concurrent runs, each as large as the largest run that used it. A block that is too small
    is replaced by a larger one.
    """

    def __init__(self) -> None:
        #: The unused blocks by memory space. They need no lock: each change of a list is one step.
        self._free: dict[str, list[ScratchBlock]] = {}

    def take(self, memory: Memory, size: int) -> ScratchBlock:
        """Return a block for one run, of at least ``size`` bytes."""
        free = self._free.setdefault(memory.space, [])
        taken: list[ScratchBlock] = []
        try:
            while not taken or not taken[-1].fits(size):
                taken.append(free.pop())
            block = taken.pop()
        except IndexError:  # none fits: one is replaced
            del taken[:1]
            block = ScratchBlock(memory, size)
        free[:0] = taken
        return block

    def give_back(self, block: ScratchBlock) -> None:
        """Return the block of a finished run to the pool."""
        self._free[block.memory.space].append(block)


def _bytes(size: int) -> TensorType:
    return TensorType(DType.UINT8, (size,))
