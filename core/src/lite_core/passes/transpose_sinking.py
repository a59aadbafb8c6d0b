"""Cancelling Transposes on both sides of element-wise nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lite_core.ir import Node, TensorType, Value
from lite_core.ops.elementwise import ELEMENTWISE_OPS
from lite_core.passes.rewriting import Scope

__all__ = ["sink_transposes", "transpose_order"]

_MOST_NODES = 32


def transpose_order(node: Node) -> tuple[int, ...] | None:
    """Return the order of axes of a Transpose; None if the rank is unknown."""
    order = node.attributes.get("perm")
    if isinstance(order, tuple):
        return tuple(int(a) % len(order) for a in order)
    rank = None if node.inputs[0] is None else node.inputs[0].type.rank
    return None if rank is None else tuple(reversed(range(rank)))


def _elementwise_inputs(node: Node) -> tuple[Value | None, ...]:
    return node.inputs[:1] if node.op == "Clip" else node.inputs


@dataclass(slots=True)
class _Region:
    """Element-wise nodes above a Transpose, and the outside values they read, already in the new layout."""

    scope: Scope
    order: tuple[int, ...]
    nodes: list[Node] = field(default_factory=list)
    sources: dict[Value, Value] = field(default_factory=dict)

    @property
    def inverse(self) -> tuple[int, ...]:
        return tuple(int(a) for a in np.argsort(self.order))

    def collect(self, value: Value) -> bool:
        """Add ``value``, which a node of the region reads, to the region; return False if that is impossible."""
        if value in self.sources:
            return True
        producer = self.scope.producer(value)
        if producer is not None and producer.qualified_op == "Transpose":
            source = producer.inputs[0]
            if source is None or transpose_order(producer) != self.inverse:
                return False
            self.sources[value] = source
            return True
        constant = self.scope.constant(value)
        if constant is not None:
            return constant.ndim <= len(self.order)
        if producer is None or len(self.nodes) >= _MOST_NODES or len(producer.outputs) != 1:
            return False
        if producer in self.nodes:
            return True
        if self.scope.is_output(value) or producer.qualified_op not in ELEMENTWISE_OPS:
            return False
        read = _elementwise_inputs(producer)
        if value.type.rank != len(self.order) or not all(v is not None and self.collect(v) for v in read):
            return False
        self.nodes.append(producer)  # after its inputs: the order stays topological
        return True


def sink_transposes(scope: Scope, node: Node) -> bool:
    """Remove a Transpose by computing the element-wise nodes above it in its output layout.

    The nodes must have no other users. Each value they read must be the output of a Transpose with the inverse order,
    or a constant, which is transposed immediately.
    """
    order, middle, output = transpose_order(node), node.inputs[0], node.outputs[0]
    if order is None or middle is None or output is None:
        return False
    region = _Region(scope, order)
    if not (region.collect(middle) and region.nodes and region.sources and scope.are_private([*region.nodes, node])):
        return False
    moved = dict(region.sources)
    new_nodes = []
    for old in region.nodes:
        value = old.outputs[0]
        assert value is not None
        moved[value] = output if value is middle else scope.new_value(value.name, _moved_type(value, order))
        read = _elementwise_inputs(old)
        inputs = [v if v is None else moved.get(v) or _moved_constant(scope, v, order) for v in read]
        new_nodes.append(old.copy_with([*inputs, *old.inputs[len(read) :]], [moved[value]], old.attributes))
    scope.replace([*region.nodes, node], new_nodes)
    return True


def _moved_type(value: Value, order: tuple[int, ...]) -> TensorType:
    shape = value.type.shape
    return value.type if shape is None else value.type.with_shape(tuple(shape[a] for a in order))


def _moved_constant(scope: Scope, value: Value, order: tuple[int, ...]) -> Value:
    array = scope.constant(value)
    assert array is not None
    if array.ndim == 0:
        return value
    padded = array.reshape((1,) * (len(order) - array.ndim) + array.shape)
    return scope.new_constant(value.name, np.ascontiguousarray(padded.transpose(order)))
