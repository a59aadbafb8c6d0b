"""Storage between guard pages, the last directly behind it: any access past its end crashes immediately."""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np

from lite_conformance.drive.guards import POISON
from lite_conformance.judge.compare import Array
from lite_conformance.judge.outcome import Skipped
from lite_core.backend import Memory
from lite_core.ir import TensorType, evaluate_shape

__all__ = ["PageGuardedStorage"]

_NO_ACCESS = 0


class PageGuardedStorage:
    """A tensor in main memory whose last byte is followed by an inaccessible page.

    Accesses past the end, including reads, which guard zones cannot detect, end the process with a segmentation
    fault. So do accesses before the beginning of the tensor's first page, which is the beginning of the tensor if its
    size is a number of pages. The tensor starts at a multiple of its element size, as any NumPy array may.

    Args:
        memory: must be main memory.
        type: the tensor's static type.

    Raises:
        Skipped: the memory is not main memory, or this system cannot protect pages.
    """

    def __init__(self, memory: Memory, type: TensorType) -> None:
        if memory.space != "host":
            raise Skipped(f"guard pages need main memory, the tensors are in {memory.space!r}")
        self.type = type
        shape = tuple(int(d) for d in evaluate_shape(type.shape or (), {}))
        count = int(np.prod(shape, dtype=np.int64))
        size = count * type.dtype.itemsize
        guard_offset = mmap.PAGESIZE - (-size // mmap.PAGESIZE) * mmap.PAGESIZE
        block = mmap.mmap(-1, guard_offset + mmap.PAGESIZE)
        flat = np.frombuffer(block, np.uint8)
        for offset in (0, guard_offset):
            _protect(flat.ctypes.data + offset, mmap.PAGESIZE)
        self.data: Array = np.ndarray(shape, type.dtype.numpy, buffer=flat.data, offset=guard_offset - size)

    def store(self, array: Array) -> None:
        """Copy an array in."""
        np.copyto(self.data, array)

    def poison(self) -> None:
        """Set all bits: NaN in floating types."""
        if self.data.size:
            self.data.reshape(-1).view(np.uint8)[...] = POISON

    def read(self) -> Array:
        """Return a copy of the tensor."""
        copy: Array = self.data.copy()
        return copy

    def breach(self) -> str | None:
        """Return None: accesses outside the storage end the process."""
        return None


def _protect(address: int, size: int) -> None:
    if sys.platform == "win32":
        raise Skipped("protecting pages is not implemented for Windows")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), _NO_ACCESS) != 0:
        raise Skipped(f"mprotect failed with error {ctypes.get_errno()}")
