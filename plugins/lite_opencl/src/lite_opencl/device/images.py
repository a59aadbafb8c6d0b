"""Constants that kernels read as images, through the texture cache that some GPUs have beside the buffer cache.

An image is a view of a constant's buffer: nothing is copied, and one upload serves kernels that read buffers and
kernels that read images. Four neighbouring elements are a texel, which ``read_imagef`` returns as a ``float4``, even
if the elements are 16-bit floats.
"""

from __future__ import annotations

import weakref
from typing import NamedTuple

import pyopencl as cl

from lite_core.forking import new_lock
from lite_core.ir import DType
from lite_opencl.device.devices import FoundDevice
from lite_opencl.device.errors import opencl_call
from lite_opencl.device.memory import Allocation
from lite_opencl.tensors import Tensor

__all__ = ["TEXEL", "ConstantImage", "ImagePool", "fits_image"]

#: Elements of a texel. NOTE: before OpenCL 2.0, devices need not have formats with fewer elements.
TEXEL = 4

_FORMATS = {DType.FLOAT32: cl.channel_type.FLOAT, DType.FLOAT16: cl.channel_type.HALF_FLOAT}


class ConstantImage(NamedTuple):
    """A whole constant as an argument of a kernel: one ``read_only image1d_buffer_t``."""

    tensor: Tensor

    @property
    def constant(self) -> Allocation:
        """The allocation that holds the elements."""
        memory = self.tensor.storage.memory
        assert isinstance(memory, Allocation)
        return memory


def fits_image(device: FoundDevice, dtype: DType, size: int) -> bool:
    """Return True if the device can read ``size`` elements of a type as an image."""
    return dtype in _FORMATS and size % TEXEL == 0 and 0 < size // TEXEL <= device.image_texels


class ImagePool:
    """The images of one device. Each lives as long as its constant. Thread-safe.

    Args:
        context: the OpenCL context of the device.
        device: the name of the device, for messages.
    """

    def __init__(self, context: cl.Context, device: str) -> None:
        self._context = context
        self._device = device
        self._lock = new_lock()
        self._images: weakref.WeakKeyDictionary[Allocation, cl.Image] = weakref.WeakKeyDictionary()

    def get(self, constant: Allocation, dtype: DType) -> cl.Image:
        """Return all elements of a constant of this type as an image.

        NOTE: OpenCL kernels do not keep their arguments alive: the user of the image must hold the constant.
        """
        with self._lock:
            image = self._images.get(constant)
            if image is None:
                texels = constant.bytes // (TEXEL * dtype.itemsize)
                layout = cl.ImageFormat(cl.channel_order.RGBA, _FORMATS[dtype])
                with opencl_call(self._device, f"making an image of {constant.bytes} bytes"):
                    image = cl.create_image(
                        self._context, cl.mem_flags.READ_ONLY, layout, (texels,), buffer=constant.buffer
                    )
                self._images[constant] = image
            return image
