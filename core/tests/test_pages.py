"""Memory of weights: aligned arrays whose pages go back to the system, and pages of mapped files."""

from __future__ import annotations

import mmap
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Value, aligned_empty, release_pages
from lite_core.ir.pages import spill
from lite_core.ir.types import TensorType
from lite_core.session import make_ready

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


@ON_LINUX
def test_spilled_arrays_take_no_memory_once_they_are_released(tmp_path: Path) -> None:
    before = resident()
    arrays = [np.arange(SIZE // 64, dtype=np.int32).reshape(2, -1) + n for n in range(4)]
    moved = spill(arrays, tmp_path / "folder")
    assert not any((tmp_path / "folder").iterdir())
    found = [moved[id(array)] for array in arrays]
    arrays.clear()
    for n, array in enumerate(found):
        assert (array[1, -1], array.shape) == (SIZE // 64 - 1 + n, (2, SIZE // 128))
        assert not array.flags.writeable
        assert array.ctypes.data % mmap.PAGESIZE == 0
    release_pages(found[0])
    assert resident() - before < SIZE // 16
    assert int(found[3].sum(dtype=np.int64)) == sum(range(3, SIZE // 64 + 3))


@ON_LINUX
def test_arrays_that_need_not_or_cannot_move_are_left_out(mapped: np.ndarray, tmp_path: Path) -> None:
    weights, texts = np.ones(1 << 20, np.float32), np.full(1 << 20, "text", object)
    assert spill([mapped, np.ones(100, np.float32), texts], tmp_path) == {}
    (tmp_path / "no folder").write_text("")
    assert spill([weights], tmp_path / "no folder") == {}
    unaligned = mapped.reshape(-1).view(np.uint8)[1:-3].view(np.int32)
    assert spill([unaligned], tmp_path)[id(unaligned)].flags.aligned


@ON_LINUX
def test_weights_that_a_pass_makes_are_released_but_not_the_callers(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 512])
    weights = [np.full((512, 512), n, np.float32) for n in (2, 3)]
    folded = b.add("Mul", [b.add("MatMul", [x, b.constant(weights[0])]), b.constant(np.float32(0.5))])
    b.output(b.add("MatMul", [folded, b.constant(weights[1])]))
    graph = b.build()
    given = list(graph.constants.values())
    ready = make_ready(graph).graph
    made, callers = sorted(ready.constants.values(), key=lambda array: float(array.flat[0]))
    assert (made == 1).all()
    assert isinstance(made.base, mmap.mmap)
    assert any(callers is array for array in given)
