"""Failures of a device are a LiteError with the status; if the user did not name the device, another one is used."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from opencl_device import first_device, first_runtime

import lite_core as lite
from lite_core.backend import Options, Partition
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_opencl.compiled.executable import _Slot
from lite_opencl.device.errors import OpenClError
from lite_opencl.device.memory import DeviceArray
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.programs.library import ProgramLibrary

cl = pytest.importorskip("pyopencl")

X = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)


def graph(op: str = "Relu") -> Graph:
    builder = GraphBuilder("failing")
    y = builder.add(op, [builder.input("x", "float32", X.shape)])
    builder.output(builder.add("Concat", [y, y], {"axis": 0}), "y")
    return builder.build()


def error(kind: type[Exception], status: str) -> Exception:
    """Return an exception like those of pyopencl, whose argument is a record of the call."""
    record = SimpleNamespace(
        routine=lambda: "clEnqueueNDRangeKernel",
        code=lambda: getattr(cl.status_code, status),
        what=lambda: "",
        is_out_of_memory=lambda: False,
        _program=lambda: None,
    )
    return kind(record)


@pytest.fixture
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the caches of programs."""
    monkeypatch.setenv("LITE_CACHE_DIR", "off")
    runtime = first_runtime()
    monkeypatch.setattr(runtime, "programs", ProgramLibrary(runtime.context, runtime.found))


@pytest.fixture
def broken_compiler(no_cache: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the source of every kernel by one that does not compile."""
    monkeypatch.setattr(KernelSource, "text", lambda source: "__kernel void broken() { no_such_name; }")


def loaded(backend: str, monkeypatch: pytest.MonkeyPatch) -> lite.Session:
    """Return a session with only OpenCL and the references; skip the test if there is no device."""
    first_device()
    monkeypatch.setenv("LITE_BACKENDS", "opencl,host")
    return lite.load(graph(), backend)


def assert_recorded_fallback(session: lite.Session, reason: str) -> None:
    """Assert that host computed the right result, and that the log and the refusals contain the reason."""
    np.testing.assert_array_equal(session.run({"x": X})["y"], np.concatenate([np.maximum(X, 0)] * 2))
    assert session.devices == ("host",)
    assert any(reason in line for line in session.selection_log)
    assert all(reason in why for a in session.assignment() for _, why in a.refusals)


@pytest.mark.usefixtures("broken_compiler")
def test_build_failure_falls_back_and_logs_the_compiler_output(monkeypatch: pytest.MonkeyPatch) -> None:
    session = loaded("auto", monkeypatch)
    assert_recorded_fallback(session, "CL_BUILD_PROGRAM_FAILURE")
    assert "no_such_name" in "\n".join(session.selection_log)


@pytest.mark.usefixtures("broken_compiler")
def test_build_failure_on_named_device_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    session = loaded("opencl", monkeypatch)
    with pytest.raises(lite.LiteError, match="CL_BUILD_PROGRAM_FAILURE") as caught:
        session.run({"x": X})
    assert "no_such_name" in str(caught.value)
    assert str(caught.value).count("clBuildProgram") <= 1


def test_partition_above_largest_buffer_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = first_runtime()
    monkeypatch.setattr(runtime, "found", replace(runtime.found, largest_buffer_bytes=64))
    assert_recorded_fallback(loaded("auto", monkeypatch), "CL_INVALID_BUFFER_SIZE")
    with pytest.raises(lite.LiteError, match=r" 64 .*CL_INVALID_BUFFER_SIZE"):
        loaded("opencl", monkeypatch).run({"x": X})


@pytest.mark.parametrize("shape", [(1, 3, 60000, 60000), (1, 2, 30000, 30000)])
def test_tensors_above_element_limit_are_refused(shape: tuple[int, ...]) -> None:
    """The limit holds for inputs and for tensors between kernels, which count elements in 32 bits."""
    first_device()
    builder = GraphBuilder("large")
    doubled = builder.add("Concat", [builder.input("x", "int8", shape)] * 2, {"axis": 1})
    builder.output(builder.add("ReduceMax", [doubled], {"keepdims": 0}), "y")
    with pytest.raises(lite.LiteError, match="2147483647"):
        lite.load(builder.build(), "opencl").prepare()


def test_driver_refuses_allocation_above_its_limit() -> None:
    runtime = first_runtime()
    with pytest.raises(OpenClError) as caught:
        runtime.memory.allocate_bytes(runtime.found.largest_buffer_bytes + 4096)
    assert caught.value.status in ("INVALID_BUFFER_SIZE", "MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_RESOURCES")
    assert isinstance(caught.value, lite.LiteError)


def test_out_of_memory_in_first_launch_falls_back(no_cache: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drivers allocate late, so a failure in the warm-up counts as a failure to compile."""

    def full(*_: Any, **__: Any) -> Any:
        raise error(cl.MemoryError, "MEM_OBJECT_ALLOCATION_FAILURE")

    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", full)
    assert_recorded_fallback(loaded("auto", monkeypatch), "CL_MEM_OBJECT_ALLOCATION_FAILURE")


@pytest.mark.parametrize("status", ["DEVICE_NOT_AVAILABLE", "INVALID_COMMAND_QUEUE", "OUT_OF_RESOURCES"])
def test_lost_device_is_an_error_with_a_remedy(status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = loaded("opencl", monkeypatch)
    right = session.run({"x": X})["y"]

    def lost(*_: Any, **__: Any) -> Any:
        raise error(cl.LogicError, status)

    with monkeypatch.context() as patch:
        patch.setattr(cl, "enqueue_nd_range_kernel", lost)
        with pytest.raises(lite.LiteError, match=f"CL_{status}\n."):  # the remedy is on the next line
            session.run({"x": X})
    np.testing.assert_array_equal(session.run({"x": X})["y"], right)


def test_arguments_are_bound_again_after_a_failure() -> None:
    """A failure after some arguments were set leaves a slot with arguments of two memories."""

    class FakeArgument:
        memory: DeviceArray | None = None
        is_refused = False

        def set(self, memory: DeviceArray) -> None:
            if self.is_refused:
                raise error(cl.LogicError, "INVALID_MEM_OBJECT")
            self.memory = memory

    first, second = first_runtime().memory.uploaded(X), first_runtime().memory.uploaded(X)
    slot, arguments = _Slot(), [FakeArgument(), FakeArgument()]
    slot.arguments = arguments
    slot.bind(first)
    arguments[1].is_refused = True
    with pytest.raises(cl.LogicError):
        slot.bind(second)
    arguments[1].is_refused = False
    slot.bind(first)
    assert all(argument.memory is first for argument in arguments)


def test_broken_platform_does_not_hide_other_platforms(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from lite_opencl.device import devices

    class Broken:
        name = "broken driver"

        def get_devices(self) -> list[Any]:
            raise error(cl.RuntimeError, "DEVICE_NOT_FOUND")

    platforms = cl.get_platforms()
    first_device()
    monkeypatch.setattr(cl, "get_platforms", lambda: [Broken(), *platforms])
    with caplog.at_level(logging.WARNING, "lite.opencl.devices"):
        found = devices.find_devices()
    assert isinstance(found, list)
    assert "broken driver" in caplog.text
    monkeypatch.setattr(cl, "get_platforms", lambda: [Broken()])
    unavailable = devices.find_devices()
    assert "broken driver" in unavailable.reason


def test_cache_folder_that_is_a_file_does_not_fail_compilation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "opencl").write_text("not a folder")
    runtime = first_runtime()
    monkeypatch.setattr(runtime, "programs", ProgramLibrary(runtime.context, runtime.found, tmp_path / "opencl"))
    backend, device = first_device()
    backend.compile(Partition("test", graph("Tanh")), device, Options())
