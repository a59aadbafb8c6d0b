"""The context of adapters and lowerings: the builder of the graph, and known values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from onnx import GraphProto

from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, TensorType, Value
from lite_onnx.lowering.constants import add_constant
from lite_onnx.lowering.lists import ListType
from lite_onnx.lowering.node import Absent, DynamicList, Item, SourceNode, TensorList
from lite_onnx.lowering.scope import Scope
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["LOOP_WEIGHT", "BodyLowering", "Context"]

Array = np.ndarray[Any, Any]

#: The depth that the body of a loop adds. The types in a loop are inferred at least twice, and each nested loop doubles
#: the time.
LOOP_WEIGHT = 5


class BodyLowering(Protocol):
    """The interface for lowering graphs that are attributes of nodes."""

    def body(self, graph: GraphProto, inputs: Sequence[TensorType | None], context: Context) -> Graph:
        """Lower a graph to a separate graph; see :meth:`Context.body`."""
        ...

    def list_body(
        self, graph: GraphProto, inputs: Sequence[TensorType | ListType | None], context: Context, weight: int
    ) -> tuple[Graph, list[Item]]:
        """Lower a graph to a separate graph; see :meth:`Context.list_body`."""
        ...

    def inline(self, graph: GraphProto, items: Sequence[Item | None], context: Context) -> list[Item]:
        """Lower a graph into the graph of the node; see :meth:`Context.inline`."""
        ...


class Context:
    """The builder that receives nodes, and the known values.

    Args:
        builder: the builder of the graph or body.
        scope: the names of the graph or body.
        bodies: lowers graphs that are attributes of nodes.
    """

    def __init__(self, builder: GraphBuilder, scope: Scope, bodies: BodyLowering) -> None:
        self.builder = builder
        self.scope = scope
        self._bodies = bodies

    def inner(self, name: str, *, weight: int = 1) -> Context:
        """Return a context for a body inside this graph; the body can use this graph's names.

        ``weight`` is that of :class:`~lite_onnx.lowering.scope.Scope`.
        """
        scope = Scope(self.scope.opsets, self.scope, weight=weight)
        return Context(GraphBuilder(name, outer=self.builder), scope, self._bodies)

    def with_scope(self, scope: Scope) -> Context:
        """Return a context that adds to the same graph, with other names."""
        return Context(self.builder, scope, self._bodies)

    # **** adding nodes ****

    def add(
        self, op: str, inputs: Sequence[Value | None], attributes: Mapping[str, Any] | None = None, *, domain: str = ""
    ) -> Value:
        """Add a node of Lite and return its first output. Attributes that are None are omitted."""
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
        """Add a node of Lite and return its outputs. Attributes that are None are omitted."""
        present = {k: v for k, v in (attributes or {}).items() if v is not None}
        return self.builder.add_node(op, inputs, present, outputs=outputs, domain=domain)

    def constant(self, array: Any, dtype: DType | None = None) -> Value:
        """Add a constant of numbers or strings; small constants of equal numbers share one value."""
        return add_constant(self.builder, array, dtype=dtype)

    def ints(self, *elements: int) -> Value:
        """Add a constant int64 vector: axes, shapes, pads."""
        return self.builder.ints(*elements)

    def scalar_like(self, number: float, value: Value) -> Value:
        """Add a constant scalar of a value's element type."""
        return self.builder.constant(np.array(number), dtype=value.dtype)

    def body(self, graph: GraphProto, inputs: Sequence[TensorType | None]) -> Graph:
        """Lower a graph attribute to a graph; ``inputs``: types of its inputs, used where it does not state them."""
        return self._bodies.body(graph, inputs, self)

    def list_body(
        self, graph: GraphProto, inputs: Sequence[TensorType | ListType | None], *, weight: int = LOOP_WEIGHT
    ) -> tuple[Graph, list[Item]]:
        """Lower a graph attribute like :meth:`body`; its inputs and outputs may be sequences, two values each.

        ``weight`` is that of :class:`~lite_onnx.lowering.scope.Scope`.

        Returns:
            The graph, and the items of its outputs.
        """
        return self._bodies.list_body(graph, inputs, self, weight)

    def inline(self, graph: GraphProto, items: Sequence[Item | None]) -> list[Item]:
        """Add the nodes of a graph attribute to this graph, to run once and unconditionally; return its outputs."""
        return self._bodies.inline(graph, items, self)

    # **** inputs ****

    def value(self, node: SourceNode, position: int) -> Value:
        """Return an input that must be a tensor.

        Raises:
            Unlowerable: it is omitted, or a sequence or an optional.
        """
        value = self.optional(node, position)
        if value is None:
            raise Unlowerable(f"its input {position} is missing")
        return value

    def optional(self, node: SourceNode, position: int) -> Value | None:
        """Return an input that must be a tensor, or None if it is omitted."""
        item = node.inputs[position] if position < len(node.inputs) else None
        if isinstance(item, (TensorList, DynamicList, Absent)):
            kind = "an empty optional" if isinstance(item, Absent) else "a sequence"
            raise Unlowerable(f"its input {position} is {kind}, not a tensor")
        return item

    def values(self, node: SourceNode) -> list[Value | None]:
        """Return all inputs, which must be tensors."""
        return [self.optional(node, position) for position in range(len(node.inputs))]

    def known(self, value: Value | None) -> Array | None:
        """Return the elements of a constant or of a value computed from shapes; None if they are unknown."""
        return None if value is None else self.builder.known(value)

    def must_know(self, node: SourceNode, position: int, name: str) -> Array:
        """Return the elements of an input that must be known.

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
        """Return the size of a dimension.

        Raises:
            Unlowerable: it is not known before the model runs, or the axis does not exist.
        """
        rank = self.rank(value)
        if not -rank <= axis < rank:
            raise Unlowerable(f"{value.name!r} with {rank} dimensions has no axis {axis}")
        size = value.shape[axis]
        if not isinstance(size, int):
            raise Unlowerable(f"the size of axis {axis} of {value.name!r} is not known before the model runs")
        return size

    def rank(self, value: Value) -> int:
        """Return the number of dimensions of a value.

        Raises:
            Unlowerable: it is not known before the model runs.
        """
        if value.type.rank is None:
            raise Unlowerable(f"the number of dimensions of {value.name!r} is not known before the model runs")
        return value.type.rank
