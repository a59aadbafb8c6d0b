"""The memory of a run in which values between kernels are read and replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_compiler.observing import ARENA
from lite_core.ir import DType, TensorType
from lite_opencl.device.memory import DeviceArray, DeviceMemory

__all__ = ["DeviceMemories"]

Array = np.ndarray[Any, Any]


class DeviceMemories(NamedTuple):
    """The memory of a run on a device; what is loaded is a copy.

    Attributes:
        device: the memory space.
        arena: the arena, if there is one.
        outputs: the outputs of the partition.
    """

    device: DeviceMemory
    arena: Sequence[DeviceArray]
    outputs: Sequence[DeviceArray]

    def load(self, memory: int, begin: int, end: int) -> Array:
        """Return the bytes of a part of a memory."""
        return self.device.download(self._part(memory, begin, end - begin))

    def store(self, memory: int, begin: int, content: Array) -> None:
        """Write bytes to where they came from."""
        self.device.upload(content, self._part(memory, begin, content.nbytes))

    def _part(self, memory: int, begin: int, size: int) -> DeviceArray:
        whole = self.arena[0] if memory == ARENA else self.outputs[memory - 1]
        return DeviceArray(whole.allocation, whole.offset + begin, TensorType(DType.UINT8, (size,)))
