"""Memory whose last user is known: storage and constants that tell whether a backend still refers to them."""

from __future__ import annotations

import ctypes
import gc
import mmap
import sys
import weakref
from typing import Any

import numpy as np

from lite_conformance.drive.backend_call import backend_call
from lite_conformance.drive.guards import POISON, download
from lite_conformance.judge.compare import Array
from lite_core.backend import Memory
from lite_core.ir import TensorType, evaluate_shape
from lite_core.memory import HostMemory

__all__ = ["LentBytes", "LentStorage"]


class LentBytes:
    """Bytes in main memory, lent as arrays and memoryviews, that stay readable after their last user is gone.

    Args:
        size: number of bytes.
    """

    def __init__(self, size: int) -> None:
        self._block = mmap.mmap(-1, max(size, 1))
        lender = (ctypes.c_char * max(size, 1)).from_buffer(self._block)
        #: All bytes as an array, to lend; set it to None when nothing but the users shall refer to them.
        self.lent: Array | None = np.frombuffer(memoryview(lender).cast("B"), np.uint8)[:size]
        self._lender = weakref.ref(lender)

    def is_used(self) -> bool:
        """Return True if something refers to the bytes, apart from :attr:`lent` once that is None."""
        if self._lender() is not None:
            gc.collect()  # the last reference may be in a cycle
        return self._lender() is not None

    def overwrite(self) -> None:
        """Overwrite the bytes, which an address that a backend noted may still point to."""
        self._block[:] = bytes([POISON]) * len(self._block)


class LentStorage:
    """Storage of one tensor that tells whether the backend still refers to it after a run.

    In main memory, views of the storage count as well. In other memories, references to the storage object are counted.

    Args:
        memory: the memory space to allocate in.
        type: the tensor's static type.
    """

    def __init__(self, memory: Memory, type: TensorType) -> None:
        self.memory = memory
        self.type = type
        shape = tuple(int(d) for d in evaluate_shape(type.shape or (), {}))
        self._shape = shape
        self._bytes = int(np.prod(shape, dtype=np.int64)) * type.dtype.itemsize
        self._lent: LentBytes | None = None
        self.data: Any
        if isinstance(memory, HostMemory):
            self._lent = LentBytes(self._bytes)
            assert self._lent.lent is not None
            self.data = self._lent.lent.view(type.dtype.numpy).reshape(shape)
            self._lent.lent = None
        else:
            with backend_call("Memory.allocate()"):
                self.data = memory.allocate(type)
        self._references = sys.getrefcount(self.data)

    def store(self, array: Array) -> None:
        """Copy a host array in."""
        with backend_call("Memory.upload()"):
            self.memory.upload(np.ascontiguousarray(array).reshape(self._shape), self.data)

    def poison(self) -> None:
        """Set all bits: NaN in floating types."""
        self.store(np.full(self._bytes, POISON, np.uint8).view(self.type.dtype.numpy).reshape(self._shape))

    def read(self) -> Array:
        """Return a copy of the tensor on the host."""
        return download(self.memory, self.data)

    def breach(self) -> str | None:
        """Return None: there are no guard zones."""
        return None

    def is_kept(self) -> bool:
        """Return True if something else refers to the storage; afterwards, the storage cannot be used any more."""
        if self._lent is None:
            if sys.getrefcount(self.data) > self._references:
                gc.collect()
            return sys.getrefcount(self.data) > self._references
        self.data = None
        return self._lent.is_used()
