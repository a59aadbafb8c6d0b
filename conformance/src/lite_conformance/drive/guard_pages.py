"""Storage that ends where the memory of the process ends: reading or writing past it is a crash at once."""

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
    """A tensor in main memory whose last byte is followed by a page that nobody may touch.

    What guard zones cannot see, reads past the end included, ends the process with a segmentation fault. The
    tensor starts at a multiple of its element size, as any NumPy array may.

    Args:
        memory: must be main memory.
        type: the tensor's static type.

    Raises:
        Skipped: this system cannot protect pages.
    """

    def __init__(self, memory: Memory, type: TensorType) -> None:
        if memory.space != "host":
            raise Skipped(f"only main memory can be fenced, the tensors live in {memory.space!r}")
        self.type = type
        shape = tuple(int(d) for d in evaluate_shape(type.shape or (), {}))
        count = int(np.prod(shape, dtype=np.int64))
        size = count * type.dtype.itemsize
        room = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        block = mmap.mmap(-1, room + mmap.PAGESIZE)
        flat = np.frombuffer(block, np.uint8)
        _protect(flat.ctypes.data + room, mmap.PAGESIZE)
        self.data: Array = np.ndarray(shape, type.dtype.numpy, buffer=flat.data, offset=room - size)

    def fill(self, array: Array) -> None:
        """Copy an array in."""
        np.copyto(self.data, array)

    def poison(self) -> None:
        """Initializer with NaN, or, where the type has none, with all bits set."""
        if self.data.size:
            self.data.reshape(-1).view(np.uint8)[...] = POISON

    def read(self) -> Array:
        """A copy of the tensor."""
        copy: Array = self.data.copy()
        return copy

    def breach(self) -> str | None:
        """None: whoever leaves the storage does not come back."""
        return None


def _protect(address: int, size: int) -> None:
    if sys.platform == "win32":
        raise Skipped("protecting pages is not implemented for Windows")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), _NO_ACCESS) != 0:
        raise Skipped(f"mprotect failed with error {ctypes.get_errno()}")
