"""Sequences whose length depends on data, as two tensors: see :mod:`lite_core.ops.tensor_lists`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Value
from lite_onnx.lowering.constants import add_constant
from lite_onnx.lowering.node import Absent, DynamicList, Item, TensorList
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["ListType", "dynamic", "empty_list", "flattened", "grouped", "list_input", "rank_of"]


class ListType(NamedTuple):
    """The type of a sequence whose length depends on data.

    Attributes:
        dtype: the element type of its tensors.
        rank: their number of dimensions; None if it is unknown.
    """

    dtype: DType
    rank: int | None = None


def empty_list(dtype: DType, rank: int, builder: GraphBuilder) -> DynamicList:
    """Add an empty list of tensors that will have ``rank`` dimensions."""
    elements = add_constant(builder, np.empty(0, dtype.numpy))
    return DynamicList(elements, builder.constant(np.empty((0, rank), np.int64)))


def dynamic(item: TensorList | DynamicList, builder: GraphBuilder, rank: int | None = None) -> DynamicList:
    """Return a sequence as a dynamic one; ``rank`` is for the tensors that follow in an empty sequence."""
    if isinstance(item, DynamicList):
        return item
    if not item:
        return empty_list(item.dtype, rank or 0, builder)
    return DynamicList(*builder.add_node("ListOf", item, domain="lite", outputs=2))


def list_input(name: str, type: ListType, builder: GraphBuilder) -> DynamicList:
    """Add the two inputs of a graph for a list."""
    elements = builder.input(builder.unique_name(f"{name}[elements]"), type.dtype, [None])
    shapes = builder.input(builder.unique_name(f"{name}[shapes]"), DType.INT64, [None, type.rank])
    return DynamicList(elements, shapes)


def rank_of(item: Item) -> int | None:
    """Return the number of dimensions of the tensors of a sequence, or None if it is not known."""
    if isinstance(item, TensorList):
        return item[0].type.rank if item else None
    shape = item.shapes.shape if isinstance(item, DynamicList) else None
    return shape[1] if shape is not None and isinstance(shape[1], int) else None


def flattened(items: Sequence[Item | None], builder: GraphBuilder) -> Iterator[Value | None]:
    """Yield the values that carry items through If and Loop: two for a sequence.

    Raises:
        Unlowerable: one of them is an empty optional.
    """
    for item in items:
        if isinstance(item, Absent):
            raise Unlowerable("an empty optional passes through it, and it depends on data whether it runs")
        if isinstance(item, (TensorList, DynamicList)):
            yield from dynamic(item, builder)
        else:
            yield item


def grouped(values: Sequence[Value], like: Sequence[Item | None]) -> list[Item]:
    """Return the items that values stand for: the inverse of :func:`flattened`, for items of the kinds of ``like``."""
    rest = iter(values)
    return [DynamicList(next(rest), next(rest)) if isinstance(i, tuple) else next(rest) for i in like]
