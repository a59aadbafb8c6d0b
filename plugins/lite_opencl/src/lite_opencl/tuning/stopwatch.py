"""Measurement of steps by the device's clock, before their partition is compiled."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyopencl as cl

from lite_compiler.tournaments.turns import Run, compare_in_turns
from lite_opencl.device.errors import OpenClError, opencl_call
from lite_opencl.device.images import ConstantImage
from lite_opencl.device.memory import Allocation
from lite_opencl.device.runtime import DeviceRuntime
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Storage, Tensor

__all__ = ["MeasurableStep", "Stopwatch"]

logger = logging.getLogger("lite.opencl.tuning")


class MeasurableStep(Protocol):
    """A call of a kernel whose time can be measured; lowering plans such calls.

    Attributes:
        kernel: the kernel to run.
        arguments: in the order of its parameters; a tensor becomes its buffer and the offset of its first element.
        global_size: number of work items in each of three dimensions.
    """

    @property
    def kernel(self) -> KernelSource: ...

    @property
    def arguments(self) -> Sequence[Tensor | ConstantImage | np.generic]: ...

    @property
    def global_size(self) -> tuple[int, int, int]: ...


class _Trial:
    """Steps with separate memory, ready to be enqueued."""

    def __init__(self, steps: Sequence[MeasurableStep], runtime: DeviceRuntime) -> None:
        self._runtime = runtime
        self._memories: dict[Storage, Allocation] = {}
        runtime.programs.load(step.kernel for step in steps)
        with opencl_call(runtime.name, "preparing a measurement"):
            self._calls = [(self._bound(step), step.global_size, step.kernel.local) for step in steps]
            self.run()  # a driver may still compile at the first launch

    def _bound(self, step: MeasurableStep) -> cl.Kernel:
        kernel = self._runtime.programs.kernel(self._runtime.programs.key(step.kernel), step.kernel.name)
        position = 0
        for argument in step.arguments:
            if isinstance(argument, Tensor):
                kernel.set_arg(position, self._memory(argument.storage).buffer)
                first = argument.storage.offset // argument.dtype.itemsize + argument.offset
                kernel.set_arg(position + 1, np.uint64(first))
                position += 2
            else:
                kernel.set_arg(position, self._image(argument) if isinstance(argument, ConstantImage) else argument)
                position += 1
        return kernel

    def _image(self, argument: ConstantImage) -> cl.Image:
        return self._runtime.images.get(argument.constant, argument.tensor.dtype)

    def _memory(self, storage: Storage) -> Allocation:
        """Return the memory of a constant, else zeros: arbitrary bytes might be numbers that compute slowly."""
        if isinstance(storage.memory, Allocation):
            return storage.memory
        allocation = self._memories.get(storage)
        if allocation is None:
            allocation = self._memories[storage] = self._runtime.memory.allocate_bytes(storage.bytes)
            queue, size = self._runtime.profiling_queue, max(storage.bytes, 1)
            cl.enqueue_fill_buffer(queue, allocation.buffer, np.uint8(0), 0, size)
        return allocation

    def run(self) -> float:
        """Run the steps and return the seconds from the beginning of the first one to the end of the last one."""
        queue = self._runtime.profiling_queue
        with opencl_call(self._runtime.name, "measuring"):
            events = [cl.enqueue_nd_range_kernel(queue, *call) for call in self._calls]
            if not events:
                return 0.0
            cl.wait_for_events(events)
            return 1e-9 * (events[-1].profile.end - events[0].profile.start)


class Stopwatch:
    """A comparison of steps on a device.

    Args:
        runtime: the runtime of the device.
    """

    def __init__(self, runtime: DeviceRuntime) -> None:
        self._runtime = runtime

    def __call__(self, steps: Sequence[MeasurableStep], others: Sequence[MeasurableStep]) -> tuple[float, float]:
        """Return the shortest of several interleaved times of both lists, in seconds; infinity for steps that fail."""
        return compare_in_turns(self._run_of(steps), self._run_of(others), logger)

    def _run_of(self, steps: Sequence[MeasurableStep]) -> Run | None:
        try:
            return _Trial(steps, self._runtime).run
        except OpenClError as error:
            logger.info("a candidate is left out: %s", error)
            return None
