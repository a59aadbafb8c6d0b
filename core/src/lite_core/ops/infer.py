"""Type and shape inference of whole graphs, with symbols and shape arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from lite_core import ops
from lite_core.errors import GraphError, LiteError
from lite_core.ir import Dim, Graph, Node, SymbolicDim, TensorType, Value
from lite_core.ops.inference import Inference
from lite_core.ops.registry import OpDef

__all__ = ["GraphInference", "KnownInference", "bind_symbols", "have_sizes", "infer_graph", "specialize"]

Array = np.ndarray[Any, Any]

# Larger tensors hold data, not results of shape arithmetic.
_MAX_KNOWN_ELEMENTS = 1024


class _Inferred(NamedTuple):
    """The types inferred for a node, and everything they depend on."""

    definition: OpDef
    attributes: Mapping[str, Any]
    types_in: list[TensorType | None]
    values_in: list[Array | None]
    types: list[TensorType]
    elements: Array | None


class KnownInference:
    """Cache of inferred types, valid while a node's operator, attributes and inputs stay the same.

    A graph is inferred while it is built and again in each round of passes, which change little of it. Nodes with
    sub-graphs are not cached.
    """

    def __init__(self) -> None:
        self._nodes: dict[Node, _Inferred] = {}

    @staticmethod
    def taken_from(graph: Graph) -> KnownInference:
        """Detach and return the cache attached to a graph, or an empty cache."""
        return _ATTACHED.pop(graph, None) or KnownInference()

    def attach(self, graph: Graph) -> None:
        """Attach the cache to a graph, for the next inference of the graph."""
        _ATTACHED[graph] = self

    def find(
        self, node: Node, definition: OpDef, types_in: list[TensorType | None], values_in: list[Array | None]
    ) -> _Inferred | None:
        """Return the cached types of a node, or None if its operator, attributes or inputs have changed."""
        found = self._nodes.get(node)
        if (
            found is None
            or found.definition is not definition
            or len(found.types) != len(node.outputs)
            or found.types_in != types_in
            or len(found.values_in) != len(values_in)
            or any(a is not b for a, b in zip(found.values_in, values_in))
            or found.attributes.keys() != node.attributes.keys()
            or any(found.attributes[name] is not value for name, value in node.attributes.items())
        ):
            return None
        return found

    def keep(self, node: Node, inferred: _Inferred) -> None:
        """Cache the inferred types of a node."""
        if not any(node.subgraphs):
            self._nodes[node] = inferred


_ATTACHED: WeakKeyDictionary[Graph, KnownInference] = WeakKeyDictionary()


class GraphInference:
    """Inference of the nodes of a graph, one by one, with the types and known elements found so far.

    Builders add node by node; :func:`infer_graph` runs it over a graph.

    Args:
        outer: inference of the enclosing graph.
        branches_may_not_fit: see :class:`Inference`; the setting of ``outer`` takes precedence.
        known: cache of earlier inference; not used in sub-graphs.
    """

    def __init__(
        self,
        outer: GraphInference | None = None,
        *,
        branches_may_not_fit: bool = False,
        known: KnownInference | None = None,
    ) -> None:
        self._outer = outer
        self._known = None if outer else known
        self._branches_may_not_fit: bool = outer._branches_may_not_fit if outer else branches_may_not_fit
        self._values: dict[Value, Array] = {}
        # Constants that are too large for shape arithmetic.
        self._data: dict[Value, Array] = {}
        self._types: dict[Value, TensorType] = {}

    def type_of(self, value: Value) -> TensorType:
        """Return the type inferred for a value, or else its declared type."""
        found = self._types.get(value)
        if found is None:
            return self._outer.type_of(value) if self._outer else value.type
        return found

    def value_of(self, value: Value) -> Array | None:
        """Return the known elements of a value, see :meth:`Inference.value`."""
        found = self._values.get(value)
        return self._outer.value_of(value) if found is None and self._outer else found

    def elements_of(self, value: Value) -> Array | None:
        """Return the elements of a constant of any size, or the known elements of another value."""
        found = self._data.get(value, self._values.get(value))
        return self._outer.elements_of(value) if found is None and self._outer else found

    def set_type(self, value: Value, type: TensorType) -> None:
        self._types[value] = type

    def set_value(self, value: Value, elements: Array) -> None:
        """Set the known elements of a value (a constant, or an input fixed by the caller)."""
        known = self._values if elements.size <= _MAX_KNOWN_ELEMENTS else self._data
        known[value] = elements

    def add_constants(self, graph: Graph) -> None:
        for value, array in graph.constants.items():
            self.set_type(value, value.type)
            self.set_value(value, array)

    def add_arrays(self, arrays: Iterable[tuple[Value | None, Array | None]]) -> None:
        """Set the types and elements of values by their arrays; pairs with None are left out."""
        for value, array in arrays:
            if value is not None and array is not None:
                self.set_type(value, TensorType.of_array(array))
                self.set_value(value, array)

    def infer(self, node: Node) -> list[TensorType]:
        """Infer one node whose input types are set; store and return the types of its outputs.

        Raises:
            GraphError: the inputs do not fit the operator; the message names the node.
        """
        definition = ops.get(node)
        # The two tables are read directly because this runs for every node of every plan.
        known_types, known_values, outer = self._types, self._values, self._outer
        types_in: list[TensorType | None] = []
        values_in: list[Array | None] = []
        for value in node.inputs:
            if value is None:
                types_in.append(None)
                values_in.append(None)
            else:
                types_in.append(known_types.get(value) or self.type_of(value))
                values_in.append(known_values.get(value) if outer is None else self.value_of(value))
        known = self._known.find(node, definition, types_in, values_in) if self._known else None
        if known is not None:
            return self._remember(node, known.types, known.elements)
        inference = Inference(
            types_in,
            definition.attributes_of(node),
            len(node.outputs),
            values_in,
            self._infer_subgraph,
            self._branches_may_not_fit,
        )
        if not node.outputs:
            raise GraphError(f"{node.describe()} writes nothing, every node must have at least one output")
        try:
            types = definition.infer_types(inference)
            elements = self._propagate(definition, inference, types[0])
        except GraphError as error:
            raise GraphError(f"{node.describe()}: {error}") from error
        if self._known:
            kept = _Inferred(definition, dict(node.attributes), types_in, values_in, types, elements)
            self._known.keep(node, kept)
        return self._remember(node, types, elements)

    def _remember(self, node: Node, types: list[TensorType], elements: Array | None) -> list[TensorType]:
        for value, type in zip(node.outputs, types):
            if value is not None:
                self._types[value] = type
        if elements is not None and node.outputs[0] is not None:
            self._values[node.outputs[0]] = elements
        return types

    @staticmethod
    def _propagate(definition: OpDef, inference: Inference, type: TensorType) -> Array | None:
        """Return the elements of the first output if they are known and few, else None."""
        # The product of symbolic dimensions is slow, so the size is computed only if all dimensions are numbers.
        size = type.size if definition.propagate is not None and type.is_static else None
        if definition.propagate is None or not isinstance(size, int):
            return None
        if not _is_number(size) and not any(value is not None for value in inference.values):
            return None  # it only passes for a number: whoever compares it decides something
        if size > _MAX_KNOWN_ELEMENTS:
            return None
        try:
            elements = definition.propagate(inference)
        except LiteError:
            raise
        except Exception as error:
            raise GraphError(
                f"the shape arithmetic of {definition.qualified_name} failed with {error.__class__.__name__}: {error}"
            ) from error
        return None if elements is None else _concrete_if_possible(elements, type)

    def run(self, graph: Graph) -> None:
        """Infer every node of a graph whose input types are set."""
        self.add_constants(graph)
        for node in graph.nodes:
            self.infer(node)

    def _infer_subgraph(
        self, graph: Graph, inputs: Sequence[TensorType], values: Sequence[Array | None]
    ) -> list[TensorType]:
        inner = GraphInference(self)
        for value, type in zip(graph.inputs, inputs):
            inner.set_type(value, type)
        for value, elements in zip(graph.inputs, values):
            if elements is not None:
                inner.set_value(value, elements)
        inner.run(graph)
        # The types of values inside sub-graphs are kept for printing and planning.
        for value, type in inner._types.items():
            self._types[value] = type
        return [inner.type_of(v) for v in graph.outputs]


def infer_graph(
    graph: Graph, input_types: Mapping[str, TensorType] | None = None, *, known: KnownInference | None = None
) -> None:
    """Infer every value of a graph and write the types into it.

    Args:
        graph: edited in place.
        input_types: types that replace the declared types of inputs, by name. A branch of If that does not fit them
            keeps its types.
        known: cache of earlier inference of the graph.
    """
    inference = GraphInference(branches_may_not_fit=input_types is not None, known=known)
    for value in graph.inputs:
        inference.set_type(value, (input_types or {}).get(value.name, value.type))
    inference.run(graph)
    for value, type in inference._types.items():
        value.type = type


def specialize(
    graph: Graph,
    shapes: Mapping[str, Sequence[Dim]],
    values: Mapping[str, Array] | None = None,
) -> GraphInference:
    """Infer a graph for given input shapes without changing it; the result has the types.

    Args:
        graph: the graph.
        shapes: a shape for each input, by name.
        values: elements of integer inputs that determine shapes, if the caller knows them.
    """
    inference = GraphInference()
    for value in graph.inputs:
        inference.set_type(value, value.type.with_shape(tuple(shapes[value.name])))
        if values and value.name in values:
            inference.set_value(value, values[value.name])
    inference.run(graph)
    return inference


def bind_symbols(declared: Iterable[Value], shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Return the sizes of the named symbols of the inputs, given the shapes of the arrays.

    Raises:
        GraphError: one symbol stands for two sizes, or a size does not fit; names both inputs.
    """
    bindings: dict[str, int] = {}
    sources: dict[str, str] = {}
    for value in declared:
        if value.type.shape is None:
            continue
        for axis, (dim, size) in enumerate(zip(value.type.shape, shapes[value.name])):
            name = dim.name if isinstance(dim, SymbolicDim) else None
            if name is None:
                continue
            here = f"dimension {axis} of input {value.name!r}"
            if bindings.setdefault(name, size) != size:
                raise GraphError(f"symbol {name!r} is {bindings[name]} by {sources[name]} and {size} by {here}")
            sources.setdefault(name, here)
    return bindings


def have_sizes(declared: Iterable[Value], shapes: Iterable[Sequence[int]]) -> bool:
    """Return True if shapes fit the declared types, and no symbol stands for two sizes.

    It is False as well where an expression of symbols, or a type of unknown rank, must be looked at more closely.
    """
    bindings: dict[SymbolicDim, int] = {}
    for value, shape in zip(declared, shapes):
        own = value.type.shape
        if own is None or len(own) != len(shape):
            return False
        for dim, size in zip(own, shape):
            if (bindings.setdefault(dim, size) if isinstance(dim, SymbolicDim) else dim) != size:
                return False
    return all(dim.name for dim in bindings)


def _is_number(element: object) -> bool:
    """Return True for a number itself; a symbol, or a number that only passes for one, stays in an object array."""
    return issubclass(type(element), (int, float, np.generic))


def _concrete_if_possible(elements: Array, type: TensorType) -> Array:
    """Convert elements to the tensor's element type if none of them is symbolic."""
    if elements.dtype == object and all(map(_is_number, elements.reshape(-1).tolist())):
        return elements.astype(type.dtype.numpy)
    return elements
