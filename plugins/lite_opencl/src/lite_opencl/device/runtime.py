"""What a process has once for each device: context, queue, memory, programs and uploaded constants."""

from __future__ import annotations

import threading

import pyopencl as cl

from lite_opencl.device.constants import ConstantPool
from lite_opencl.device.devices import FoundDevice
from lite_opencl.device.errors import opencl_call
from lite_opencl.device.images import ImagePool
from lite_opencl.device.memory import memory_for
from lite_opencl.device.queues import QueuePool
from lite_opencl.programs.binary_cache import cache_folder
from lite_opencl.programs.library import ProgramLibrary
from lite_opencl.tuning.table import TuningTable

__all__ = ["DeviceRuntime", "runtime_of", "started_runtimes"]


class DeviceRuntime:
    """One device as all sessions and threads of the process use it.

    Attributes:
        found: the device.
        name: the device's, for messages.
        context: of OpenCL.
        queues: what runs take their command queues from.
        profiling_queue: another queue, whose commands record when they began and ended.
        memory: where tensors live.
        constants: weights on the device.
        images: those of the constants that kernels read as images.
        programs: compiled kernels.
        tuning: which kernels and tiles were measured to be fastest.
    """

    def __init__(self, found: FoundDevice, space: str) -> None:
        self.found = found
        self.name = found.name
        with opencl_call(self.name, "creating a context"):
            self.context = cl.Context([found.device])
            self.profiling_queue = cl.CommandQueue(
                self.context, properties=cl.command_queue_properties.PROFILING_ENABLE
            )
        self.queues = QueuePool(self.context, self.name)
        self.memory = memory_for(self.context, found, space)
        self.constants = ConstantPool(self.memory)
        self.images = ImagePool(self.context, self.name)
        self.programs = ProgramLibrary(self.context, found)
        self.tuning = TuningTable(found, cache_folder())


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
