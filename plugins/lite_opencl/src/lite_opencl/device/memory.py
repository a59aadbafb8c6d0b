"""Device memory: allocations, and tensors that lie in them."""

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
from lite_opencl.device.pinned import PinnedPool

__all__ = ["Allocation", "DeviceArray", "DeviceMemory", "SharedMemory", "memory_for"]

Array = np.ndarray[Any, Any]

#: Bytes of the widest vector that a kernel loads: constants that begin elsewhere would slow down every run.
_CONSTANT_ALIGNMENT = 64

#: Where an array of the host must begin for a processor's device to work in it: kernels take elements, and vectors of
#: them, that begin at any multiple of an element's size.
_PROCESSOR_ALIGNMENT = 8

#: The same for a GPU that shares main memory: it maps whole pages, and drivers copy what begins elsewhere.
_PAGE_BYTES = 4096


class Allocation:
    """A buffer of OpenCL, freed when nothing refers to it any more. Can be referred to weakly."""

    __slots__ = ("__weakref__", "buffer", "bytes")

    def __init__(self, buffer: cl.Buffer, bytes: int) -> None:
        self.buffer = buffer
        self.bytes = bytes


class DeviceArray(NamedTuple):
    """Storage of a tensor: where it lies in an allocation, in bytes, and its type."""

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
    """The memory space of one device; what goes there and back passes through page-locked main memory.

    Transfers have a queue of their own, so that they wait for no other thread's kernels. They need no order beyond
    that: every run and every transfer is over when its function returns.

    Args:
        context: of OpenCL, with the one device.
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
        """Storage for a tensor of a static type; its content is undefined."""
        shape = evaluate_shape(type.shape or (), {})
        return DeviceArray(self.allocate_bytes(prod(shape) * type.dtype.itemsize), 0, type)

    def allocate_bytes(self, size: int) -> Allocation:
        """Memory of at least ``size`` bytes; OpenCL has no empty buffers."""
        with opencl_call(self._device, f"allocating {size} bytes"):
            return Allocation(cl.Buffer(self._context, self._flags, max(size, 1)), size)

    def constant(self, array: Array) -> DeviceArray:
        """Storage of an array that is never to change."""
        return self.uploaded(array)

    def upload(self, array: Array, data: DeviceArray) -> None:
        """Copy a host array into storage; done when this returns."""
        if array.nbytes:
            with opencl_call(self._device, f"uploading {array.nbytes} bytes"):
                self._upload(_bytes(np.ascontiguousarray(array)), data)

    def uploaded(self, array: Array) -> DeviceArray:
        """Storage of its own with the elements of an array."""
        data = self.allocate(TensorType.of_array(array))
        self.upload(array, data)
        return data

    def download(self, data: DeviceArray) -> Array:
        """A host copy of storage; the caller owns it."""
        array = np.empty(data.shape, data.type.dtype.numpy)
        if array.nbytes:
            with opencl_call(self._device, f"downloading {array.nbytes} bytes"):
                self._download(data, _bytes(array))
        return array

    def view(self, data: DeviceArray, offset: int, type: TensorType) -> DeviceArray:
        """Storage of a tensor that lies ``offset`` bytes, a multiple of 64, into other storage."""
        return DeviceArray(data.allocation, data.offset + offset, type)

    def _upload(self, source: Array, data: DeviceArray) -> None:
        self._pinned.upload(source, data.allocation.buffer, data.offset)

    def _download(self, data: DeviceArray, target: Array) -> None:
        self._pinned.download(data.allocation.buffer, data.offset, target)


class SharedMemory(DeviceMemory, SharesHostMemory):
    """The memory space of a device that works in main memory.

    Its tensors may be arrays of the host. What is copied all the same is copied into a mapped buffer, or out of one.
    """

    _flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR

    def __init__(self, context: cl.Context, found: FoundDevice, space: str) -> None:
        super().__init__(context, found, space)
        self.wrap_alignment = _PAGE_BYTES if found.is_gpu else _PROCESSOR_ALIGNMENT

    def wrap(self, array: Array) -> DeviceArray:
        """Storage that is a host array itself. There is no size below which a copy is faster.

        On PoCL it takes 1 to 2 µs at any size; a copy takes 28 µs for 4 bytes and 80 µs for an image of 600 KB.
        """
        access = cl.mem_flags.READ_WRITE if array.flags.writeable else cl.mem_flags.READ_ONLY
        with opencl_call(self._device, f"giving it {array.nbytes} bytes of main memory"):
            buffer = cl.Buffer(self._context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=_bytes(array))
        return DeviceArray(Allocation(buffer, array.nbytes), 0, TensorType.of_array(array))

    def synchronize(self, data: DeviceArray) -> None:
        """Let the host see what has been written into a wrapped array: a driver may keep it elsewhere meanwhile."""
        with opencl_call(self._device, f"taking back {data.bytes} bytes of main memory"):
            self._map(data, cl.map_flags.READ, is_blocking=False).base.release(self._queue).wait()

    def constant(self, array: Array) -> DeviceArray:
        """The array itself where it lies well, else a copy."""
        lies_well = array.flags.c_contiguous and array.nbytes and array.ctypes.data % _CONSTANT_ALIGNMENT == 0
        return self.wrap(read_only(array)) if lies_well else self.uploaded(array)

    def _upload(self, source: Array, data: DeviceArray) -> None:
        with self._mapped(data, cl.map_flags.WRITE_INVALIDATE_REGION) as mapped:
            np.copyto(mapped, source)

    def _download(self, data: DeviceArray, target: Array) -> None:
        with self._mapped(data, cl.map_flags.READ) as mapped:
            np.copyto(target, mapped)

    @contextmanager
    def _mapped(self, data: DeviceArray, flags: cl.map_flags) -> Iterator[Array]:
        """The bytes of storage in main memory, for the body."""
        mapped = self._map(data, flags, is_blocking=True)
        try:
            yield mapped
        finally:
            # NOTE: kernels go into another queue, which does not wait for this one.
            mapped.base.release(self._queue).wait()

    def _map(self, data: DeviceArray, flags: cl.map_flags, *, is_blocking: bool) -> Any:
        buffer, shape, bytes_ = data.allocation.buffer, (data.bytes,), np.dtype(np.uint8)
        return cl.enqueue_map_buffer(self._queue, buffer, flags, data.offset, shape, bytes_, is_blocking=is_blocking)[0]


def memory_for(context: cl.Context, found: FoundDevice, space: str) -> DeviceMemory:
    """The memory of a device, by whether it works in main memory; arguments as for :class:`DeviceMemory`."""
    return (SharedMemory if found.unified_memory else DeviceMemory)(context, found, space)


def _bytes(array: Array) -> Array:
    """The bytes of a contiguous array."""
    flat: Array = array.reshape(-1).view(np.uint8)
    return flat
