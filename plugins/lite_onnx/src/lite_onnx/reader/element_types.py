"""Conversion between ONNX's numbers for element types and Lite's element types."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from lite_core.ir import DType

__all__ = ["UnsupportedElementType", "element_type", "onnx_number"]

_NAMES = {"float": "float32", "double": "float64"}


class UnsupportedElementType(ValueError):
    """An element type that Lite does not have; the message is meant for the user."""


def element_type(number: int) -> DType:
    """Return Lite's element type for a ``TensorProto.DataType``.

    Raises:
        UnsupportedElementType: Lite has no such type.
    """
    try:
        name = TensorProto.DataType.Name(number).lower()
    except ValueError:
        raise UnsupportedElementType(
            f"its element type has the number {number}, which this version of onnx does not know"
        ) from None
    try:
        return DType(_NAMES.get(name, name))
    except ValueError:
        raise UnsupportedElementType(f"its element type {name} is not one of Lite's") from None


def onnx_number(dtype: DType | np.dtype[np.generic]) -> int:
    """Return the ``TensorProto.DataType`` of an element type of Lite."""
    names = {lite: onnx for onnx, lite in _NAMES.items()}
    name = str(DType.of(dtype))
    return int(TensorProto.DataType.Value(names.get(name, name).upper()))
