"""Device memory: allocations, and tensors that lie in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyopencl as cl

from lite_core.ir import TensorType, evaluate_shape
from lite_opencl.errors import opencl_call

if TYPE_CHECKING:
    from lite_opencl.runtime import DeviceRuntime

__all__ = ["Allocation", "DeviceArray", "DeviceMemory"]

Array = np.ndarray[Any, Any]

#: Bytes of the widest vector that a kernel loads.
_ALIGNMENT = 64


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


class DeviceMemory:
    """The memory space of one device.

    Where the device shares main memory with the processor, buffers are mapped instead of copied through a staging
    buffer of the driver.
    """

    def __init__(self, runtime: DeviceRuntime, space: str) -> None:
        self.space = space
        self._runtime = runtime

    def allocate(self, type: TensorType) -> DeviceArray:
        """Storage for a tensor of a static type; its content is undefined."""
        shape = evaluate_shape(type.shape or (), {})
        return DeviceArray(self.allocate_bytes(prod(shape) * type.dtype.itemsize), 0, type)

    def allocate_bytes(self, size: int) -> Allocation:
        """Memory of at least ``size`` bytes; OpenCL has no empty buffers."""
        runtime = self._runtime
        flags = cl.mem_flags.READ_WRITE | (cl.mem_flags.ALLOC_HOST_PTR if runtime.unified_memory else 0)
        with opencl_call(runtime.name, f"allocating {size} bytes"):
            return Allocation(cl.Buffer(runtime.context, flags, max(size, 1)), size)

    def constant(self, array: Array) -> DeviceArray:
        """Storage of an array that is never to change: the array itself where the device works in main memory."""
        type, runtime = TensorType.of_array(array), self._runtime
        aligned = array.flags.c_contiguous and array.nbytes and array.ctypes.data % _ALIGNMENT == 0
        if not (runtime.unified_memory and aligned):
            return self.uploaded(array)
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.USE_HOST_PTR
        with opencl_call(runtime.name, f"giving it {array.nbytes} bytes of main memory"):
            buffer = cl.Buffer(runtime.context, flags, hostbuf=array.reshape(-1).view(np.uint8))
        return DeviceArray(Allocation(buffer, array.nbytes), 0, type)

    def upload(self, array: Array, data: DeviceArray) -> None:
        """Copy a host array into storage; done when this returns."""
        if array.nbytes:
            source = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            runtime = self._runtime
            with opencl_call(runtime.name, f"uploading {array.nbytes} bytes"):
                if runtime.unified_memory:
                    with self._mapped(data, cl.map_flags.WRITE_INVALIDATE_REGION) as mapped:
                        np.copyto(mapped, source)
                else:
                    cl.enqueue_copy(runtime.queue, data.allocation.buffer, source, dst_offset=data.offset)

    def uploaded(self, array: Array) -> DeviceArray:
        """Storage of its own with the elements of an array."""
        data = self.allocate(TensorType.of_array(array))
        self.upload(array, data)
        return data

    def download(self, data: DeviceArray) -> Array:
        """A host copy of storage; the caller owns it."""
        array = np.empty(data.shape, data.type.dtype.numpy)
        if array.nbytes:
            target = array.reshape(-1).view(np.uint8)
            runtime = self._runtime
            with opencl_call(runtime.name, f"downloading {array.nbytes} bytes"):
                if runtime.unified_memory:
                    with self._mapped(data, cl.map_flags.READ) as mapped:
                        np.copyto(target, mapped)
                else:
                    cl.enqueue_copy(runtime.queue, target, data.allocation.buffer, src_offset=data.offset)
        return array

    def view(self, data: DeviceArray, offset: int, type: TensorType) -> DeviceArray:
        """Storage of a tensor that lies ``offset`` bytes, a multiple of 64, into other storage."""
        return DeviceArray(data.allocation, data.offset + offset, type)

    @contextmanager
    def _mapped(self, data: DeviceArray, flags: cl.map_flags) -> Iterator[Array]:
        """The bytes of storage in main memory, for the body."""
        queue, buffer = self._runtime.queue, data.allocation.buffer
        shape, bytes_ = (data.bytes,), np.dtype(np.uint8)
        mapped: Any = cl.enqueue_map_buffer(queue, buffer, flags, data.offset, shape, bytes_, is_blocking=True)[0]
        try:
            yield mapped
        finally:
            mapped.base.release(queue)
