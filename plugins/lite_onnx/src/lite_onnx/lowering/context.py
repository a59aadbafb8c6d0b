"""What adapters and lowerings work with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from onnx import GraphProto

from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, TensorType, Value
from lite_onnx.lowering.node import Absent, Item, SourceNode, TensorList
from lite_onnx.lowering.scope import Scope
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["BodyLowering", "Context"]

Array = np.ndarray[Any, Any]


class BodyLowering(Protocol):
    """Lowers graphs that are attributes of nodes."""

    def body(self, graph: GraphProto, inputs: Sequence[TensorType | None], context: Context) -> Graph:
        """Lower a graph to one of its own; see :meth:`Context.body`."""
        ...

    def inline(self, graph: GraphProto, items: Sequence[Item | None], context: Context) -> list[Item]:
        """Lower a graph in the place of the node; see :meth:`Context.inline`."""
        ...


class Context:
    """The builder that receives nodes, and what is known of values.

    Args:
        builder: of the graph or body that is being built.
        scope: names of it.
        bodies: lowers the graphs that nodes have as attributes.
    """

    def __init__(self, builder: GraphBuilder, scope: Scope, bodies: BodyLowering) -> None:
        self.builder = builder
        self.scope = scope
        self._bodies = bodies

    def inner(self, name: str, *, weight: int = 1) -> Context:
        """A context for a body inside of this graph; it sees the names of this one. See Scope for the weight."""
        scope = Scope(self.scope.opsets, self.scope, weight=weight)
        return Context(GraphBuilder(name, outer=self.builder), scope, self._bodies)

    def with_scope(self, scope: Scope) -> Context:
        """A context that adds to the same graph, with other names."""
        return Context(self.builder, scope, self._bodies)

    # **** making nodes ****

    def add(
        self, op: str, inputs: Sequence[Value | None], attributes: Mapping[str, Any] | None = None, *, domain: str = ""
    ) -> Value:
        """Add a node of Lite's; returns its first output. Attributes that are None are left out."""
        return self.add_node(op, inputs, attributes, domain=domain)[0]

    def add_node(
        self,
        op: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Any] | None = None,
        *,
        outputs: int = 1,
        domain: str = "",
    ) -> list[Value]:
        """Add a node of Lite's with several outputs. Attributes that are None are left out."""
        given = {k: v for k, v in (attributes or {}).items() if v is not None}
        return self.builder.add_node(op, inputs, given, outputs=outputs, domain=domain)

    def constant(self, array: Any, dtype: DType | None = None) -> Value:
        """A constant; small ones with equal contents are the same value."""
        return self.builder.constant(array, dtype=dtype)

    def ints(self, *elements: int) -> Value:
        """An int64 vector: axes, shapes, pads."""
        return self.builder.ints(*elements)

    def scalar_like(self, number: float, value: Value) -> Value:
        """A scalar of a value's element type."""
        return self.builder.constant(np.array(number), dtype=value.dtype)

    def body(self, graph: GraphProto, inputs: Sequence[TensorType | None]) -> Graph:
        """A graph attribute as a graph; ``inputs``: types of its inputs where it does not say them itself."""
        return self._bodies.body(graph, inputs, self)

    def inline(self, graph: GraphProto, items: Sequence[Item | None]) -> list[Item]:
        """The outputs of a graph attribute, whose nodes are added here: once, and in any case."""
        return self._bodies.inline(graph, items, self)

    # **** inputs ****

    def value(self, node: SourceNode, position: int) -> Value:
        """An input that must be a tensor.

        Raises:
            Unlowerable: it is left out, or a sequence or an optional.
        """
        value = self.optional(node, position)
        if value is None:
            raise Unlowerable(f"its input {position} is missing")
        return value

    def optional(self, node: SourceNode, position: int) -> Value | None:
        """As :meth:`value`; None for an input that is left out."""
        item = node.inputs[position] if position < len(node.inputs) else None
        if isinstance(item, (TensorList, Absent)):
            kind = "a sequence" if isinstance(item, TensorList) else "an empty optional"
            raise Unlowerable(f"its input {position} is {kind}, not a tensor")
        return item

    def values(self, node: SourceNode) -> list[Value | None]:
        """All inputs, which must be tensors."""
        return [self.optional(node, position) for position in range(len(node.inputs))]

    def known(self, value: Value | None) -> Array | None:
        """The elements of a value where they are known already: constants, and what follows from shapes."""
        if value is None:
            return None
        constant = self.builder.graph.constants.get(value)
        return self.builder.known(value) if constant is None else constant  # inference forgets what is large

    def must_know(self, node: SourceNode, position: int, name: str) -> Array:
        """The elements of an input that has to be known.

        Raises:
            Unlowerable: they depend on the model's inputs.
        """
        array = self.known(self.value(node, position))
        if array is None:
            raise Unlowerable(
                f"its input {name} is computed from the model's inputs",
                f"export the model with a constant {name}, or simplify it with onnx-simplifier",
            )
        return array

    def size(self, value: Value, axis: int) -> int:
        """The size of a dimension.

        Raises:
            Unlowerable: it is not known before the model runs, or there is no such dimension.
        """
        rank = self.rank(value)
        if not -rank <= axis < rank:
            raise Unlowerable(f"{value.name!r} with {rank} dimensions has no axis {axis}")
        size = value.shape[axis]
        if not isinstance(size, int):
            raise Unlowerable(f"the size of axis {axis} of {value.name!r} is not known before the model runs")
        return size

    def rank(self, value: Value) -> int:
        """How many dimensions a value has.

        Raises:
            Unlowerable: nobody knows.
        """
        if value.type.rank is None:
            raise Unlowerable(f"the number of dimensions of {value.name!r} is not known before the model runs")
        return value.type.rank
