"""The objects that a process has once for each device: context, queues, memory, programs and uploaded constants."""

from __future__ import annotations

import pyopencl as cl

from lite_core.forking import new_lock
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
    """The state of one device that all sessions and threads of the process share.

    Attributes:
        found: the device.
        name: the name of the device, for messages.
        context: the OpenCL context.
        queues: the pool of command queues for runs.
        profiling_queue: a separate queue whose commands record when they began and ended.
        memory: the memory space of tensors.
        constants: weights on the device.
        images: images of the constants that kernels read as images.
        programs: compiled kernels.
        tuning: the kernels and tiles that were measured to be fastest.
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


_lock = new_lock()
_runtimes: dict[tuple[int, str], DeviceRuntime] = {}


def runtime_of(found: FoundDevice, label: str) -> DeviceRuntime:
    """Return the runtime of a device, which is created on the first call.

    Args:
        found: the device.
        label: ``opencl`` or ``opencl:1``, the name of its memory space.
    """
    key = (found.device.int_ptr, label)
    with _lock:
        if key not in _runtimes:
            _runtimes[key] = DeviceRuntime(found, label)
        return _runtimes[key]


def started_runtimes() -> list[DeviceRuntime]:
    """Return the runtimes that the process has created so far."""
    with _lock:
        return list(_runtimes.values())
