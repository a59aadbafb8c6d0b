"""Concat and outputs without copies: where steps write what is joined, or leaves a partition as a view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lite_compiler.tensors import StridedTensor
from lite_compiler.views import transposition
from lite_core import ops
from lite_core.ir import Graph, Node, Value

__all__ = ["destination_through", "part_of", "parts_of", "reserve_destinations"]

T = TypeVar("T", bound=StridedTensor[Any])

#: Operators whose result is all of their input under another shape: what is reserved for it is so for the input.
_RESHAPING = frozenset(("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"))


def reserve_destinations(
    graph: Graph,
    outputs: Mapping[Value, T],
    *,
    result_of: Callable[[Node], T | None],
    reserve: Callable[[Value, T], bool],
) -> None:
    """Decide before anything is lowered where values are to lie.

    1. An input of a Concat is to be made in its part of the result, unless it has a place already: in another Concat,
       or elsewhere in the same one. Other readers of the input then read that part.
    2. The input may be made by another Concat, which then joins its own inputs there.
    3. What is reserved for a view of a value (Reshape, Transpose) is reserved for the value, where strides can say it;
       so is an output of the partition.

    Whoever makes a value takes the place if it can write there; what then lies elsewhere is copied when the Concat
    runs, or at the end.

    Args:
        graph: that is going to be lowered, every shape known.
        outputs: where the outputs of the partition lie.
        result_of: where a Concat makes its result; asked of the last one first, so that where a Concat is part of
            another one, the outer one decides. None where nothing is to be reserved for what it joins.
        reserve: takes note of a place for a value; False where the value has one, or must not be made there.
    """
    reservation = _Reservation({v: n for n in graph.nodes for v in n.outputs if v is not None}, reserve)
    for value, output in outputs.items():
        reservation.follow(value, output)
    for node in reversed(graph.nodes):
        if node.qualified_op == "Concat":
            result = result_of(node)
            if result is not None:
                for value, part in parts_of(node, result):
                    reservation.make(value, part)


@dataclass(frozen=True)
class _Reservation(Generic[T]):
    producers: Mapping[Value, Node]
    reserve: Callable[[Value, T], bool]

    def make(self, value: Value, place: T) -> None:
        """Have a value made in a place, if it may be, and what it is a view of."""
        if self.reserve(value, place):
            self.follow(value, place)

    def follow(self, value: Value, place: T) -> None:
        """Reserve the place for what a value is a view of."""
        node = self.producers.get(value)
        source = node.inputs[0] if node is not None and node.inputs else None
        if node is not None and source is not None:
            seen = destination_through(node, source, place)
            if seen is not None:
                self.make(source, seen)


def destination_through(node: Node, source: Value, place: T) -> T | None:
    """Where the input of a node lies if its result, a view, lies in a place; None where there is no such place."""
    if node.qualified_op in _RESHAPING:
        return place.reshape(source.shape)
    if node.qualified_op == "Transpose":
        order = transposition(node)
        return place.permute([order.index(axis) for axis in range(len(order))])
    return None


def parts_of(node: Node, result: T) -> list[tuple[Value, T]]:
    """The inputs of a Concat, each with its part of the result; see :func:`part_of`."""
    joined = node.outputs[0]
    assert joined is not None
    axis = ops.get(node).attributes_of(node)["axis"] % len(joined.shape)
    parts, start = [], 0
    for value in node.used():
        parts.append((value, part_of(result, value.shape, axis, start)))
        start += value.shape[axis]
    return parts


def part_of(result: T, shape: Sequence[int], axis: int, start: int) -> T:
    """The part of a Concat's result for an input.

    Args:
        result: of the Concat's shape; or of one in which the axis is split in two, and each input is one element of the
            first: so it is where the channels that it joins are shuffled.
        shape: of the input.
        axis: of the Concat.
        start: where the input begins.
    """
    if result.rank == len(shape):
        return result.slice(axis, start, shape[axis])
    part = result.slice(axis, start // max(shape[axis], 1), 1)
    return part.view(shape, [s for a, s in enumerate(part.strides) if a != axis])
