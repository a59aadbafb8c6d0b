"""Decoding of tensor types from JSON: ``[element type, dimensions]``; null dimensions mean an unknown rank.

NOTE: an unknown size is a symbol that is unique in its process (:func:`lite_core.ir.fresh_dim`). When it is read from a
file, it gets a new unique name, because its old name may equal that of an unrelated symbol. In a file, such symbols are
numbered from 0 in the order of their creation, so that a model gives the same bytes in any process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lite_core.ir import DType, SymbolicDim, TensorType, fresh_dim
from lite_core.ir.dim_data import dim_from_data

__all__ = ["FRESH_MARK", "LocalNames", "decode_type"]

FRESH_MARK = "?"


class LocalNames(dict[str, str]):
    """Map from each symbol of a file to its name in this process, which is generated on first access."""

    def __missing__(self, name: str) -> str:
        prefix, mark, _ = name.partition(FRESH_MARK)
        dim = fresh_dim(prefix) if mark else SymbolicDim.named(name)  # which raises for an invalid name
        self[name] = dim.name or name
        return self[name]


def decode_type(data: Any, names: Mapping[str, str]) -> TensorType:
    """Decode a type from JSON, with new names for its symbols.

    Raises:
        KeyError, TypeError, ValueError: the JSON is not a type.
    """
    dtype, shape = data
    if shape is None:
        return TensorType(DType(dtype))
    dims = tuple([dim_from_data(dim, names) for dim in shape])
    if [dim for dim in dims if isinstance(dim, int) and dim < 0]:
        raise ValueError(f"a shape must not be negative, is {dims}")
    return TensorType(DType(dtype), dims)
