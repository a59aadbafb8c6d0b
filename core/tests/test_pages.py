"""Memory of weights: aligned arrays whose pages go back to the system, and pages of mapped files."""

from __future__ import annotations

import mmap
import resource
import sys
from pathlib import Path

import numpy as np
import pytest

from lite_core.ir import Graph, Value, aligned_empty, release_pages
from lite_core.ir.types import TensorType

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")

SIZE = 64 << 20


def resident() -> int:
    """Return the resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.fixture
def mapped(tmp_path: Path) -> np.ndarray:
    """The numbers of a file, mapped read-only; they do not begin at a page."""
    (tmp_path / "file").write_bytes(b"\1\2\3\4" + np.arange(SIZE // 4, dtype=np.int32).tobytes())
    with (tmp_path / "file").open("rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(mapping, np.int32, offset=4)


@pytest.mark.parametrize("shape", [(), (0, 3), (5, 7), (300, 500)])
def test_an_array_begins_at_a_cache_line(shape: tuple[int, ...]) -> None:
    array = aligned_empty(shape, np.float32)
    assert (array.shape, array.dtype) == (shape, np.float32)
    assert array.ctypes.data % 64 == 0
    array[...] = 1
    assert (array == 1).all()


def test_an_array_that_is_too_large_is_a_memory_error() -> None:
    with pytest.raises(MemoryError):
        aligned_empty((1 << 60,), np.float32)


@ON_LINUX
def test_a_freed_array_gives_its_pages_back() -> None:
    before = resident()
    arrays = [aligned_empty((1 << 20,), np.uint8) for _ in range(SIZE >> 20)]
    for array in arrays:
        array[:] = 1
    assert resident() - before > SIZE // 2
    between = [bytes(100_000) for _ in arrays]  # small blocks between large ones keep an allocator's memory
    del arrays, array
    assert resident() - before < SIZE // 4
    del between


@ON_LINUX
def test_pages_of_a_mapped_file_are_dropped_and_read_again(mapped: np.ndarray) -> None:
    before = resident()
    total = int(mapped.sum(dtype=np.int64))
    assert resident() - before > SIZE // 2
    release_pages(mapped[10:].reshape(-1, 2)[:, 1])
    assert resident() - before < SIZE // 4
    assert int(mapped.sum(dtype=np.int64)) == total


def test_private_memory_keeps_its_content(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(mmap.PAGESIZE))
    with (tmp_path / "file").open("r+b") as file:
        copied = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), np.uint8)
    arrays = [copied, aligned_empty((1 << 20,), np.uint8), np.empty(1 << 20, np.uint8)]
    for array in arrays:
        array[:] = 7
        array.flags.writeable = False
        release_pages(array)
        assert (array == 7).all()


@ON_LINUX
def test_aligning_a_constant_leaves_no_pages_of_the_file(mapped: np.ndarray) -> None:
    values = np.frombuffer(mapped.base, np.float32, SIZE // 4 - 1, offset=3)
    graph, before = Graph(constants={Value("weight", TensorType.of_array(values)): values}), resident()
    graph.align_constants()
    (aligned,) = graph.constants.values()
    assert aligned.flags.aligned
    assert aligned.tobytes() == values.tobytes()
    release_pages(values)
    graph.align_constants()
    assert resident() - before < SIZE + SIZE // 4
