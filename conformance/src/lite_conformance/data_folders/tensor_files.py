"""Reading and writing tensors as the files of ONNX's test data: one ``TensorProto`` in each.

NOTE: this module imports the optional package ``onnx``; other modules import it only when they read or write tensors.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from google.protobuf.message import DecodeError
from onnx import TensorProto, numpy_helper

from lite_conformance.judge.compare import Array
from lite_core.errors import InputError
from lite_core.ir import DType

__all__ = ["read_tensor", "write_tensor"]

_ONNX_NAMES = {DType.FLOAT32: "FLOAT", DType.FLOAT64: "DOUBLE"}
_FOUR_BITS = (DType.INT4, DType.UINT4)


def write_tensor(file: Path, name: str, array: Array) -> None:
    """Write an array as a ``TensorProto`` with raw data.

    Args:
        file: the file.
        name: the name of the input or output.
        array: an array of one of Lite's element types.
    """
    dtype = DType.STRING if array.dtype == object else DType.of(array.dtype)
    proto = TensorProto(name=name, data_type=_number(dtype), dims=array.shape)
    if dtype is DType.STRING:
        proto.string_data.extend(str(text).encode() for text in array.reshape(-1))
    else:
        proto.raw_data = _stored(array, dtype).tobytes()
    file.write_bytes(proto.SerializeToString(deterministic=True))


def read_tensor(file: Path, dtype: DType) -> Array:
    """Read a ``TensorProto``, whose elements may be stored in any of its fields.

    Args:
        file: the file.
        dtype: the element type that the tensor must have.

    Raises:
        InputError: the file cannot be read, is not a tensor, or has another element type.
    """
    proto = TensorProto()
    try:
        proto.ParseFromString(file.read_bytes())
    except (OSError, DecodeError) as error:
        raise InputError(f"{file} is not a tensor: {error}") from error
    if proto.data_type != _number(dtype):
        known = proto.data_type in TensorProto.DataType.values()
        found = TensorProto.DataType.Name(proto.data_type) if known else str(proto.data_type)
        raise InputError(f"{file} has elements of type {found}, expected {TensorProto.DataType.Name(_number(dtype))}")
    try:
        return _elements(proto, dtype).reshape(tuple(proto.dims))
    except (ValueError, TypeError) as error:
        raise InputError(f"{file} is damaged: {error}") from error


def _elements(proto: TensorProto, dtype: DType) -> Array:
    if dtype is DType.STRING:
        return np.array([text.decode() for text in proto.string_data], dtype.numpy)
    if proto.HasField("raw_data"):
        raw = proto.raw_data
    elif dtype is DType.BFLOAT16 or dtype.is_narrow:  # NumPy lacks these types: their bits are stored
        bits = np.array(proto.int32_data, np.int32)
        raw = bits.astype(np.uint16 if dtype is DType.BFLOAT16 else np.uint8).tobytes()
    else:
        return np.asarray(numpy_helper.to_array(proto)).astype(dtype.numpy, copy=False)
    if dtype in _FOUR_BITS:
        return _unpacked(np.frombuffer(raw, np.uint8), int(np.prod(proto.dims)), dtype)
    array: Array = np.frombuffer(raw, dtype.numpy)
    return array.byteswap() if sys.byteorder == "big" and proto.HasField("raw_data") else array


def _number(dtype: DType) -> int:
    return int(TensorProto.DataType.Value(_ONNX_NAMES.get(dtype, dtype.value.upper())))


def _stored(array: Array, dtype: DType) -> Array:
    """Return the elements in ONNX's storage: little-endian; 4-bit elements in pairs, the first in the lower half."""
    if dtype in _FOUR_BITS:
        halves = array.astype(np.int8).view(np.uint8).reshape(-1) & 15
        pairs = np.pad(halves, (0, halves.size % 2)).reshape(-1, 2)
        packed: Array = pairs[:, 0] | pairs[:, 1] << 4
        return packed
    return array.byteswap() if sys.byteorder == "big" else array


def _unpacked(pairs: Array, count: int, dtype: DType) -> Array:
    halves = np.stack([pairs & 15, pairs >> 4], axis=1).reshape(-1)[:count]
    signed = np.where(halves > 7, halves.astype(np.int8) - 16, halves.astype(np.int8))
    return (signed if dtype is DType.INT4 else halves).astype(dtype.numpy)
