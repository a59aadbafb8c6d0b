"""Tensor types to and from JSON: ``[element type, dimensions]``, or null for the dimensions of unknown rank.

NOTE: a size nobody knows is a symbol that no other dimension of the process has (:func:`lite_core.ir.fresh_dim`). Read
from a file it gets a name of this process: under its old one it would equal a stranger. In the file such symbols are
numbered from 0 in the order they were made in, so that one model gives the same bytes in any process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lite_core.ir import DType, SymbolicDim, TensorType, dim_from_data, dim_to_data, fresh_dim

__all__ = ["NamesHere", "decode_type", "encode_type", "names_in_file"]

_FRESH_MARK = "?"


def names_in_file(types: Iterable[TensorType]) -> dict[str, str]:
    """For each symbol the name it has in a file."""
    symbols = frozenset().union(*(type.symbols for type in types))

    def age(symbol: str) -> tuple[int, str]:  # numbers as texts: 9 is before 10
        number = symbol.rpartition(_FRESH_MARK)[2]
        return len(number), number

    fresh = sorted((s for s in symbols if _FRESH_MARK in s), key=age)
    numbered = {s: f"{s.partition(_FRESH_MARK)[0]}{_FRESH_MARK}{n}" for n, s in enumerate(fresh)}
    return {**{s: s for s in symbols}, **numbered}


class NamesHere(dict[str, str]):
    """For each symbol of a file its name in this process, found when it is first asked for."""

    def __missing__(self, name: str) -> str:
        prefix, mark, _ = name.partition(_FRESH_MARK)
        if mark:
            self[name] = fresh_dim(prefix).name or name
        else:
            self[name] = SymbolicDim.named(name).name or name  # refuses what is no name
        return self[name]


def encode_type(type: TensorType, names: Mapping[str, str]) -> Any:
    """The type as JSON, with other names for its symbols."""
    if type.shape is None:
        return [type.dtype.value, None]
    return [type.dtype.value, [dim_to_data(dim_from_data(dim_to_data(dim), names)) for dim in type.shape]]


def decode_type(data: Any, names: Mapping[str, str]) -> TensorType:
    """The type that JSON says, with other names for its symbols.

    Raises:
        KeyError, TypeError, ValueError: it is no type.
    """
    dtype, shape = data
    if shape is None:
        return TensorType(DType(dtype))
    dims = tuple([dim_from_data(dim, names) for dim in shape])
    if [dim for dim in dims if isinstance(dim, int) and dim < 0]:
        raise ValueError(f"a shape must not be negative, is {dims}")
    return TensorType(DType(dtype), dims)
