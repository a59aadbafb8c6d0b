"""Arrays at the end of the memory that a process may access, on Linux."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

__all__ = ["before_a_guard_page"]

Array = np.ndarray[Any, Any]


def before_a_guard_page(array: Array) -> Array:
    """Return a copy that ends at a guard page: an access behind its last element crashes the process."""
    size = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size + mmap.PAGESIZE)
    end = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + size
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(end), mmap.PAGESIZE, 0) == 0, ctypes.get_errno()
    copy = np.frombuffer(memory, array.dtype, array.size, size - array.nbytes).reshape(array.shape)
    copy[...] = array
    return copy
