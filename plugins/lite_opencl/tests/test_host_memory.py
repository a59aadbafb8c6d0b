"""Transfers between main memory and the device: shared arrays, or pinned memory if the device has its own memory."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from opencl_device import first_device, first_runtime
from test_threads import check, network, pictures

import lite_core as lite
from lite_core.backend import Device
from lite_core.builder import GraphBuilder
from lite_core.ir import TensorType
from lite_core.plugins import plugins_with
from lite_opencl.backend import OpenClBackend
from lite_opencl.compiled import executable
from lite_opencl.device import pinned
from lite_opencl.device.memory import DeviceMemory, SharedMemory
from lite_opencl.device.queues import QueuePool
from lite_opencl.device.runtime import DeviceRuntime

Array = np.ndarray[Any, Any]


def shared_memory() -> SharedMemory:
    memory = first_runtime().memory
    if not isinstance(memory, SharedMemory):
        pytest.skip("the device has its own memory")
    return memory


def session(graph: Any, backend: OpenClBackend | None = None) -> lite.Session:
    given, device = first_device()
    return lite.load(graph, device.label, fallback="never", plugins=plugins_with(backend or given))


def displaced(array: Array, offset: int) -> Array:
    """Return a copy that begins ``offset`` bytes after a multiple of 4096."""
    block = np.empty(array.nbytes + 4096 + offset, np.uint8)
    start = -block.ctypes.data % 4096 + offset
    copy: Array = block[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


# **** a device that works in main memory ****


def test_wrapped_array_shares_memory_with_device() -> None:
    memory, array = shared_memory(), displaced(np.arange(1000, dtype=np.int32), 0)
    storage = memory.wrap(array)
    np.testing.assert_array_equal(memory.download(storage), array)
    memory.upload(array[::-1].copy(), storage)
    memory.synchronize(storage)
    assert array.tolist() == list(range(999, -1, -1))


@pytest.mark.parametrize("offset", [0, 4, 8, 16, 64])
def test_unaligned_inputs_and_outputs(offset: int) -> None:
    memory, graph = shared_memory(), network()
    one, x = session(graph), displaced(pictures(1)[0], offset)
    y, profile = displaced(np.zeros((1, 10), np.float32), offset), lite.RunProfile()
    assert one.run({"x": x}, out={"y": y}, profile=profile)["y"] is y
    check([y], graph, [x])
    copied = [c.bytes for c in profile.copies]
    assert copied == [x.nbytes if offset % memory.wrap_alignment else 0, 0]


def test_gpu_wraps_page_aligned_arrays() -> None:
    shared_memory()
    found = replace(first_runtime().found, kind="GPU")
    assert DeviceRuntime(found, "opencl-gpu").memory.wrap_alignment == 4096  # type: ignore[attr-defined]


def test_device_releases_caller_arrays() -> None:
    shared_memory()
    one = session(network())
    x, y = (displaced(a, 0) for a in (pictures(1)[0], np.zeros((1, 10), np.float32)))
    one.run({"x": x}, out={"y": y})
    owners = [weakref.ref(x.base), weakref.ref(y.base)]
    del x, y
    gc.collect()
    assert [owner() for owner in owners] == [None, None]


def test_outputs_are_not_overwritten_by_later_runs() -> None:
    graph, inputs = network(), pictures(6)
    one = session(graph)
    results = [one.run({"x": x})["y"] for x in inputs]
    check(results, graph, inputs)
    assert not any(np.shares_memory(a, b) for i, a in enumerate(results) for b in results[:i])


def test_threads_with_the_same_input_array() -> None:
    graph, inputs = network(), pictures(3)
    one = session(graph)
    given = [inputs[i % 3] for i in range(64)]
    with ThreadPoolExecutor(16) as pool:
        check(list(pool.map(lambda x: one.run({"x": x})["y"], given)), graph, given)


def test_one_array_for_two_inputs() -> None:
    b = GraphBuilder("product")
    b.output(b.add("Mul", [b.input("p", "float32", [1000]), b.input("q", "float32", [1000])]), "y")
    x = np.linspace(-1, 1, 1000, dtype=np.float32)
    np.testing.assert_allclose(session(b.build()).run({"p": x, "q": x})["y"], x * x)


def test_failed_run_finishes_its_kernels_before_raising(monkeypatch: pytest.MonkeyPatch) -> None:
    one, x = session(network()), pictures(1)[0].repeat(2048, axis=0)
    one.run({"x": x})
    enqueue, events = cl.enqueue_nd_range_kernel, []

    def enqueue_few(*arguments: Any) -> cl.Event:
        if len(events) == 4:
            raise RuntimeError("the queue is full")
        events.append(enqueue(*arguments))
        return events[-1]

    monkeypatch.setattr(executable.cl, "enqueue_nd_range_kernel", enqueue_few)
    with pytest.raises(lite.LiteError, match="the queue is full"):
        one.run({"x": x})
    assert [e.command_execution_status for e in events] == 4 * [cl.command_execution_status.COMPLETE]


def test_overlapping_runs_use_separate_queues_and_failed_ones_are_dropped() -> None:
    queues = QueuePool(first_runtime().context, "device")
    with queues.take() as first, queues.take() as second:
        assert first is not second
    with pytest.raises(RuntimeError, match="lost"), queues.take() as third:
        raise RuntimeError("lost")
    with queues.take() as fourth, queues.take() as fifth:
        assert third in (first, second)
        assert third not in (fourth, fifth)


# **** a device with its own memory, simulated on any device ****


class SeparateMemoryBackend(OpenClBackend):
    """The backend, but its first device does not report that it works in main memory."""

    def __init__(self) -> None:
        super().__init__()
        self.runtime = DeviceRuntime(replace(first_runtime().found, unified_memory=False), "opencl-separate")

    def _runtime(self, device: Device) -> DeviceRuntime:
        return self.runtime


@pytest.mark.parametrize("size", [1, 3, 4095, 4096, 4097, 3 * 4096, 5 * 4096 + 7])
def test_transfers_of_all_sizes_are_exact(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pinned, "_BLOCK_BYTES", 4096)
    memory = SeparateMemoryBackend().runtime.memory
    assert type(memory) is DeviceMemory
    guarded = np.full(size + 256, 7, np.uint8)
    storage = memory.uploaded(guarded)
    part = memory.view(storage, 128, TensorType(lite.DType.UINT8, (size,)))
    array = np.random.default_rng(size).integers(0, 255, size, np.uint8)
    memory.upload(array, part)
    np.testing.assert_array_equal(memory.download(part), array)
    guarded[128 : 128 + size] = array
    np.testing.assert_array_equal(memory.download(storage), guarded)


def test_concurrent_runs_with_pinned_transfers() -> None:
    backend, graph, inputs = SeparateMemoryBackend(), network(), pictures(48)
    one = session(graph, backend)
    with ThreadPoolExecutor(16) as pool:
        check(list(pool.map(lambda x: one.run({"x": x})["y"], inputs)), graph, inputs)
    profile = lite.RunProfile()
    one.run({"x": inputs[0]}, profile=profile)
    assert [c.bytes for c in profile.copies] == [inputs[0].nbytes, 40]

    assert 0 < len(backend.runtime.memory._pinned._free) <= pinned._MAX_FREE_BLOCKS


def test_pinned_blocks_of_failed_transfers_are_dropped() -> None:
    memory = SeparateMemoryBackend().runtime.memory
    storage = memory.uploaded(np.zeros(100, np.uint8))
    free = len(memory._pinned._free)
    with pytest.raises(lite.LiteError):
        memory.upload(np.zeros(200, np.uint8), storage)
    assert len(memory._pinned._free) == free - 1
    np.testing.assert_array_equal(memory.download(storage), np.zeros(100, np.uint8))
