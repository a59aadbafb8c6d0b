"""Zero copy: arrays in main memory that a device uses directly."""

from __future__ import annotations

from math import prod
from typing import Protocol, TypeGuard

from lite_core.backend import Memory, SharesHostMemory
from lite_core.ir import Array, TensorType, evaluate_shape
from lite_core.memory.host_memory import HostMemory

__all__ = ["SharingMemory", "can_share", "is_shareable", "new_array"]

#: Guaranteed alignment of arrays that NumPy allocates, on every 64-bit platform.
_NUMPY_ALIGNMENT = 16


class SharingMemory(Memory, SharesHostMemory, Protocol):
    """A memory space with zero copy."""


def can_share(memory: Memory) -> TypeGuard[SharingMemory]:
    """Return True if arrays in main memory can be tensors of the memory space."""
    return hasattr(memory, "wrap")  # isinstance(memory, SharesHostMemory) is too slow to be called in each run


def is_shareable(array: Array, memory: Memory) -> bool:
    """Return True if ``memory.wrap`` accepts this array."""
    if not can_share(memory) or not array.nbytes or not array.flags.c_contiguous or not array.flags.aligned:
        return False
    return bool(array.__array_interface__["data"][0] % memory.wrap_alignment == 0)


def new_array(type: TensorType, memory: SharingMemory) -> Array:
    """Allocate an array of a static type, with undefined content, that ``memory.wrap`` accepts unless it is empty."""
    if memory.wrap_alignment <= _NUMPY_ALIGNMENT:
        return HostMemory().allocate(type)
    shape = evaluate_shape(type.shape or (), {})
    size = prod(shape) * type.dtype.itemsize
    return HostMemory().aligned_bytes(size, memory.wrap_alignment).view(type.dtype.numpy).reshape(shape)
