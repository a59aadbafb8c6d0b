"""Lists of tensors of different shapes, which loops carry for tensor arrays; see the operators of lists in ``lite``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.arrays import Element, TensorList
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.lod import Sequences
from lite_paddle.lowering.sequences import Rows
from lite_paddle.lowering.unlowerable import Unlowerable

__all__ = ["appended_to", "element_at", "list_of", "number_of_elements"]


def list_of(context: Context, elements: Sequence[Element], levels: int, like: Value) -> TensorList:
    """Return a list of elements, with the offsets of ``levels`` levels of sequences; an empty one is for ``like``."""
    values = [element.value for element in elements]
    offsets = [_offsets(context, element, levels) for element in elements]
    columns = list(zip(*offsets)) if elements else [()] * levels
    like_offsets = context.builder.ints(0)
    return _plain(context, values, like, tuple(_plain(context, list(c), like_offsets) for c in columns))


def _offsets(context: Context, element: Element, levels: int) -> list[Value]:
    if not levels:
        return []
    if element.sequences is None and context.reads_offsets:
        raise Unlowerable("some tensors of a list consist of sequences, others do not")
    return Rows(context, element.value, element.sequences or Sequences()).levels(levels)


def _plain(context: Context, values: list[Value], like: Value, levels: tuple[TensorList, ...] = ()) -> TensorList:
    if values:
        elements, shapes = context.nodes("ListOf", values, outputs=2, domain="lite")
        return TensorList(elements, shapes, levels)
    rank = context.rank(like, "it is an element of a list of tensors")
    elements = context.builder.constant(np.empty(0, like.dtype.numpy))
    return TensorList(elements, context.builder.constant(np.empty((0, rank), np.int64)), levels)


def appended_to(context: Context, tensors: TensorList, element: Element) -> TensorList:
    """Return the list with one more element."""
    offsets = _offsets(context, element, len(tensors.levels))
    levels = tuple(appended_to(context, level, Element(o)) for level, o in zip(tensors.levels, offsets))
    inputs = [tensors.elements, tensors.shapes, element.value]
    elements, shapes = context.nodes("ListInsert", inputs, outputs=2, domain="lite")
    return TensorList(elements, shapes, levels)


def element_at(context: Context, tensors: TensorList, position: Value) -> Element:
    """Return the element at a position, which is 0-D and counts from the end if it is negative."""

    def tensor(part: TensorList) -> Value:
        return context.node("ListAt", [part.elements, part.shapes, position], domain="lite")

    levels = [tensor(level) for level in tensors.levels]
    return Element(tensor(tensors), Sequences(offsets=levels[-1], outer=tuple(levels[:-1])) if levels else None)


def number_of_elements(context: Context, tensors: TensorList) -> Value:
    """Return the number of elements, an int64 vector of one element."""
    return context.cast(context.node("Shape", [tensors.shapes], {"start": 0, "end": 1}), DType.INT64)
