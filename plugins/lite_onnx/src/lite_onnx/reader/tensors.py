"""Conversion of ``TensorProto`` to arrays. Sizes are checked before memory is allocated."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from onnx import SparseTensorProto, TensorProto

from lite_core.ir import DType
from lite_onnx.reader.element_types import element_type
from lite_onnx.reader.external_data import ExternalFiles
from lite_onnx.reader.stored_tensors import StoredTensors

__all__ = ["DamagedTensor", "read_sparse_tensor", "read_tensor"]

Array = np.ndarray[Any, Any]

#: The field with the elements of each type if they are not in ``raw_data``; other types use ``int32_data``.
_FIELDS = {
    DType.FLOAT32: ("float_data", np.float32),
    DType.FLOAT64: ("double_data", np.float64),
    DType.INT64: ("int64_data", np.int64),
    DType.UINT32: ("uint64_data", np.uint64),
    DType.UINT64: ("uint64_data", np.uint64),
}
_NIBBLES = (DType.INT4, DType.UINT4)
#: Sparse tensors are made dense: up to this number of elements in all, or for each stored element.
_MAX_ELEMENTS, _MAX_ZEROS_PER_ELEMENT = 1 << 22, 256
#: The number of dimensions that an array can have in every version of NumPy.
_MAX_DIMENSIONS = 32


class DamagedTensor(ValueError):
    """A tensor whose elements do not fit its shape, or cannot be read; the message is meant for the user."""


def read_tensor(tensor: TensorProto, files: ExternalFiles | None = None, stored: StoredTensors | None = None) -> Array:
    """Return the elements of a tensor, read-only; strings as an array of objects.

    Args:
        tensor: the message.
        files: the model's external files; None if the tensor cannot be in one.
        stored: the large tensors inside the model's file; None if they were parsed.

    Raises:
        DamagedTensor: the number of elements does not fit the shape.
        MissingData: they are in a file that cannot be read.
        UnsupportedElementType: the elements are of a type that Lite does not have.
    """
    dtype = element_type(tensor.data_type)
    shape = tuple(tensor.dims)
    if len(shape) > _MAX_DIMENSIONS or any(n < 0 for n in shape):
        raise DamagedTensor(f"it has {len(shape)} dimensions: {list(shape[:_MAX_DIMENSIONS])}")
    if dtype is DType.STRING:
        return _texts(tensor, shape)
    if tensor.data_location == TensorProto.EXTERNAL:
        if files is None:
            raise DamagedTensor("it is kept in another file, which a part of a sparse tensor cannot be")
        return _shaped(files.bytes_of(tensor, _byte_count(dtype, shape)), dtype, shape)
    if tensor.HasField("raw_data"):
        raw_data = tensor.raw_data
        mapped = None if stored is None else stored.find(raw_data)
        return _shaped(np.frombuffer(raw_data, np.uint8) if mapped is None else mapped, dtype, shape)
    if dtype in _NIBBLES:
        return _shaped(np.array(tensor.int32_data, np.int32).astype(np.uint8), dtype, shape)
    name, kind = _FIELDS.get(dtype, ("int32_data", np.int32))
    listed = getattr(tensor, name)
    if len(listed) != prod(shape):
        raise DamagedTensor(f"it should have {prod(shape)} elements for its shape {list(shape)}, but has {len(listed)}")
    elements = np.array(listed, kind)
    if dtype.is_narrow:
        return _shaped(elements.astype(np.uint8), dtype, shape)
    if dtype.is_half:
        elements = elements.astype(np.uint16).view(dtype.numpy)
    array: Array = elements.astype(dtype.numpy, copy=False).reshape(shape)
    array.flags.writeable = False
    return array


def _texts(tensor: TensorProto, shape: tuple[int, ...]) -> Array:
    """Return strings. Raises DamagedTensor if they are not as many as the shape says, or not in UTF-8."""
    stored = tensor.string_data
    if len(stored) != prod(shape):
        raise DamagedTensor(f"it should have {prod(shape)} strings for its shape {list(shape)}, but has {len(stored)}")
    array = np.empty(len(stored), object)
    try:
        array[:] = [text.decode() for text in stored]
    except UnicodeDecodeError as error:
        raise DamagedTensor(f"a string is not in UTF-8: {error}") from None
    array.flags.writeable = False
    return array.reshape(shape)


def read_sparse_tensor(sparse: SparseTensorProto) -> Array:
    """Return a sparse tensor as a dense array.

    Raises:
        DamagedTensor: indices are out of range, or the dense array would be too large.
        UnsupportedElementType: the elements are of a type that Lite does not have.
    """
    values, indices = read_tensor(sparse.values), read_tensor(sparse.indices)
    shape = tuple(sparse.dims)
    size = prod(shape)
    limit = max(_MAX_ELEMENTS, _MAX_ZEROS_PER_ELEMENT * values.size)
    if len(shape) > _MAX_DIMENSIONS or any(n < 0 for n in shape) or size > limit:
        raise DamagedTensor(f"a sparse tensor {list(shape)} with {values.size} elements is too large to make dense")
    flat = indices if indices.ndim == 1 else np.zeros(0, np.int64)
    if indices.ndim == 2 and indices.shape[1] == len(shape) and size:
        flat = indices @ np.array([prod(shape[axis + 1 :]) for axis in range(len(shape))], np.int64)
    is_inside = not flat.size or 0 <= flat.min() <= flat.max() < size
    if indices.dtype != np.int64 or flat.shape != values.shape or not is_inside:
        raise DamagedTensor(f"the indices {list(indices.shape)} do not fit a sparse tensor {list(shape)}")
    array = np.zeros(size, values.dtype)
    array[flat] = values
    array.flags.writeable = False
    return array.reshape(shape)


def _shaped(data: Array, dtype: DType, shape: tuple[int, ...]) -> Array:
    """View bytes as an array. 4-bit elements are stored in pairs, the first in the lower half of the byte."""
    expected = _byte_count(dtype, shape)
    if data.nbytes != expected:
        raise DamagedTensor(f"it should have {expected} bytes for {dtype}{list(shape)}, but has {data.nbytes}")
    if dtype in _NIBBLES:
        halves = np.stack([data & 15, data >> 4], axis=-1).reshape(-1)[: prod(shape)].astype(np.int8)
        signed = np.where(halves > 7, halves - 16, halves) if dtype is DType.INT4 else halves
        array: Array = signed.astype(np.int8).astype(dtype.numpy).reshape(shape)
    else:
        array = data.view(dtype.numpy).reshape(shape)
    array.flags.writeable = False
    return array


def _byte_count(dtype: DType, shape: tuple[int, ...]) -> int:
    return -(-prod(shape) // 2) if dtype in _NIBBLES else prod(shape) * dtype.itemsize
