"""Cancelling Transposes on both sides of element-wise nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lite_core.ir import Node, Shape, TensorType, Value
from lite_core.passes.rewriting import Scope

__all__ = ["sink_transposes", "transpose_order"]

# Element-wise operators: every input is broadcast against the others.
_BROADCASTING = frozenset(
    {
        *("Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "Sum", "Mean", "Where", "PRelu"),
        *("And", "Or", "Xor", "Not", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"),
        *("Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "IsInf", "IsNaN", "Log", "Neg", "Reciprocal"),
        *("Round", "Sign", "Sin", "Sqrt", "Tan", "Tanh", "Sigmoid", "Identity", "Cast"),
        *("Celu", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Relu", "Selu"),
        *("Softplus", "Softsign", "ThresholdedRelu", "lite.Swish"),
    }
)
# Only the first input is element-wise; the others are single numbers.
_WITH_SCALARS = frozenset({"Clip"})
_MOST_NODES = 32


def transpose_order(node: Node) -> tuple[int, ...] | None:
    """Return the order of axes of a Transpose; None if the rank is unknown."""
    source = node.inputs[0]
    order = node.attributes.get("perm")
    if isinstance(order, tuple):
        rank = len(order)
        return tuple(int(a) % rank for a in order)
    rank_or_none = None if source is None else source.type.rank
    return None if rank_or_none is None else tuple(reversed(range(rank_or_none)))


@dataclass(slots=True)
class _Region:
    """Element-wise nodes above a Transpose, and the outside values they read, already in the new layout."""

    scope: Scope
    order: tuple[int, ...]
    nodes: list[Node] = field(default_factory=list)
    sources: dict[Value, Value] = field(default_factory=dict)
    cancelled: int = 0

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
            self.cancelled += 1
            return True
        constant = self.scope.constant(value)
        if constant is not None:
            return constant.ndim <= len(self.order)
        if producer is None or len(self.nodes) >= _MOST_NODES or len(producer.outputs) != 1:
            return False
        if producer in self.nodes:
            return True
        if self.scope.is_output(value) or producer.qualified_op not in _BROADCASTING | _WITH_SCALARS:
            return False
        read = producer.inputs[:1] if producer.qualified_op in _WITH_SCALARS else producer.inputs
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
    if not region.collect(middle) or not region.nodes or not region.cancelled:
        return False
    if not scope.are_private([*region.nodes, node]):
        return False
    moved: dict[Value, Value] = dict(region.sources)
    new_nodes = []
    for old in region.nodes:
        value = old.outputs[0]
        assert value is not None
        moved[value] = output if value is middle else scope.new_value(value.name, _moved_type(value, order))
        positions = 1 if old.qualified_op in _WITH_SCALARS else len(old.inputs)
        inputs = [
            v if v is None or i >= positions else moved.get(v) or _moved_constant(scope, v, order)
            for i, v in enumerate(old.inputs)
        ]
        new_nodes.append(old.copy_with(inputs, [moved[value]], old.attributes))
    scope.replace([*region.nodes, node], new_nodes)
    return True


def _moved_type(value: Value, order: tuple[int, ...]) -> TensorType:
    shape: Shape | None = value.type.shape
    return value.type if shape is None else value.type.with_shape(tuple(shape[a] for a in order))


def _moved_constant(scope: Scope, value: Value, order: tuple[int, ...]) -> Value:
    array = scope.constant(value)
    assert array is not None
    if array.size == 1 and array.ndim == 0:
        return value
    padded = array.reshape((1,) * (len(order) - array.ndim) + array.shape)
    return scope.new_constant(value.name, np.ascontiguousarray(padded.transpose(order)))
