"""Memory of weights: pages that go back to the system when an array is freed, and pages of mapped files."""

from __future__ import annotations

import mmap
from math import prod
from typing import Any

import numpy as np

from lite_core.ir.types import Array

__all__ = ["aligned_empty", "release_pages"]

#: Bytes of a cache line, and of the widest vector.
_ALIGNMENT = 64
#: Arrays of fewer bytes come from the allocator, which reuses the memory of freed ones.
_FEWEST_BYTES = 1 << 17
# Unix shares a mapping with forked children unless it is private.
_PRIVATE: dict[str, Any] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array of numbers with undefined content, for weights, that begins at a multiple of 64 bytes.

    A large one has pages of its own, which the system gets back when the array is freed. An allocator keeps them, and
    reuses only a part: after five networks were dropped, it kept 100 MiB.

    Raises:
        MemoryError: there is not enough memory.
    """
    size = prod(shape) * np.dtype(dtype).itemsize
    if size < _FEWEST_BYTES:
        block = np.empty(size + _ALIGNMENT, np.uint8)
        aligned: Array = block[-block.ctypes.data % _ALIGNMENT :][:size].view(dtype)
        return aligned.reshape(shape)
    try:
        pages = mmap.mmap(-1, size, **_PRIVATE)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"there is not enough memory for an array of {size} bytes: {error}") from error
    if hasattr(mmap, "MADV_HUGEPAGE"):  # as NumPy's own large arrays
        pages.madvise(mmap.MADV_HUGEPAGE)
    array: Array = np.ndarray(shape, dtype, pages)
    return array


def release_pages(array: Array) -> None:
    """Drop the pages of the file that an array is mapped from out of this process; accesses map them again.

    Arrays that are not mapped read-only stay as they are.
    """
    base: Any = array
    while isinstance(base, (np.ndarray, memoryview)):
        base = base.obj if isinstance(base, memoryview) else base.base
    # NOTE: private pages would lose their content.
    if isinstance(base, mmap.mmap) and memoryview(base).readonly and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)
