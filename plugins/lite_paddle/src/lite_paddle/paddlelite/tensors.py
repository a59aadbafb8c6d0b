"""The tensor through which a predictor takes an input and gives an output."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_core.checks import require
from lite_core.errors import InputError
from lite_paddle.paddlelite.enums import PrecisionType, TargetType

__all__ = ["Tensor"]

_PRECISIONS = {
    "float32": PrecisionType.FP32,
    "int8": PrecisionType.INT8,
    "int32": PrecisionType.INT32,
    "float16": PrecisionType.FP16,
    "bool": PrecisionType.BOOL,
    "int64": PrecisionType.INT64,
    "int16": PrecisionType.INT16,
    "uint8": PrecisionType.UINT8,
    "float64": PrecisionType.FP64,
}
Array = np.ndarray[Any, Any]


class Tensor:
    """An input or output of a predictor.

    Made by the predictor; every call of ``get_input(0)`` returns the same tensor. A change of the array that
    :meth:`numpy` returned does not change the tensor, nor does a later run change the array.

    Args:
        name: the name of the input or output, for messages.
        dtype: element type that the model declares, such as ``"float32"``.
        shape: dimensions that the model declares, -1 for those that it leaves open; empty if it declares no rank.
    """

    def __init__(self, name: str = "", dtype: str = "float32", shape: Sequence[int] = ()) -> None:
        self._name, self._dtype = name, np.dtype(dtype)
        self._shape = [int(size) for size in shape]
        self._array: Array | None = None
        self._lod: list[list[int]] = []

    # **** description ****

    def shape(self) -> list[int]:
        """Return the dimensions; before data is set, those that the model declares, -1 for open ones."""
        return list(self._shape if self._array is None else self._array.shape)

    def precision(self) -> PrecisionType:
        """Return the element type."""
        return _PRECISIONS.get(self._dtype.name, PrecisionType.Unk)

    def target(self) -> TargetType:
        """Return Host: the data of a tensor is in the memory of the processor, wherever the model runs."""
        return TargetType.Host

    def lod(self) -> list[list[int]]:
        """Return the offsets of the sequences, a list for each level; empty if there are none."""
        return [list(level) for level in self._lod]

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """Set the offsets of the sequences: for each level, numbers from 0 to the number of parts that it divides."""
        self._lod = [[int(offset) for offset in level] for level in lod]

    # **** data ****

    def resize(self, shape: Sequence[int]) -> None:
        """Set the dimensions. The data is lost where the number of elements changes.

        Raises:
            InputError: a dimension is negative or no integer.
        """
        fits = isinstance(shape, Sequence | np.ndarray) and all(_is_size(size) for size in shape)
        require(fits, f"the shape of {self._name!r}", "a list of numbers that are not negative", shape)
        self._shape = [int(size) for size in shape]
        if self._array is not None:
            keeps = self._array.size == math.prod(self._shape)
            self._array = self._array.reshape(self._shape) if keeps else None

    def from_numpy(self, array: Any, place: TargetType = TargetType.Host) -> None:
        """Copy an array, or anything that NumPy makes an array of, into the tensor, with its shape and element type."""
        require(isinstance(place, TargetType), "place", "a TargetType", place)
        self.hold(np.array(array, order="C"))

    def hold(self, array: Array) -> None:
        """Take an array as the data, without a copy."""
        self._array, self._dtype = array, array.dtype

    def numpy(self, zero_copy: bool = False) -> Array:
        """Return the data as an array.

        Args:
            zero_copy: return the tensor's own array instead of a copy. It stays valid after the predictor is gone, and
                later runs do not write into it. What is written into an input's own array is what the next run reads.

        Raises:
            InputError: the tensor has no data yet.
        """
        array = self._data(allocate=zero_copy)
        return array if zero_copy else array.copy()

    def float_data(self) -> list[float]:
        """Return the elements of a float32 tensor as a list, in row-major order."""
        return self._list_of("float32")

    def int32_data(self) -> list[int]:
        """Return the elements of an int32 tensor as a list, in row-major order."""
        return self._list_of("int32")

    def int8_data(self) -> list[int]:
        """Return the elements of an int8 tensor as a list, in row-major order."""
        return self._list_of("int8")

    def uint8_data(self) -> list[int]:
        """Return the elements of a uint8 tensor as a list, in row-major order."""
        return self._list_of("uint8")

    def set_float_data(self, data: Sequence[float], type: TargetType = TargetType.Host) -> None:
        """Set all elements as float32, after :meth:`resize`."""
        self._set(data, "float32")

    def set_int32_data(self, data: Sequence[int], type: TargetType = TargetType.Host) -> None:
        """Set all elements as int32, after :meth:`resize`."""
        self._set(data, "int32")

    def set_int8_data(self, data: Sequence[int], type: TargetType = TargetType.Host) -> None:
        """Set all elements as int8, after :meth:`resize`."""
        self._set(data, "int8")

    def set_uint8_data(self, data: Sequence[int], type: TargetType = TargetType.Host) -> None:
        """Set all elements as uint8, after :meth:`resize`."""
        self._set(data, "uint8")

    def __repr__(self) -> str:
        return f"Tensor({self._name!r}, {self.precision().name}, {self.shape()})"

    def _data(self, allocate: bool = False) -> Array:
        if self._array is None and allocate and all(size >= 0 for size in self._shape) and self._shape:
            self._array = np.zeros(self._shape, self._dtype)
        if self._array is None:
            raise InputError(
                f"the tensor {self._name!r} has no data yet: an input has data after from_numpy(array), or after "
                "resize(shape) and set_float_data(list); an output after run()"
            )
        return self._array

    def _list_of(self, dtype: str) -> list[Any]:
        array = self._data()
        if array.dtype.name != dtype:
            raise InputError(f"the tensor {self._name!r} holds {array.dtype.name}, not {dtype}: use numpy()")
        elements: list[Any] = array.reshape(-1).tolist()
        return elements

    def _set(self, data: Sequence[float], dtype: str) -> None:
        # A list is copied exactly or refused: 300 is no int8.
        values = np.array(data)
        count = math.prod(self._shape) if self._shape else -1
        require(values.ndim == 1, f"the data of {self._name!r}", "a flat list of numbers", data)
        if values.size != count or any(size < 0 for size in self._shape):
            raise InputError(
                f"the tensor {self._name!r} has the shape {self._shape}, but {values.size} elements are given: call "
                "resize(shape) first, with as many elements"
            )
        if dtype != "float32" and values.size:
            limits = np.iinfo(dtype)
            fits = values.dtype.kind in "iub" and limits.min <= values.min() and values.max() <= limits.max
            require(bool(fits), f"the data of {self._name!r}", f"integers from {limits.min} to {limits.max}", data)
        self.hold(values.astype(dtype).reshape(self._shape))


def _is_size(size: Any) -> bool:
    return isinstance(size, int | np.integer) and not isinstance(size, bool) and int(size) >= 0
