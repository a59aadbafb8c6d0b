"""The first OpenCL device, for tests; tests are skipped if there is no device."""

from __future__ import annotations

import numpy as np
import pytest

from lite_core.backend import Buffer, Device, Executable, Options, Partition, SavedWeights, SavesState, Unavailable
from lite_core.ir import Graph
from lite_opencl.backend import OpenClBackend
from lite_opencl.device.runtime import DeviceRuntime, runtime_of

__all__ = ["first_device", "first_runtime", "run", "run_executable", "saved_pieces"]


def first_device() -> tuple[OpenClBackend, Device]:
    """Return the backend and its best device; skip the test if there is none."""
    backend = OpenClBackend()
    devices = backend.probe()
    if isinstance(devices, Unavailable):
        pytest.skip(f"{devices.reason}. {devices.remedy}")
    return backend, devices[0]


def first_runtime() -> DeviceRuntime:
    """Return the runtime of the best device."""
    backend, device = first_device()
    return runtime_of(backend._device(device), device.label)


def run(graph: Graph, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Compile a graph for the first device and run it once."""
    backend, device = first_device()
    return run_executable(backend.compile(Partition("test", graph), device, Options()), graph, inputs)


def run_executable(executable: Executable, graph: Graph, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Run a partition once; it allocates the results whose shapes depend on data."""
    memory = first_runtime().memory

    def buffer_of(array: np.ndarray) -> Buffer:
        buffer = Buffer(graph.inputs[0].type.of_array(array), memory)
        buffer.store(array)
        return buffer

    outputs = [Buffer(v.type, memory, memory.allocate(v.type) if v.type.is_static else None) for v in graph.outputs]
    size = executable.scratch_bytes
    scratch = buffer_of(np.empty(size, np.uint8)) if size else None
    executable.run([buffer_of(a) for a in inputs], outputs, scratch)
    return [memory.download(b.data) for b in outputs]


def saved_pieces(executable: Executable) -> list[memoryview]:
    """Return the pieces that an executable saves, as a model file hands them back."""
    assert isinstance(executable, SavesState)
    return [memoryview(piece.data if isinstance(piece, SavedWeights) else piece) for piece in executable.save()]
