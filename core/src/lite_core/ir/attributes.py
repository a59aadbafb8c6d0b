"""The values that attributes of nodes have, graphs excepted, and how a printed graph shows them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir.types import DType, TensorType

__all__ = ["PlainAttribute", "format_attribute", "format_constant"]

Array = np.ndarray[Any, Any]
PlainAttribute = int | float | str | DType | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Array

_LONGEST_TENSOR = 8  # elements of a tensor attribute or constant that are spelled out


def format_attribute(attribute: PlainAttribute) -> str:
    """An attribute's value as it stands in the printed graph."""
    if isinstance(attribute, DType):
        return attribute.value
    if isinstance(attribute, np.ndarray):
        if attribute.size <= _LONGEST_TENSOR:
            return f"{attribute.dtype.name}{_array(attribute)}"
        return f"{attribute.dtype.name}{list(attribute.shape)}"
    if isinstance(attribute, tuple):
        return "[" + ", ".join(format_attribute(a) for a in attribute) + "]"
    if isinstance(attribute, float):
        return f"{attribute:.9g}"
    return repr(attribute) if isinstance(attribute, str) else str(attribute)


def format_constant(type: TensorType, array: Array) -> str:
    """A constant's type, and its elements where they are few."""
    return f"{type} = {_array(array)}" if array.size <= _LONGEST_TENSOR else str(type)


def _array(array: Array) -> str:
    return np.array2string(array, separator=", ", threshold=_LONGEST_TENSOR).replace("\n", "")
