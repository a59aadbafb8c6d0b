"""Concat and outputs without copies: where steps write what is joined, or leaves the partition as a view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lite_core import ops
from lite_core.ir import Node, Value
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.half import stored_type
from lite_opencl.tensors import Tensor

__all__ = ["part_of", "reserve_places"]

#: What shuffles channels: the result of a Concat is split, transposed and put together again.
_SHUFFLE = ("Reshape", "Transpose", "Reshape")

#: Operators whose result is all of their input under another shape: what is reserved for it is so for the input.
_RESHAPING = frozenset(("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"))


def reserve_places(lowering: Lowering, uses: Mapping[Value, int]) -> None:
    """Decide before anything is lowered where values are to lie.

    1. An input of a Concat is to be made in its part of the result, unless it has a place already: in another Concat,
       or as an output. Other readers of the input then read that part, so it is dense if there are any.
    2. The input may be made by another Concat, which then joins its own inputs there.
    3. Where channels are shuffled after the Concat, it joins them in the shuffled order; see :func:`part_of`.
    4. What is reserved for a view of a value (Reshape, Transpose) is reserved for the value, where strides can say it;
       so is an output of the partition.

    Whoever makes a value takes the place if it can write there, see :meth:`Lowering.target`; what then lies elsewhere
    is copied when the Concat runs, or at the end.

    Args:
        lowering: whose ``places`` are filled; nothing is lowered yet.
        uses: how often each value is read.
    """
    producers = {v: n for n in lowering.graph.nodes for v in n.outputs if v is not None}
    readers = {v: n for n in lowering.graph.nodes for v in n.used()}
    reservation = _Reservation(lowering, uses, producers, readers)
    for value, output in lowering.outputs.items():
        reservation.follow(value, output)
    # Last first: where a Concat is part of another one, the outer one decides.
    for node in reversed(lowering.graph.nodes):
        if node.qualified_op == "Concat":
            reservation.join(node)


@dataclass(frozen=True)
class _Reservation:
    lowering: Lowering
    uses: Mapping[Value, int]
    producers: Mapping[Value, Node]
    readers: Mapping[Value, Node]

    def join(self, node: Node) -> None:
        """Reserve parts of the result of a Concat for its inputs."""
        joined = node.outputs[0]
        assert joined is not None
        axis = ops.get(node).attributes_of(node)["axis"] % len(joined.shape)
        result = self.shuffled(node, joined, axis) or self.place_of(node, joined)
        start = 0
        for value in node.used():
            self.reserve(value, part_of(result, tuple(value.shape), axis, start))
            start += value.shape[axis]

    def place_of(self, node: Node, value: Value) -> Tensor:
        """Where a node makes a value: the place that it has, or a new one."""
        lowering = self.lowering
        found = lowering.outputs.get(value) or lowering.places.get(value)
        if found is None:
            dtype = stored_type(value, node, lowering.options, lowering.device)
            found = lowering.places[value] = lowering.allocate(tuple(value.shape), dtype)
        return found

    def shuffled(self, node: Node, joined: Value, axis: int) -> Tensor | None:
        """Where the result of a Concat is made in the order that it is put in by those who read it, if they do that."""
        nodes: list[Node] = []
        shapes: list[tuple[int, ...]] = []
        value = joined
        for op in _SHUFFLE:
            reader = self.readers.get(value)
            if reader is None or reader.qualified_op != op or reader.inputs[0] is not value or self.uses[value] != 1:
                return None
            nodes.append(reader)
            (output,) = reader.outputs
            assert output is not None
            shapes.append(tuple(output.shape))
            value = output
        split, transposed, _ = shapes
        parts = list(node.used())
        size = parts[0].shape[axis]
        if split != (*joined.shape[:axis], len(parts), size, *joined.shape[axis + 1 :]):
            return None
        if any(v.shape[axis] != size for v in parts):
            return None
        if joined in self.lowering.places or joined in self.lowering.outputs:
            return None
        seen = self.place_of(nodes[-1], value).reshape(transposed)
        if seen is None:
            return None
        place = self.lowering.places[joined] = seen.permute(_inverse(nodes[1], seen.rank))
        return place

    def reserve(self, value: Value, place: Tensor) -> None:
        """Have a value made in a place, unless it has one, or has readers whom gaps would cost a copy."""
        has_place = value in self.lowering.places or value in self.lowering.outputs
        if not has_place and (place.is_dense or self.uses[value] == 1):
            self.lowering.places[value] = place
            self.follow(value, place)

    def follow(self, value: Value, place: Tensor) -> None:
        """Reserve the place for what a value is a view of."""
        node = self.producers.get(value)
        source = node.inputs[0] if node is not None and node.inputs else None
        if node is None or source is None:
            return
        if node.qualified_op in _RESHAPING:
            seen = place.reshape(tuple(source.shape))
            if seen is not None:
                self.reserve(source, seen)
        elif node.qualified_op == "Transpose":
            self.reserve(source, place.permute(_inverse(node, place.rank)))


def part_of(result: Tensor, shape: Sequence[int], axis: int, start: int) -> Tensor:
    """The part of a Concat's result for an input.

    Args:
        result: of the Concat's shape; or, where a shuffle follows, of the shape in which its first Reshape sees it: the
            axis is split in two then, and each input is one element of the first.
        shape: of the input.
        axis: of the Concat.
        start: where the input begins.
    """
    if result.rank == len(shape):
        return result.slice(axis, start, shape[axis])
    part = result.slice(axis, start // max(shape[axis], 1), 1)
    return part.view(shape, [s for a, s in enumerate(part.strides) if a != axis])


def _inverse(node: Node, rank: int) -> list[int]:
    """The order of dimensions that undoes a Transpose."""
    given = ops.get(node).attributes_of(node)["perm"]
    order = [a % rank for a in given] if given is not None else list(range(rank))[::-1]
    return [order.index(a) for a in range(rank)]
