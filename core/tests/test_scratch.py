"""Scratch memory: size and alignment, reuse by later runs, separate memory for concurrent runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from lite_core.backend import Buffer, Device, Options, Partition, Yes
from lite_core.builder import GraphBuilder
from lite_core.errors import ExecutionError
from lite_core.ir import Graph, Node, TensorType
from lite_core.memory import HostMemory
from lite_core.memory.scratch import ScratchPool
from lite_core.plugins import plugins_with
from lite_core.session import Session, load


def address(buffer: Buffer) -> int:
    return int(buffer.data.ctypes.data)


@pytest.mark.parametrize("size", [1, 63, 64, 1000, 5_000_001])
def test_scratch_has_the_requested_size_and_is_aligned(size: int) -> None:
    buffer = ScratchPool().take(HostMemory(), size).at(0, size)
    assert buffer.data.shape == buffer.type.shape == (size,)
    assert address(buffer) % 64 == 0
    buffer.data[:] = 1


def test_block_is_reused_for_smaller_sizes_and_replaced_for_larger_ones() -> None:
    pool, memory = ScratchPool(), HostMemory()
    block = pool.take(memory, 1000)
    pool.give_back(block)
    for size in (1000, 10, 700, 1000):
        again = pool.take(memory, size)
        assert again is block
        assert again.at(0, size).data.shape == (size,)
        assert address(again.at(0, size)) % 64 == 0
        pool.give_back(again)
    larger = pool.take(memory, 1001)
    assert larger is not block
    pool.give_back(larger)
    assert pool.take(memory, 5) is larger


class MemoryWithoutViews:
    """A memory space that cannot give a tensor a part of another tensor's storage."""

    space = "separate"

    def allocate(self, type: TensorType) -> list[int]:
        return [0] * int(type.size)  # type: ignore[arg-type]

    def upload(self, array: np.ndarray, data: list[int]) -> None:
        data[:] = array.tolist()

    def download(self, data: list[int]) -> np.ndarray:
        return np.array(data)


def test_blocks_of_memory_without_views_have_the_exact_size() -> None:
    pool, memory = ScratchPool(), MemoryWithoutViews()
    block = pool.take(memory, 100)
    pool.give_back(block)
    assert pool.take(HostMemory(), 100) is not block
    assert pool.take(memory, 100) is block
    pool.give_back(block)
    assert len(pool.take(memory, 50).at(0, 50).data) == 50


class Backend:
    """A backend that copies its input to its output through scratch memory, and records its addresses."""

    name = "scratchy"

    def __init__(self, during: Callable[[], Any] = lambda: None) -> None:
        self.addresses: list[int] = []
        self.during = during

    def probe(self) -> list[Device]:
        return [Device(self.name)]

    def supports(self, node: Node, device: Device) -> Yes:
        return Yes()

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return Executable(self, part)


class Executable:
    def __init__(self, backend: Backend, part: Partition) -> None:
        self._backend = backend
        (output,) = part.graph.outputs
        self.scratch_bytes = int(output.type.size) * 4  # type: ignore[arg-type]

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        assert scratch is not None
        self._backend.addresses.append(address(scratch))
        held = scratch.data.view(np.float32)
        held[:] = inputs[0].data.reshape(-1)
        self._backend.during()
        outputs[0].data.reshape(-1)[:] = held


def network() -> Graph:
    b = GraphBuilder("network")
    b.output(b.add("Identity", [b.add("Relu", [b.input("x", "float32", ["n", 3])])]), "y")
    return b.build()


def session_of(backend: Backend) -> Session:
    return load(network(), backend="scratchy", fallback="never", plugins=plugins_with(backend))


def test_consecutive_runs_use_the_same_memory() -> None:
    backend = Backend()
    session = session_of(backend)
    for rows in (4, 4, 2, 1, 4):
        x = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)
        np.testing.assert_array_equal(session.run({"x": x})["y"], x)
    assert len(set(backend.addresses)) == 1


def test_concurrent_runs_use_separate_memory() -> None:
    barrier = threading.Barrier(3, timeout=30)
    backend = Backend(during=barrier.wait)
    session = session_of(backend)
    results: dict[int, np.ndarray] = {}

    def work(number: int) -> None:
        results[number] = session.run({"x": np.full((5, 3), number, np.float32)})["y"]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(backend.addresses)) == 3
    assert all((results[number] == number).all() for number in range(3))


def test_memory_of_a_run_that_failed_is_not_used_again() -> None:
    pool = ScratchPool()
    taken: list[Any] = []
    take = pool.take
    pool.take = lambda memory, size: taken.append(take(memory, size)) or taken[-1]  # type: ignore[method-assign]
    backend = Backend(during=lambda: 1 / 0)
    session = session_of(backend)
    session.planner.pool = pool
    with pytest.raises(ExecutionError, match="ZeroDivisionError"):
        session.run({"x": np.zeros((2, 3), np.float32)})
    backend.during = lambda: None
    session.run({"x": np.zeros((2, 3), np.float32)})
    assert len(taken) == 2
    assert taken[0] is not taken[1]
