"""Copy elision for Concat and outputs: steps write directly to their part of a result, or to a view of an output."""

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

#: A channel shuffle: these operators split, transpose and merge the result of a Concat.
_SHUFFLE = ("Reshape", "Transpose", "Reshape")


def reserve_destinations(lowering: Lowering, uses: Mapping[Value, int]) -> None:
    """Decide where results are written, before anything is lowered (:mod:`lite_compiler.destinations`).

    Other readers of an input of a Concat read the part of the result that holds it, so that part must be dense if there
    are any. If channels are shuffled after the Concat, it joins them in the shuffled order; see
    :func:`lite_compiler.destinations.concat_part`.

    Args:
        lowering: the lowering whose ``destinations`` are set; nothing is lowered yet.
        uses: how often each value is read.
    """
    readers = {v: n for n in lowering.graph.nodes for v in n.used()}
    reservations = _Reservations(lowering, uses, readers)
    destinations.reserve_destinations(
        lowering.graph, lowering.outputs, result_of=reservations.result_of, reserve=reservations.reserve
    )


@dataclass(frozen=True)
class _Reservations:
    """Destinations reserved for the results of Concat nodes and for their inputs."""

    lowering: Lowering
    uses: Mapping[Value, int]
    readers: Mapping[Value, Node]

    def reserve(self, value: Value, destination: Tensor) -> bool:
        """Reserve a destination for a value, unless it has one, or has other readers that need a dense tensor.

        Returns:
            True if the destination was reserved.
        """
        has_destination = value in self.lowering.destinations or value in self.lowering.outputs
        if has_destination or not (destination.is_dense or self.uses[value] == 1):
            return False
        self.lowering.destinations[value] = destination
        return True

    def result_of(self, node: Node) -> Tensor:
        """Return the destination of a Concat's result."""
        joined = node.outputs[0]
        assert joined is not None
        axis = ops.attributes_of(node)["axis"] % len(joined.shape)
        return self.shuffled(node, joined, axis) or self.destination_of(node, joined)

    def destination_of(self, node: Node, value: Value) -> Tensor:
        """Return the destination of a node's result, which is allocated if the value has none."""
        lowering = self.lowering
        found = lowering.outputs.get(value) or lowering.destinations.get(value)
        if found is None:
            dtype = stored_type(value, node, lowering.options, lowering.device)
            found = lowering.destinations[value] = lowering.allocate(tuple(value.shape), dtype)
        return found

    def shuffled(self, node: Node, joined: Value, axis: int) -> Tensor | None:
        """Return a destination in shuffled order if the readers of a Concat shuffle its channels, else None."""
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
        transposed_view = self.destination_of(nodes[-1], value).reshape(transposed)
        if transposed_view is None:
            return None
        destination = destination_through(nodes[1], nodes[1].used()[0], transposed_view)
        assert destination is not None, "a transposition has a view of any tensor"
        self.lowering.destinations[joined] = destination
        return destination
