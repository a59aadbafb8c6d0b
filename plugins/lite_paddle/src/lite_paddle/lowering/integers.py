"""Integers that an operator takes as an attribute or as tensors: axes, shapes, indices, counts.

Tensors take precedence over the attribute, and a list of tensors over a single one. An *element* is an integer if
it is known before the model runs, else an int64 vector of one element.
"""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import integer_vector, shape_vector, size_vector
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

__all__ = [
    "FAR",
    "FIRST_WITH_0D",
    "Element",
    "add_elements",
    "element_type",
    "elements_of",
    "int_elements",
    "int_vector",
    "known_int",
    "known_ints",
    "normalized",
    "scalar_result",
]

Element = int | Value

#: More than every size: the end of a slice that goes to the end of its axis.
FAR = 2**63 - 1

#: More than any tensor has axes, or any operator outputs.
_MOST_ELEMENTS = 65536

#: The first version of Paddle with 0-D tensors; earlier, a scalar was a vector of one element.
FIRST_WITH_0D = 2_005_000


def _tensors(op: SourceOp, context: Context, slot: str, list_slot: str) -> Value | None:
    """Return the tensors that stand for integers as one int64 vector; None if there are none."""
    listed = context.inputs(op, list_slot)
    if listed:
        return shape_vector(context, [context.reshape(context.cast(v, DType.INT64), [1]) for v in listed])
    single = context.optional(op, slot)
    return None if single is None else integer_vector(context, single)


def _attribute(op: SourceOp, name: str) -> list[int]:
    found = op.attrs.get(name)
    if found is None:
        raise Unlowerable(f"its attribute {name} is missing")
    return [int(i) for i in found] if isinstance(found, (list, tuple)) else [int(found)]


def int_vector(op: SourceOp, context: Context, attribute: str, slot: str = "", list_slot: str = "") -> Value:
    """Return the integers as one int64 vector."""
    found = _tensors(op, context, slot, list_slot)
    return context.builder.ints(*_attribute(op, attribute)) if found is None else found


def int_elements(op: SourceOp, context: Context, attribute: str, slot: str = "", list_slot: str = "") -> list[Element]:
    """Return the integers one by one. Raises Unlowerable if their number is unknown."""
    found = _tensors(op, context, slot, list_slot)
    return list(_attribute(op, attribute)) if found is None else elements_of(context, found)


def elements_of(context: Context, vector: Value) -> list[Element]:
    """Return the elements of an int64 vector. Raises Unlowerable if their number is unknown."""
    length = vector.shape[0] if vector.type.rank == 1 else None
    if not isinstance(length, int):
        raise Unlowerable(
            f"the number of elements of {vector.name!r} is not known before the model runs",
            "export the model with a fixed rank for what is computed from it",
        )
    if length > _MOST_ELEMENTS:
        raise Unlowerable(f"{vector.name!r} has {length} elements, expected one for each axis or part of a tensor")
    known = context.known(vector)
    listed: list[object] = [None] * length if known is None else known.reshape(-1).tolist()
    ints = context.builder.ints
    return [
        e if isinstance(e, int) else context.node("Slice", [vector, ints(i), ints(i + 1), ints(0)])
        for i, e in enumerate(listed)
    ]


def known_ints(op: SourceOp, context: Context, attribute: str, slot: str = "", list_slot: str = "") -> list[int]:
    """Return the integers, all of which must be known. Raises Unlowerable if one is not."""
    found = _tensors(op, context, slot, list_slot)
    if found is None:
        return _attribute(op, attribute)
    known = context.known_ints(found)
    if known is None:
        raise Unlowerable(
            f"{attribute} is computed when the model runs", f"export the model with a constant {attribute}"
        )
    return known


def known_int(op: SourceOp, context: Context, attribute: str, slot: str = "") -> int:
    """Return the single integer, which must be known. Raises Unlowerable if it is not."""
    found = known_ints(op, context, attribute, slot)
    if len(found) != 1:
        raise Unlowerable(f"{attribute} must be one number, is {found}")
    return found[0]


def add_elements(context: Context, a: Element, b: Element) -> Element:
    """Return the sum of two elements."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return context.node("Add", [size_vector(context, e) for e in (a, b)])


def element_type(name: object, otherwise: DType) -> DType:
    """Return the element type that an attribute names, or ``otherwise`` if it names none.

    Raises Unlowerable for a type that Lite does not have.
    """
    if not name:
        return otherwise
    try:
        return DType.of(str(name))
    except ValueError as error:
        raise Unlowerable(str(error)) from None


def scalar_result(context: Context, value: Value) -> Value:
    """Shape a scalar result as the model's version of Paddle does: a vector of one element before 0-D tensors."""
    if value.type.rank == 0 and context.version < FIRST_WITH_0D:
        return context.reshape(value, [1])
    return value


def normalized(axes: Sequence[int], rank: int) -> list[int]:
    """Return axes counted from the front. Raises Unlowerable for an axis that the tensor does not have."""
    for axis in axes:
        if not -rank <= axis < rank:
            raise Unlowerable(f"axis {axis} is out of range for a tensor of rank {rank}")
    return [axis % rank for axis in axes]
