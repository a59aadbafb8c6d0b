"""Concat and outputs without copies: where steps write what is joined, or leaves the partition as a view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lite_compiler import destinations
from lite_compiler.destinations import destination_through
from lite_core import ops
from lite_core.ir import Node, Value
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.half import stored_type
from lite_opencl.tensors import Tensor

__all__ = ["reserve_destinations"]

#: What shuffles channels: the result of a Concat is split, transposed and put together again.
_SHUFFLE = ("Reshape", "Transpose", "Reshape")


def reserve_destinations(lowering: Lowering, uses: Mapping[Value, int]) -> None:
    """Decide where results are written, before anything is lowered (:mod:`lite_compiler.destinations`).

    Other readers of what a Concat joins read its part of the result, so that is dense if there are any. Where channels
    are shuffled after the Concat, it joins them in the shuffled order; see :func:`lite_compiler.destinations.part_of`.

    Args:
        lowering: whose ``places`` are filled; nothing is lowered yet.
        uses: how often each value is read.
    """
    readers = {v: n for n in lowering.graph.nodes for v in n.used()}
    joining = _Joining(lowering, uses, readers)
    destinations.reserve_destinations(
        lowering.graph, lowering.outputs, result_of=joining.result_of, reserve=joining.reserve
    )


@dataclass(frozen=True)
class _Joining:
    lowering: Lowering
    uses: Mapping[Value, int]
    readers: Mapping[Value, Node]

    def reserve(self, value: Value, place: Tensor) -> bool:
        """Have a value made in a place, unless it has one, or has readers whom gaps would cost a copy."""
        has_place = value in self.lowering.destinations or value in self.lowering.outputs
        if has_place or not (place.is_dense or self.uses[value] == 1):
            return False
        self.lowering.destinations[value] = place
        return True

    def result_of(self, node: Node) -> Tensor:
        """Where a Concat makes its result."""
        joined = node.outputs[0]
        assert joined is not None
        axis = ops.get(node).attributes_of(node)["axis"] % len(joined.shape)
        return self.shuffled(node, joined, axis) or self.place_of(node, joined)

    def place_of(self, node: Node, value: Value) -> Tensor:
        """Where a node makes a value: the place that it has, or a new one."""
        lowering = self.lowering
        found = lowering.outputs.get(value) or lowering.destinations.get(value)
        if found is None:
            dtype = stored_type(value, node, lowering.options, lowering.device)
            found = lowering.destinations[value] = lowering.allocate(tuple(value.shape), dtype)
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
        if joined in self.lowering.destinations or joined in self.lowering.outputs:
            return None
        seen = self.place_of(nodes[-1], value).reshape(transposed)
        if seen is None:
            return None
        place = destination_through(nodes[1], nodes[1].used()[0], seen)
        assert place is not None, "a transposition has a view of any tensor"
        self.lowering.destinations[joined] = place
        return place
