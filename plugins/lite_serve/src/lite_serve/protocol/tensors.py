"""Tensors as bytes: little-endian, row by row, without gaps. HTTP's binary data and gRPC's raw contents agree."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_serve.protocol.element_types import DATATYPES, dtype_of
from lite_serve.protocol.errors import InvalidRequestError
from lite_serve.protocol.messages import Array

__all__ = [
    "TensorHeader",
    "array_of_bytes",
    "array_of_texts",
    "bytes_of_array",
    "checked_header",
    "is_unicode",
    "shortened",
]

_MOST_DIMS = 32  # NumPy 1 has no more
_LARGEST_INDEX = 2**63 - 1
_LENGTH = struct.Struct("<I")


def shortened(value: object) -> str:
    """Return a value of JSON for an error message: printable, and not longer than a line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (str, float)):
        text = repr(value[:100] if isinstance(value, str) else value)
        return text if len(text) <= 80 else f"{text[:77]}..."
    if isinstance(value, int):
        return str(value) if value.bit_length() <= 256 else "an integer of many digits"
    return "an object" if isinstance(value, dict) else "a list"


def is_unicode(text: str) -> bool:
    """Return whether a string has no half of a surrogate pair, and thus can be UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class TensorHeader(NamedTuple):
    """An input's element type and shape, as the request states them.

    Attributes:
        what: names the input in error messages.
        datatype: the element type, as the protocol calls it.
        dtype: the element type of the array.
        shape: the dimensions.
        size: the number of elements.
    """

    what: str
    datatype: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    size: int


def checked_header(what: str, datatype: str, shape: Sequence[Any]) -> TensorHeader:
    """Return an input's header. Nothing is allocated for its elements.

    Args:
        what: names the input in error messages.
        datatype: the element type as the request states it.
        shape: the dimensions as the request states them, of any type.

    Raises:
        InvalidRequestError: the element type is unknown, or no array has the shape.
    """
    if datatype not in DATATYPES:
        raise InvalidRequestError(f"{what}: datatype {shortened(datatype)} is not one of {', '.join(DATATYPES)}")
    if len(shape) > _MOST_DIMS:
        raise InvalidRequestError(f"{what}: its shape has {len(shape)} dimensions, at most {_MOST_DIMS} are possible")
    for dim in shape:
        if type(dim) is not int or not 0 <= dim <= _LARGEST_INDEX:
            raise InvalidRequestError(f"{what}: a shape is a list of integers from 0 on, one is {shortened(dim)}")
    dtype = dtype_of(datatype)
    # NumPy refuses an array of no elements if the product of its other dimensions is too large.
    if math.prod(dim for dim in shape if dim) * dtype.itemsize > _LARGEST_INDEX:
        raise InvalidRequestError(f"{what}: an array of the shape {list(shape)} is larger than any memory")
    return TensorHeader(what, datatype, dtype, tuple(shape), math.prod(shape))


def array_of_bytes(header: TensorHeader, data: bytes | memoryview) -> Array:
    """Return the array that some bytes hold: a read-only view of them if they are aligned, else a copy.

    BYTES are elements of 4 bytes that state a length, and as many bytes.

    Raises:
        InvalidRequestError: the bytes do not fit the tensor's shape and element type.
    """
    if header.datatype == "BYTES":
        return _texts_of_bytes(header, memoryview(data))
    expected = header.size * header.dtype.itemsize
    if len(data) != expected:
        raise InvalidRequestError(
            f"{header.what}: {header.datatype} of the shape {list(header.shape)} is {expected} bytes, "
            f"the request has {len(data)}"
        )
    if not expected:
        return np.empty(header.shape, header.dtype)
    array = np.frombuffer(data, header.dtype)
    if header.datatype == "BOOL" and int(array.view(np.uint8).max()) > 1:
        # NOTE: NumPy and compiled kernels rely on it.
        raise InvalidRequestError(f"{header.what}: an element of BOOL is a byte of 0 or 1, one of them is neither")
    return (array if array.flags.aligned else array.copy()).reshape(header.shape)


def bytes_of_array(array: Array) -> bytes | memoryview:
    """Return an array's elements as bytes: a view of a contiguous array of numbers, else a copy."""
    if array.dtype.hasobject:
        return b"".join(part for text in _utf8_of(array) for part in (_LENGTH.pack(len(text)), text))
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else b""


def array_of_texts(elements: Sequence[bytes], shape: tuple[int, ...]) -> Array:
    """Return an array of strings from UTF-8. Other bytes become surrogates, which leave as the same bytes."""
    array: Array = np.empty(len(elements), object)
    array[:] = [str(element, "utf-8", "surrogateescape") for element in elements]
    return array.reshape(shape)


def _utf8_of(array: Array) -> list[bytes]:
    return [text.encode("utf-8", "surrogateescape") for text in array.reshape(-1).tolist()]


def _texts_of_bytes(header: TensorHeader, data: memoryview) -> Array:
    # Checked before anything is allocated for the elements.
    if 4 * header.size > len(data):
        raise InvalidRequestError(
            f"{header.what}: {header.size} elements of BYTES take at least {4 * header.size} bytes, "
            f"the request has {len(data)}"
        )
    elements: list[bytes] = []
    start, end = 0, len(data)
    for index in range(header.size):
        (length,) = _LENGTH.unpack_from(data, start) if start + 4 <= end else (0,)
        stop = start + 4 + length
        if stop > end:
            raise InvalidRequestError(
                f"{header.what}: the element {index} of {header.size} ends at byte {stop}, the request has {end} bytes"
            )
        elements.append(bytes(data[start + 4 : stop]))
        start = stop
    if start != end:
        raise InvalidRequestError(f"{header.what}: {end - start} bytes follow the last of {header.size} elements")
    return array_of_texts(elements, header.shape)
