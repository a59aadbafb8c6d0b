"""Attribute values of nodes, except graphs, and their text form in printed graphs."""

from __future__ import annotations

import numpy as np

from lite_core.ir.types import Array, DType, TensorType

__all__ = ["PlainAttribute", "format_attribute", "format_constant"]

PlainAttribute = int | float | str | DType | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Array

_MOST_PRINTED = 8  # a tensor attribute or constant with more elements is printed without them


def format_attribute(attribute: PlainAttribute) -> str:
    """Return an attribute's value as text."""
    if isinstance(attribute, DType):
        return attribute.value
    if isinstance(attribute, np.ndarray):
        if attribute.size <= _MOST_PRINTED:
            return f"{attribute.dtype.name}{_array(attribute)}"
        return f"{attribute.dtype.name}{list(attribute.shape)}"
    if isinstance(attribute, tuple):
        return "[" + ", ".join(format_attribute(a) for a in attribute) + "]"
    if isinstance(attribute, float):
        return f"{attribute:.9g}"
    return repr(attribute) if isinstance(attribute, str) else str(attribute)


def format_constant(type: TensorType, array: Array) -> str:
    """Return a constant's type as text, followed by its elements if it has at most eight."""
    return f"{type} = {_array(array)}" if array.size <= _MOST_PRINTED else str(type)


def _array(array: Array) -> str:
    return np.array2string(array, separator=", ", threshold=_MOST_PRINTED).replace("\n", "")
