"""Main memory as a memory space."""

from __future__ import annotations

import numpy as np

from lite_core.errors import ExecutionError
from lite_core.ir import Array, DType, TensorType, evaluate_shape

__all__ = ["ALIGNMENT", "HostMemory", "read_only"]

#: Bytes of a cache line, and of the widest vector.
ALIGNMENT = 64


class HostMemory:
    """The memory space of main memory; storage is a NumPy array."""

    space = "host"

    def allocate(self, type: TensorType) -> Array:
        try:
            return np.empty(type.shape or (), type.dtype.numpy)
        except (MemoryError, ValueError) as error:  # ValueError: more than any machine can address
            raise ExecutionError(f"there is not enough memory for a tensor {type}: {error}") from error

    def aligned_bytes(self, size: int, alignment: int = ALIGNMENT) -> Array:
        """Allocate ``size`` bytes, with undefined content, that begin at a multiple of ``alignment`` bytes."""
        block = self.allocate(TensorType(DType.UINT8, (size + alignment,)))
        return block[-block.ctypes.data % alignment :][:size]

    def upload(self, array: Array, data: Array) -> None:
        np.copyto(data, array)

    def download(self, data: Array) -> Array:
        copy: Array = data.copy()
        return copy

    def view(self, data: Array, offset: int, type: TensorType) -> Array:
        shape = evaluate_shape(type.shape or (), {})
        view: Array = np.ndarray(shape, type.dtype.numpy, buffer=data.data, offset=offset)
        return view


def read_only(array: Array) -> Array:
    """Return a read-only view, for code that must not change its inputs."""
    view: Array = array.view()
    view.setflags(write=False)
    return view
