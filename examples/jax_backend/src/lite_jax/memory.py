"""A memory of immutable arrays: a tensor's storage holds an array, which is replaced as a whole."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from lite_core import TensorType
from lite_core.backend import Memory
from lite_core.ir import Array

__all__ = ["JaxMemory", "Storage"]


class Storage:
    """The storage of one tensor on a JAX device; ``array`` is None until something is stored."""

    __slots__ = ("array", "type")

    def __init__(self, type: TensorType) -> None:
        self.type = type
        self.array: Any = None


class JaxMemory(Memory):
    """The memory of a JAX device. It has no views, so Lite allocates every tensor between partitions separately."""

    def __init__(self, device: Any) -> None:
        self.space = f"jax {device.platform} {device.id}"
        self._device = device

    def allocate(self, type: TensorType) -> Storage:
        return Storage(type)

    def upload(self, array: Array, data: Storage) -> None:
        # NOTE: without the copy, JAX would read the caller's array, which may change after this call.
        copied = np.empty(array.shape, data.type.dtype.numpy)
        copied[...] = array
        with jax.enable_x64(True):
            data.array = jax.device_put(copied, self._device)

    def download(self, data: Storage) -> Array:
        if data.array is None:  # allocated, and never written
            return np.zeros(data.type.shape, data.type.dtype.numpy)
        return np.array(data.array)
