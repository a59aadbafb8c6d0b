"""Storage with guards on both sides, which detect writes outside it.

In memory with views, the guards are zones of the same block. In memory without views, such as one of immutable arrays,
they are storage of their own, allocated directly before and after the tensor's: a result that is stored in the wrong
place, or beyond its end in an arena, changes them.
"""

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

# Bytes on each side; a multiple of every alignment that kernels require.
_ZONE = 1024
_PATTERN = 0xA5
#: Byte that outputs are prefilled with: NaN in every floating type, and neither true nor false as a bool.
POISON = 0xFF


def download(memory: Memory, data: Any) -> Array:
    """Return a copy of storage on the host.

    Raises:
        Failure: the memory raised, or returned something that is not an array.
    """
    with backend_call("Memory.download()"):
        array = memory.download(data)
    if not isinstance(array, np.ndarray):
        raise Failure(f"Memory.download() must return a NumPy array, returned {type(array).__name__}")
    return array


class Storage(Protocol):
    """The storage of a tensor that a run reads or writes, checkable afterwards."""

    type: TensorType
    #: The value for ``Buffer.data``.
    data: Any

    def store(self, array: Array) -> None: ...
    def poison(self) -> None: ...
    def read(self) -> Array: ...
    def breach(self) -> str | None: ...


class GuardedStorage:
    """Storage of one tensor between two guards; see the module's docstring.

    Args:
        memory: the memory space to allocate in.
        type: the tensor's static type.
    """

    def __init__(self, memory: Memory, type: TensorType) -> None:
        self.memory = memory
        self.type = type
        shape = evaluate_shape(type.shape or (), {})
        self.shape = tuple(int(d) for d in shape)
        self._bytes = int(np.prod(self.shape, dtype=np.int64)) * type.dtype.itemsize
        self._block: Any = None
        self._pattern = np.full(_ZONE, _PATTERN, np.uint8)
        self._neighbours: dict[str, Any] = {}
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
            before = self._neighbour()
            with backend_call("Memory.allocate()"):
                self.data = memory.allocate(type)
            self._neighbours = {"before": before, "after": self._neighbour()}

    def store(self, array: Array) -> None:
        """Copy a host array in."""
        self._upload(np.ascontiguousarray(array).reshape(self.shape), self.data)

    def poison(self) -> None:
        """Set all bits: NaN in floating types."""
        self.store(np.full(self._bytes, POISON, np.uint8).view(self.type.dtype.numpy).reshape(self.shape))

    def read(self) -> Array:
        """Return a copy of the tensor on the host."""
        return download(self.memory, self.data)

    def breach(self) -> str | None:
        """Return where the guards were written, or None."""
        for place, neighbour in self._neighbours.items():
            found = download(self.memory, neighbour)
            if not np.array_equal(found, self._pattern):
                return f"the storage that was allocated directly {place} it now holds {_difference(found)}"
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

    def _neighbour(self) -> Any:
        with backend_call("Memory.allocate()"):
            neighbour = self.memory.allocate(TensorType(DType.UINT8, (_ZONE,)))
        self._upload(self._pattern, neighbour)
        return neighbour

    def _upload(self, array: Array, data: Any) -> None:
        with backend_call("Memory.upload()"):
            self.memory.upload(array, data)


def _difference(found: Array) -> str:
    if found.dtype != np.uint8 or found.shape != (_ZONE,):
        return f"{found.dtype}{list(found.shape)}"
    return f"{np.count_nonzero(found != _PATTERN)} other byte(s)"


def _to_alignment(memory: Memory, block: Any) -> int:
    """Return the bytes to the next multiple of 64 in main memory, and 0 in other memories.

    NOTE: a kernel's order of summation may depend on the alignment of its data, so equal bits need equal alignment.
    """
    return -block.ctypes.data % 64 if isinstance(memory, HostMemory) else 0
