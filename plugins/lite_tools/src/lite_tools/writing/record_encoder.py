"""Encoding of targets and types as the JSON that the decoders of :mod:`lite_core.container` describe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lite_core.container.records import PartitionRecord, PlanRecord, TargetRecord
from lite_core.container.types_decoder import FRESH_MARK
from lite_core.ir import TensorType
from lite_core.ir.dim_data import dim_from_data, dim_to_data

__all__ = ["encode_targets", "encode_type", "names_in_file"]

_RECORDS = (TargetRecord, PlanRecord, PartitionRecord)


def encode_targets(targets: Iterable[TargetRecord], names: Mapping[str, str]) -> Any:
    """Encode records as JSON; ``names`` maps each symbol to its name in the file."""
    return _encode(tuple(targets), names)


def _encode(data: Any, names: Mapping[str, str]) -> Any:
    if isinstance(data, TensorType):
        return encode_type(data, names)
    if isinstance(data, _RECORDS):
        return {field: _encode(item, names) for field, item in data._asdict().items()}
    if isinstance(data, tuple):
        return [_encode(item, names) for item in data]
    if isinstance(data, Mapping):
        return {key: _encode(item, names) for key, item in data.items()}
    return data


def encode_type(type: TensorType, names: Mapping[str, str]) -> Any:
    """Encode a type as JSON, with new names for its symbols."""
    if type.shape is None:
        return [type.dtype.value, None]
    return [type.dtype.value, [dim_to_data(dim_from_data(dim_to_data(dim), names)) for dim in type.shape]]


def names_in_file(types: Iterable[TensorType]) -> dict[str, str]:
    """Return the name in a file of each symbol."""
    symbols = frozenset().union(*(type.symbols for type in types))

    def creation_order(symbol: str) -> tuple[int, str]:  # numbers as texts: 9 is before 10
        number = symbol.rpartition(FRESH_MARK)[2]
        return len(number), number

    fresh = sorted((s for s in symbols if FRESH_MARK in s), key=creation_order)
    numbered = {s: f"{s.partition(FRESH_MARK)[0]}{FRESH_MARK}{n}" for n, s in enumerate(fresh)}
    return {**{s: s for s in symbols}, **numbered}
