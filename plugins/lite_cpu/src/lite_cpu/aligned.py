"""Arrays aligned to a cache line, so that no vector of them crosses two lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["LINE_BYTES", "aligned_empty", "is_aligned"]

Array = np.ndarray[Any, Any]

#: Size of a cache line and of the widest vector, in bytes.
LINE_BYTES = 64


def aligned_empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return an uninitialized array that begins at a cache line."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    memory = np.empty(size + LINE_BYTES, np.uint8)
    start = -memory.ctypes.data % LINE_BYTES
    return memory[start : start + size].view(dtype).reshape(shape)


def is_aligned(array: Array) -> bool:
    """Return True if the array is contiguous and begins at a cache line."""
    return array.flags.c_contiguous and array.ctypes.data % LINE_BYTES == 0
