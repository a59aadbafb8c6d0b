"""Memory of weights: pages that go back to the system when an array is freed, and pages of mapped files."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from lite_core.ir.types import Array
from lite_core.private_files import open_private

__all__ = ["aligned_empty", "release_pages", "spill"]

#: Bytes of a cache line, and of the widest vector.
_ALIGNMENT = 64
#: Arrays of fewer bytes come from the allocator, which reuses the memory of freed ones.
_FEWEST_BYTES = 1 << 17
#: The part of the machine's memory that is written to a file at most: above 15 % of the available memory, Linux lets a
#: process wait for the disk.
_MOST_OF_MEMORY = 0.1
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
    if (mapping := _file_of(array)) is not None:
        mapping.madvise(mmap.MADV_DONTNEED)


def _file_of(array: Array) -> mmap.mmap | None:
    """Return the mapped file that an array is a part of, if its pages can be dropped."""
    base: Any = array
    while isinstance(base, (np.ndarray, memoryview)):
        base = base.obj if isinstance(base, memoryview) else base.base
    # NOTE: private pages would lose their content.
    is_file = isinstance(base, mmap.mmap) and memoryview(base).readonly and hasattr(mmap, "MADV_DONTNEED")
    return base if is_file else None


def spill(arrays: Iterable[Array], folder: Path) -> dict[int, Array]:
    """Write large arrays to a file without a name, and return read-only arrays of its pages, by the ids of ``arrays``.

    The system takes such pages back when memory is short, and :func:`release_pages` drops them. The file takes disk
    space until its last array is freed or the process ends; the system writes it to the disk seconds later, if at all.

    Args:
        arrays: small ones, and aligned parts of mapped files, are left out. So are those that do not fit into a tenth
            of the machine's memory, and the rest if the disk is full.
        folder: a folder on a disk. If it cannot be used, nothing is written.
    """
    moved: dict[int, Array] = {}
    starts, end = {}, 0
    room = os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE * _MOST_OF_MEMORY if hasattr(mmap, "MADV_DONTNEED") else 0
    for array in arrays:
        is_ready = array.flags.aligned and array.flags.c_contiguous and _file_of(array) is not None
        if _FEWEST_BYTES <= array.nbytes <= room - end and not array.dtype.hasobject and not is_ready:
            starts[end] = array
            end += -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    if not starts:
        return moved
    path = folder / f"{os.getpid()}-{id(starts)}"
    with suppress(OSError), open(open_private(path, os.O_RDWR | os.O_CREAT | os.O_EXCL), "r+b") as file:
        path.unlink()
        file.truncate(end)
        mapping = mmap.mmap(file.fileno(), end, access=mmap.ACCESS_READ)
        for start, array in starts.items():
            file.seek(start)
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            file.flush()
            moved[id(array)] = np.ndarray(array.shape, array.dtype, mapping, start)
            release_pages(array)
    return moved
