"""Storage with guard zones on both sides, so that a write past the end is seen."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from lite_conformance.drive.backend_call import backend_call
from lite_conformance.judge.compare import Array
from lite_conformance.judge.outcome import Failure
from lite_core.backend import Memory, ViewsMemory
from lite_core.ir import DType, TensorType, evaluate_shape
from lite_core.memory import HostMemory

__all__ = ["POISON", "GuardedStorage", "Storage", "download"]

# Bytes on each side; a multiple of every alignment that kernels ask for.
_ZONE = 1024
_PATTERN = 0xA5
#: Prefilled into outputs: as float of any width a NaN, as bool neither true nor false.
POISON = 0xFF


def download(memory: Memory, data: Any) -> Array:
    """A host copy of storage.

    Raises:
        Failure: the memory raised, or gave something that is no array.
    """
    with backend_call("Memory.download()"):
        array = memory.download(data)
    if not isinstance(array, np.ndarray):
        raise Failure(f"Memory.download() must give a NumPy array, gave {type(array).__name__}")
    return array


class Storage(Protocol):
    """A tensor that a run reads or writes, and what it can tell afterwards."""

    type: TensorType
    #: What ``Buffer.data`` is.
    data: Any

    def fill(self, array: Array) -> None: ...
    def poison(self) -> None: ...
    def read(self) -> Array: ...
    def breach(self) -> str | None: ...


class GuardedStorage:
    """Storage of one tensor in a memory space, between two guard zones where the memory can.

    Args:
        memory: where it lies.
        type: the tensor's static type.
    """

    def __init__(self, memory: Memory, type: TensorType) -> None:
        self.memory = memory
        self.type = type
        shape = evaluate_shape(type.shape or (), {})
        self.shape = tuple(int(d) for d in shape)
        self._bytes = int(np.prod(self.shape, dtype=np.int64)) * type.dtype.itemsize
        self._block: Any = None
        if isinstance(memory, ViewsMemory):
            size = -(-self._bytes // 64) * 64 + 2 * _ZONE + 64
            block_type = TensorType(DType.UINT8, (size,))
            with backend_call("Memory.allocate()"):
                self._block = memory.allocate(block_type)
            self._upload(np.full(size, _PATTERN, np.uint8), self._block)
            self._offset = _ZONE + _to_alignment(memory, self._block)
            with backend_call("Memory.view()"):
                self.data = memory.view(self._block, self._offset, type)
        else:
            with backend_call("Memory.allocate()"):
                self.data = memory.allocate(type)

    def fill(self, array: Array) -> None:
        """Copy a host array in."""
        self._upload(np.ascontiguousarray(array).reshape(self.shape), self.data)

    def poison(self) -> None:
        """Initializer with NaN, or, where the type has none, with all bits set."""
        self.fill(np.full(self._bytes, POISON, np.uint8).view(self.type.dtype.numpy).reshape(self.shape))

    def read(self) -> Array:
        """A host copy of the tensor."""
        return download(self.memory, self.data)

    def breach(self) -> str | None:
        """Where the guard zones were written, or None."""
        if self._block is None:
            return None
        block = download(self.memory, self._block)
        if block.dtype != np.uint8 or block.ndim != 1:
            raise Failure(f"Memory.download() gave {block.dtype}{list(block.shape)} for storage of uint8 elements")
        before = np.flatnonzero(block[: self._offset] != _PATTERN)
        if before.size:
            return f"{self._offset - int(before[0])} byte(s) before its beginning"
        after = np.flatnonzero(block[self._offset + self._bytes :] != _PATTERN)
        return f"{int(after[-1]) + 1} byte(s) past its end" if after.size else None

    def _upload(self, array: Array, data: Any) -> None:
        with backend_call("Memory.upload()"):
            self.memory.upload(array, data)


def _to_alignment(memory: Memory, block: Any) -> int:
    """Bytes to the next multiple of 64 in main memory.

    NOTE: a kernel may sum in another order where its data begins elsewhere, so equal bits need equal alignment.
    """
    return -block.ctypes.data % 64 if isinstance(memory, HostMemory) else 0
