"""Arrays as ``TensorProto``: in the model itself, or in a file beside it."""

from __future__ import annotations

import sys
from typing import Any, BinaryIO, Protocol

import numpy as np
from onnx import StringStringEntryProto, TensorProto

from lite_core.ir import DType
from lite_onnx.reader.element_types import onnx_number

__all__ = ["MOST_BYTES", "Constants", "ExternalConstants", "InlineConstants", "tensor_proto"]

Array = np.ndarray[Any, Any]

#: What constants may take in the model itself; protocol buffers hold 2 GiB, and nodes and names need some of that.
MOST_BYTES = 2**31 - 2**26
#: Where tensors begin in a file beside the model: at pages, so that whoever reads it can map it into memory.
_PAGE = 4096
#: Smaller ones stay in the model: shapes and axes, which readers want to look at.
_SMALL = 1024


class Constants(Protocol):
    """Where the constants of a model go."""

    def tensor(self, name: str, array: Array) -> TensorProto:
        """The message of a constant; its elements are in it, or it says where they are."""
        ...


class InlineConstants:
    """Constants in the model."""

    def tensor(self, name: str, array: Array) -> TensorProto:
        """The message of a constant with its elements."""
        return tensor_proto(name, array)


class ExternalConstants:
    """Constants in a file beside the model, but for small ones.

    Args:
        stream: the file, empty.
        location: its name, as the model gives it.
    """

    def __init__(self, stream: BinaryIO, location: str) -> None:
        self._stream = stream
        self._location = location

    def tensor(self, name: str, array: Array) -> TensorProto:
        """The message of a constant, whose elements are written to the file."""
        if array.nbytes < _SMALL:
            return tensor_proto(name, array)
        content: Array = np.ascontiguousarray(_stored(array)).reshape(-1).view(np.uint8)
        offset = -(-self._stream.tell() // _PAGE) * _PAGE
        self._stream.write(bytes(offset - self._stream.tell()))
        self._stream.write(content.data)
        where = {"location": self._location, "offset": str(offset), "length": str(content.nbytes)}
        return TensorProto(
            name=name,
            data_type=onnx_number(array.dtype),
            dims=array.shape,
            data_location=TensorProto.EXTERNAL,
            external_data=[StringStringEntryProto(key=key, value=value) for key, value in where.items()],
        )


def tensor_proto(name: str, array: Array) -> TensorProto:
    """An array as a message with the elements as raw bytes."""
    return TensorProto(
        name=name, data_type=onnx_number(array.dtype), dims=array.shape, raw_data=_stored(array).tobytes()
    )


def _stored(array: Array) -> Array:
    """Elements as ONNX stores them: little-endian, those of 4 bits in pairs, the first in the lower half."""
    if DType.of(array.dtype) in (DType.INT4, DType.UINT4):
        halves = array.astype(np.int8).view(np.uint8).reshape(-1) & 15
        pairs = np.pad(halves, (0, halves.size % 2)).reshape(-1, 2)
        bytes_: Array = pairs[:, 0] | pairs[:, 1] << 4
        return bytes_
    return array.byteswap() if sys.byteorder == "big" else array
