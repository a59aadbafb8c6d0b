"""Device memory: allocations, and tensors in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from lite_core.backend import Memory, SharesHostMemory, ViewsMemory
from lite_core.ir import TensorType, evaluate_shape
from lite_core.memory import read_only
from lite_opencl.device.devices import FoundDevice
from lite_opencl.device.errors import opencl_call
from lite_opencl.device.mapping import unmap
from lite_opencl.device.pinned import PinnedPool

__all__ = ["Allocation", "DeviceArray", "DeviceMemory", "SharedMemory", "memory_for"]

Array = np.ndarray[Any, Any]

#: Bytes of the widest vector that a kernel loads: unaligned constants would slow down every run.
_CONSTANT_ALIGNMENT = 64

#: Alignment in bytes that a host array needs for a processor device to work in it: kernels load elements, and vectors
#: of them, from any multiple of an element's size.
_PROCESSOR_ALIGNMENT = 8

#: The same for a GPU that shares main memory: it maps whole pages, and drivers copy arrays that are not page-aligned.
_PAGE_BYTES = 4096


class Allocation:
    """An OpenCL buffer that is freed with the last reference to it. Supports weak references."""

    __slots__ = ("__weakref__", "buffer", "bytes")

    def __init__(self, buffer: cl.Buffer, bytes: int) -> None:
        self.buffer = buffer
        self.bytes = bytes


class DeviceArray(NamedTuple):
    """Storage of a tensor: its allocation, its offset there in bytes, and its type."""

    allocation: Allocation
    offset: int
    type: TensorType

    @property
    def shape(self) -> tuple[int, ...]:
        return evaluate_shape(self.type.shape or (), {})

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.type.dtype.itemsize


class DeviceMemory(Memory, ViewsMemory):
    """The memory space of one device; transfers in both directions pass through page-locked main memory.

    Transfers have their own queue, so that they wait for no other thread's kernels. They need no further ordering:
    every run and every transfer is finished when its function returns.

    Args:
        context: the OpenCL context with this one device.
        found: the device.
        space: the name of the memory space.
    """

    _flags: int = cl.mem_flags.READ_WRITE

    def __init__(self, context: cl.Context, found: FoundDevice, space: str) -> None:
        self.space = space
        self._context = context
        self._device = found.name
        with opencl_call(self._device, "creating a command queue"):
            self._queue = cl.CommandQueue(context)
        self._pinned = PinnedPool(context, self._queue)

    def allocate(self, type: TensorType) -> DeviceArray:
        """Return storage for a tensor of a static type; its content is undefined."""
        shape = evaluate_shape(type.shape or (), {})
        return DeviceArray(self.allocate_bytes(prod(shape) * type.dtype.itemsize), 0, type)

    def allocate_bytes(self, size: int) -> Allocation:
        """Return memory of at least ``size`` bytes, and at least one: OpenCL has no empty buffers."""
        with opencl_call(self._device, f"allocating {size} bytes"):
            return Allocation(cl.Buffer(self._context, self._flags, max(size, 1)), size)

    def constant(self, array: Array) -> DeviceArray:
        """Return storage of an array that never changes."""
        return self.uploaded(array)

    def upload(self, array: Array, data: DeviceArray) -> None:
        """Copy a host array into storage; the copy is complete when this returns."""
        if array.nbytes:
            with opencl_call(self._device, f"uploading {array.nbytes} bytes"):
                self._upload(_bytes(np.ascontiguousarray(array)), data)

    def uploaded(self, array: Array) -> DeviceArray:
        """Return new storage with the elements of an array."""
        data = self.allocate(TensorType.of_array(array))
        self.upload(array, data)
        return data

    def download(self, data: DeviceArray) -> Array:
        """Return a host copy of storage; the caller owns it."""
        array = np.empty(data.shape, data.type.dtype.numpy)
        if array.nbytes:
            with opencl_call(self._device, f"downloading {array.nbytes} bytes"):
                self._download(data, _bytes(array))
        return array

    def view(self, data: DeviceArray, offset: int, type: TensorType) -> DeviceArray:
        """Return storage of a tensor that begins ``offset`` bytes, a multiple of 64, into other storage."""
        return DeviceArray(data.allocation, data.offset + offset, type)

    def _upload(self, source: Array, data: DeviceArray) -> None:
        self._pinned.upload(source, data.allocation.buffer, data.offset)

    def _download(self, data: DeviceArray, target: Array) -> None:
        self._pinned.download(data.allocation.buffer, data.offset, target)


class SharedMemory(DeviceMemory, SharesHostMemory):
    """The memory space of a device that works in main memory.

    Its tensors may be host arrays. Arrays that must be copied are copied into mapped buffers, or out of them.
    """

    _flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR

    def __init__(self, context: cl.Context, found: FoundDevice, space: str) -> None:
        super().__init__(context, found, space)
        self.wrap_alignment = _PAGE_BYTES if found.is_gpu else _PROCESSOR_ALIGNMENT

    def wrap(self, array: Array) -> DeviceArray:
        """Return storage that is the host array itself. This is faster than a copy at any size.

        On PoCL it takes 1 to 2 µs at any size; a copy takes 28 µs for 4 bytes and 80 µs for an image of 600 KB.
        """
        access = cl.mem_flags.READ_WRITE if array.flags.writeable else cl.mem_flags.READ_ONLY
        with opencl_call(self._device, f"wrapping {array.nbytes} bytes of main memory"):
            buffer = cl.Buffer(self._context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=_bytes(array))
        return DeviceArray(Allocation(buffer, array.nbytes), 0, TensorType.of_array(array))

    def synchronize(self, data: DeviceArray) -> None:
        """Make writes to a wrapped array visible to the host: a driver may have kept them in other memory."""
        with opencl_call(self._device, f"synchronizing {data.bytes} bytes of main memory"):
            unmap(self._map(data, cl.map_flags.READ, is_blocking=False), self._queue).wait()

    def constant(self, array: Array) -> DeviceArray:
        """Return the array itself if it is contiguous and aligned, else a copy."""
        is_aligned = array.flags.c_contiguous and array.nbytes and array.ctypes.data % _CONSTANT_ALIGNMENT == 0
        return self.wrap(read_only(array)) if is_aligned else self.uploaded(array)

    def _upload(self, source: Array, data: DeviceArray) -> None:
        with self._mapped(data, cl.map_flags.WRITE_INVALIDATE_REGION) as mapped:
            np.copyto(mapped, source)

    def _download(self, data: DeviceArray, target: Array) -> None:
        with self._mapped(data, cl.map_flags.READ) as mapped:
            np.copyto(target, mapped)

    @contextmanager
    def _mapped(self, data: DeviceArray, flags: cl.map_flags) -> Iterator[Array]:
        """Map the bytes of storage into main memory for the body."""
        mapped = self._map(data, flags, is_blocking=True)
        try:
            yield mapped
        finally:
            # NOTE: kernels run in another queue, which does not wait for this one.
            unmap(mapped, self._queue).wait()

    def _map(self, data: DeviceArray, flags: cl.map_flags, *, is_blocking: bool) -> Any:
        buffer, shape, bytes_ = data.allocation.buffer, (data.bytes,), np.dtype(np.uint8)
        return cl.enqueue_map_buffer(self._queue, buffer, flags, data.offset, shape, bytes_, is_blocking=is_blocking)[0]


def memory_for(context: cl.Context, found: FoundDevice, space: str) -> DeviceMemory:
    """Return the memory space that fits a device; the arguments are those of :class:`DeviceMemory`."""
    return (SharedMemory if found.unified_memory else DeviceMemory)(context, found, space)


def _bytes(array: Array) -> Array:
    """Return the bytes of a contiguous array."""
    flat: Array = array.reshape(-1).view(np.uint8)
    return flat
