"""What a process has once for each device: context, queue, memory, programs and uploaded constants."""

from __future__ import annotations

import threading

import pyopencl as cl

from lite_opencl.constants import ConstantPool
from lite_opencl.devices import FoundDevice
from lite_opencl.errors import opencl_call
from lite_opencl.memory import DeviceMemory
from lite_opencl.programs import ProgramLibrary

__all__ = ["DeviceRuntime", "runtime_of", "started_runtimes"]


class DeviceRuntime:
    """One device as all sessions and threads of the process use it.

    Attributes:
        name: the device's, for messages.
        context, queue: of OpenCL. The queue runs commands in the order in which they were enqueued.
        profiling_queue: another one, whose commands record when they began and ended.
        memory: where tensors live.
        constants: weights on the device.
        programs: compiled kernels.
    """

    def __init__(self, found: FoundDevice, space: str) -> None:
        self.found = found
        self.name = found.name
        self.unified_memory = found.unified_memory
        with opencl_call(self.name, "creating a context"):
            self.context = cl.Context([found.device])
            self.queue = cl.CommandQueue(self.context)
            self.profiling_queue = cl.CommandQueue(
                self.context, properties=cl.command_queue_properties.PROFILING_ENABLE
            )
        self.memory = DeviceMemory(self, space)
        self.constants = ConstantPool(self.memory)
        self.programs = ProgramLibrary(self.context, found)


_lock = threading.Lock()
_runtimes: dict[tuple[int, str], DeviceRuntime] = {}


def runtime_of(found: FoundDevice, label: str) -> DeviceRuntime:
    """The runtime of a device, made when it is first asked for.

    Args:
        found: the device.
        label: ``opencl`` or ``opencl:1``: the name of its memory space.
    """
    key = (found.device.int_ptr, label)
    with _lock:
        if key not in _runtimes:
            _runtimes[key] = DeviceRuntime(found, label)
        return _runtimes[key]


def started_runtimes() -> list[DeviceRuntime]:
    """Those that the process has made so far."""
    with _lock:
        return list(_runtimes.values())
