"""Conversion of arrays to ``TensorProto``, stored in the model itself or in an external file."""

from __future__ import annotations

import sys
from typing import Any, BinaryIO, Protocol

import numpy as np
from onnx import StringStringEntryProto, TensorProto

from lite_core.ir import DType
from lite_onnx.reader.element_types import onnx_number

__all__ = ["MAX_INLINE_BYTES", "Constants", "ExternalConstants", "InlineConstants", "tensor_proto"]

Array = np.ndarray[Any, Any]

#: The maximum size of all constants in the model itself: protobuf messages are limited to 2 GiB, nodes included.
MAX_INLINE_BYTES = 2**31 - 2**26
#: The alignment of tensors in an external file: pages, so that readers can map tensors into memory.
_PAGE_BYTES = 4096
#: Smaller constants, such as shapes and axes, stay in the model: readers need their elements to infer shapes.
_MIN_EXTERNAL_BYTES = 1024


class Constants(Protocol):
    """The interface for storing the constants of a model."""

    def tensor(self, name: str, array: Array) -> TensorProto:
        """Return the message of a constant, with its elements or their location."""
        ...


class InlineConstants:
    """Constants stored in the model."""

    def tensor(self, name: str, array: Array) -> TensorProto:
        """Return the message of a constant with its elements."""
        return tensor_proto(name, array)


class ExternalConstants:
    """Constants stored in an external file, except small ones.

    Args:
        stream: the file, which must be empty.
        location: the file's name in the model.
    """

    def __init__(self, stream: BinaryIO, location: str) -> None:
        self._stream = stream
        self._location = location

    def tensor(self, name: str, array: Array) -> TensorProto:
        """Write the elements of a constant to the file and return its message."""
        if array.nbytes < _MIN_EXTERNAL_BYTES:
            return tensor_proto(name, array)
        content: Array = np.ascontiguousarray(_stored(array)).reshape(-1).view(np.uint8)
        offset = -(-self._stream.tell() // _PAGE_BYTES) * _PAGE_BYTES
        self._stream.write(bytes(offset - self._stream.tell()))
        self._stream.write(content.data)
        entries = {"location": self._location, "offset": str(offset), "length": str(content.nbytes)}
        return TensorProto(
            name=name,
            data_type=onnx_number(array.dtype),
            dims=array.shape,
            data_location=TensorProto.EXTERNAL,
            external_data=[StringStringEntryProto(key=key, value=value) for key, value in entries.items()],
        )


def tensor_proto(name: str, array: Array) -> TensorProto:
    """Convert an array to a message with raw bytes."""
    return TensorProto(
        name=name, data_type=onnx_number(array.dtype), dims=array.shape, raw_data=_stored(array).tobytes()
    )


def _stored(array: Array) -> Array:
    """Convert elements to ONNX's storage: little-endian; 4-bit elements in pairs, the first in the lower half."""
    if DType.of(array.dtype) in (DType.INT4, DType.UINT4):
        halves = array.astype(np.int8).view(np.uint8).reshape(-1) & 15
        pairs = np.pad(halves, (0, halves.size % 2)).reshape(-1, 2)
        bytes_: Array = pairs[:, 0] | pairs[:, 1] << 4
        return bytes_
    return array.byteswap() if sys.byteorder == "big" else array
