"""Tensors as JSON: lists of numbers, booleans or strings, flat or nested as the shape."""

from __future__ import annotations

import array as typed_arrays
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from lite_serve.protocol.errors import InvalidRequestError
from lite_serve.protocol.json_texts import LongList, list_as_json
from lite_serve.protocol.messages import Array
from lite_serve.protocol.tensors import TensorHeader, is_unicode, shortened

__all__ = ["array_as_json", "array_of_json"]

_NUMBERS: frozenset[type] = frozenset([int, float, type(None)])
# By the kind of NumPy's element type ("V" is bfloat16): the types of elements, and how they are called.
_ACCEPTED: dict[str, tuple[frozenset[type], str]] = {
    "b": (frozenset([bool]), "true or false"),
    "i": (frozenset([int]), "an integer"),
    "u": (frozenset([int]), "an integer"),
    "f": (_NUMBERS, "a number"),
    "V": (_NUMBERS, "a number"),
    "O": (frozenset([str]), "a string"),
}


def array_of_json(header: TensorHeader, data: Any) -> Array:
    """Return the array for an input's ``data``.

    Args:
        header: the input's element type and shape.
        data: the parsed JSON: a flat list of the elements row by row, or lists nested as the shape. For a scalar, a
            list of one element, or the element. A number may be null, which is NaN.

    Raises:
        InvalidRequestError: the data do not fit the element type and shape.
    """
    if isinstance(data, LongList):
        return _array_of_pieces(header, data)
    elements = _flattened(header, data)
    return _array_of_elements(header, elements).reshape(header.shape)


def _array_of_pieces(header: TensorHeader, data: LongList) -> Array:
    arrays: list[Array] = []
    count = 0
    for piece in data:
        arrays.append(_array_of_elements(header, piece, count))
        count += len(piece)
    _check_count(header, count)
    return np.concatenate(arrays).reshape(header.shape)


def _flattened(header: TensorHeader, data: Any) -> list[Any]:
    if type(data) is not list:
        if header.shape:
            raise InvalidRequestError(f"{header.what}: its data must be a list, is {shortened(data)}")
        return [data]
    if len(header.shape) > 1 and data and type(data[0]) is list:
        lists = [data]
        for depth, size in enumerate(header.shape, 1):
            if not set(map(type, lists)) <= {list} or not set(map(len, lists)) <= {size}:
                raise InvalidRequestError(
                    f"{header.what}: its data must be a flat list, or lists nested as the shape {list(header.shape)}; "
                    f"the lists at depth {depth} do not have {size} elements each"
                )
            lists = list(chain.from_iterable(lists))
        return lists
    _check_count(header, len(data))
    return data


def _check_count(header: TensorHeader, count: int) -> None:
    if count != header.size:
        raise InvalidRequestError(
            f"{header.what}: the shape {list(header.shape)} has {header.size} elements, its data has {count}"
        )


def _array_of_elements(header: TensorHeader, elements: list[Any], start: int = 0) -> Array:
    """Return a flat array of some elements of an input, which begin at the index ``start``."""
    kind = header.dtype.kind
    accepted, name = _ACCEPTED[kind]
    if not set(map(type, elements)) <= accepted:
        index = next(i for i, element in enumerate(elements) if type(element) not in accepted)
        raise _wrong_element(header, start + index, elements[index], name)
    if kind in "iu":
        return _array_of_integers(header, elements, start)
    if kind in "fV":
        return _array_of_numbers(header, elements, start)
    if kind == "O":
        return _array_of_strings(header, elements, start)
    return np.array(elements, header.dtype)


def _wrong_element(header: TensorHeader, index: int, element: Any, expected: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"{header.what}: element {index} of {header.datatype} must be {expected}, is {shortened(element)}"
    )


def _array_of_integers(header: TensorHeader, elements: list[int], start: int) -> Array:
    try:
        # NOTE: NumPy 1 does not refuse integers out of range; these arrays do.
        return np.array(typed_arrays.array(header.dtype.char, elements), header.dtype)
    except OverflowError:
        low, high = np.iinfo(header.dtype).min, np.iinfo(header.dtype).max
        index = next(i for i, element in enumerate(elements) if not low <= element <= high)
        raise _wrong_element(header, start + index, elements[index], f"from {low} to {high}") from None


def _array_of_numbers(header: TensorHeader, elements: list[Any], start: int) -> Array:
    try:
        numbers = np.array(elements, np.float64)
    except OverflowError:
        index = next(i for i, element in enumerate(elements) if type(element) is int and element.bit_length() > 1023)
        raise _wrong_element(header, start + index, elements[index], "within the range of the type") from None
    with np.errstate(over="ignore"):
        converted: Array = numbers.astype(header.dtype)
    became_infinite = np.isinf(converted) & np.isfinite(numbers)
    if became_infinite.any():
        index = int(became_infinite.argmax())
        raise _wrong_element(header, start + index, elements[index], "within the range of the type")
    return converted


def _array_of_strings(header: TensorHeader, elements: list[str], start: int) -> Array:
    for index, element in enumerate(elements):
        if not is_unicode(element):
            raise _wrong_element(header, start + index, element, "a string without half of a surrogate pair")
    array: Array = np.empty(len(elements), object)
    array[:] = elements
    return array


def array_as_json(what: str, array: Array) -> Iterable[bytes]:
    """Yield pieces of the flat JSON list of an output's elements.

    Raises:
        InvalidRequestError: an element of BYTES is not UTF-8, which JSON cannot hold.
    """
    if array.dtype.hasobject and not all(map(is_unicode, array.reshape(-1).tolist())):
        raise InvalidRequestError(
            f"{what}: an element is not UTF-8, which JSON cannot hold. Ask for the output as bytes, with its parameter "
            "binary_data, or by gRPC."
        )
    return list_as_json(array)
