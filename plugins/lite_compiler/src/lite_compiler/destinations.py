"""Copy elision for Concat and outputs: steps write directly into the concatenated result or the partition's output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lite_compiler.tensors import StridedTensor
from lite_compiler.views import transpose_order
from lite_core import ops
from lite_core.ir import Graph, Node, Value

__all__ = ["concat_part", "concat_parts", "destination_through", "reserve_destinations"]

T = TypeVar("T", bound=StridedTensor[Any])

#: Operators that only change the shape: a destination reserved for the result serves for the input.
_RESHAPING = frozenset(("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"))


def reserve_destinations(
    graph: Graph,
    outputs: Mapping[Value, T],
    *,
    result_of: Callable[[Node], T | None],
    reserve: Callable[[Value, T], bool],
) -> None:
    """Reserve destinations for values before the graph is lowered.

    1. An input of a Concat is written into its part of the result, unless it already has a destination: in another
       Concat, or in another part of the same one. Other readers of the input then read that part.
    2. If another Concat computes the input, it concatenates its own inputs into that part.
    3. A destination reserved for a view of a value (Reshape, Transpose) is reserved for the value itself if strides
       can express it. The same applies to the outputs of the partition.

    The step that computes a value uses the reserved destination if it can write there. A value that it writes elsewhere
    is copied when the Concat runs, or at the end of the program.

    Args:
        graph: the graph to be lowered; every shape is known.
        outputs: the tensors of the partition's outputs.
        result_of: returns the destination of a Concat's result, or None if nothing is to be reserved for its inputs.
            It is called for the last Concat first, so that the outer one of nested Concats decides.
        reserve: records a destination for a value; returns False if the value already has one or must not be written
            there.
    """
    reservation = _Reservation({v: n for n in graph.nodes for v in n.outputs if v is not None}, reserve)
    for value, output in outputs.items():
        reservation.assign_source(value, output)
    for node in reversed(graph.nodes):
        if node.qualified_op == "Concat":
            result = result_of(node)
            if result is not None:
                for value, part in concat_parts(node, result):
                    reservation.assign(value, part)


@dataclass(frozen=True)
class _Reservation(Generic[T]):
    """Reservation of destinations for values and, through nodes that return views, for the sources of these views."""

    producers: Mapping[Value, Node]
    reserve: Callable[[Value, T], bool]

    def assign(self, value: Value, destination: T) -> None:
        """Reserve a destination for a value and for the source that the value is a view of."""
        if self.reserve(value, destination):
            self.assign_source(value, destination)

    def assign_source(self, value: Value, destination: T) -> None:
        """Reserve a value's destination for the source that the value is a view of, if it is one."""
        node = self.producers.get(value)
        source = node.inputs[0] if node is not None and node.inputs else None
        if node is not None and source is not None:
            view = destination_through(node, source, destination)
            if view is not None:
                self.assign(source, view)


def destination_through(node: Node, source: Value, destination: T) -> T | None:
    """Return the destination of a node's input that puts its result, a view, at ``destination``; None if impossible."""
    if node.qualified_op in _RESHAPING:
        return destination.reshape(source.shape)
    if node.qualified_op == "Transpose":
        order = transpose_order(node)
        return destination.permute([order.index(axis) for axis in range(len(order))])
    return None


def concat_parts(node: Node, result: T) -> list[tuple[Value, T]]:
    """Return the inputs of a Concat, each with its part of the result; see :func:`concat_part`."""
    output = node.outputs[0]
    assert output is not None
    axis = ops.attributes_of(node)["axis"] % len(output.shape)
    parts, start = [], 0
    for value in node.used():
        parts.append((value, concat_part(result, value.shape, axis, start)))
        start += value.shape[axis]
    return parts


def concat_part(result: T, shape: Sequence[int], axis: int, start: int) -> T:
    """Return the part of a Concat's result that an input is written to.

    Args:
        result: a tensor of the Concat's shape, or one with the axis split in two, in which each input is one element of
            the first of the two axes. The latter occurs when the concatenated channels are shuffled afterwards.
        shape: the shape of the input.
        axis: the axis of the Concat.
        start: the position along the axis where the input begins.
    """
    if result.rank == len(shape):
        return result.slice(axis, start, shape[axis])
    part = result.slice(axis, start // max(shape[axis], 1), 1)
    return part.view(shape, [s for a, s in enumerate(part.strides) if a != axis])
