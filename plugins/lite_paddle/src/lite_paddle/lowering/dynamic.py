"""Shapes with sizes that are known only when the model runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lite_core.ir import Dim, DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.unlowerable import Unlowerable

__all__ = ["dimension", "dimensions", "integer_vector", "reshape_to", "shape_vector", "size_vector", "static_dimension"]


def dimension(context: Context, value: Value, axis: int) -> int | Value:
    """Return the size of an axis: an integer if it is known, else an int64 vector of one element."""
    rank = Context.rank(value, "a size of it is needed")
    axis %= rank
    size = value.shape[axis]
    if isinstance(size, int):
        return size
    return context.node("Shape", [value], {"start": axis, "end": axis + 1})


def dimensions(context: Context, value: Value, start: int, end: int) -> list[int | Value]:
    """Return the sizes of the axes from ``start`` up to ``end``, both not negative."""
    return [dimension(context, value, axis) for axis in range(start, end)]


def static_dimension(value: Value, axis: int, why: str) -> int:
    """Return the size of an axis that must be known. Raises Unlowerable, with ``why``, if it is not."""
    size: Dim = value.shape[axis] if value.type.rank is not None else -1
    if not isinstance(size, int) or size < 0:
        raise Unlowerable(
            f"axis {axis} of {value.name!r} has no fixed size, but {why}",
            "export the model with a fixed size for this axis",
        )
    return size


def integer_vector(context: Context, value: Value) -> Value:
    """Return a tensor of integers as an int64 vector, the form in which ONNX takes shapes and sizes."""
    value = context.cast(value, DType.INT64)
    return value if value.type.rank == 1 else context.reshape(value, [-1])


def size_vector(context: Context, size: int | Value) -> Value:
    """Return one size as an int64 vector of one element."""
    return context.builder.ints(size) if isinstance(size, int) else size


def shape_vector(context: Context, parts: Iterable[int | Value]) -> Value:
    """Return an int64 vector made of integers and int64 vectors."""
    pieces: list[Value] = []
    run: list[int] = []
    for part in parts:
        if isinstance(part, Value):
            if run:
                pieces.append(context.builder.ints(*run))
            pieces.append(part)
            run = []
        else:
            run.append(part)
    if run or not pieces:
        pieces.append(context.builder.ints(*run))
    return pieces[0] if len(pieces) == 1 else context.node("Concat", pieces, {"axis": 0})


def reshape_to(context: Context, value: Value, parts: Sequence[int | Value]) -> Value:
    """Reshape a value to a shape with sizes that are computed when the model runs; one part may be -1."""
    parts = list(parts)
    if -1 not in parts and sum(isinstance(p, Value) for p in parts) == 1 and 0 not in parts:
        # A single unknown size follows from the others: no node has to compute it.
        parts = [-1 if isinstance(p, Value) and p.shape == (1,) else p for p in parts]
    return context.node("Reshape", [value, shape_vector(context, parts)])
