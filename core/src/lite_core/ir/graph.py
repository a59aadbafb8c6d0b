"""The graph: values in SSA form, nodes in topological order, constants, sub-graphs.

NOTE: a node's inputs may be values of an enclosing graph (the bodies of ``If`` and ``Loop`` capture
what they use), so code that walks uses must look into sub-graphs too: see :meth:`Graph.walk`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Union

import numpy as np

from lite_core.errors import GraphError
from lite_core.ir.attributes import PlainAttribute, format_attribute, format_constant
from lite_core.ir.types import DType, TensorType

__all__ = ["Attribute", "Graph", "Node", "Origin", "Value", "format_graph"]

Array = np.ndarray[Any, Any]
Attribute = Union[PlainAttribute, "Graph"]


class Origin(NamedTuple):
    """Where a node comes from: the operator type and name in the model the user brought."""

    op: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.op} {self.name!r}" if self.name else self.op


class Value:
    """A tensor in a graph, written once: a graph input, a constant, or an output of one node.

    Values are compared by identity. ``name`` is unique in its graph and those around it.
    """

    __slots__ = ("name", "type")

    def __init__(self, name: str, type: TensorType) -> None:
        self.name = name
        self.type = type

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def shape(self) -> Any:
        return self.type.shape

    def __repr__(self) -> str:
        return f"%{self.name}: {self.type}"


class Node:
    """One application of an operator.

    ``inputs`` and ``outputs`` are positional as in the operator's signature; ``None`` stands for an
    optional one that is left out. ``attributes`` holds only what was given: defaults are the
    operator's (``ops.get(node).attributes_of(node)`` fills them in).
    """

    __slots__ = ("attributes", "domain", "inputs", "name", "op", "origin", "outputs")

    def __init__(
        self,
        op: str,
        inputs: Iterable[Value | None],
        outputs: Iterable[Value | None],
        attributes: Mapping[str, Attribute] | None = None,
        *,
        domain: str = "",
        name: str = "",
        origin: Origin | None = None,
    ) -> None:
        self.op = op
        self.inputs: tuple[Value | None, ...] = tuple(inputs)
        self.outputs: tuple[Value | None, ...] = tuple(outputs)
        self.attributes: dict[str, Attribute] = dict(attributes or {})
        self.domain = domain
        self.name = name
        self.origin = origin

    @property
    def qualified_op(self) -> str:
        """``Conv`` for the default domain, ``lite.YoloBox`` for any other."""
        return f"{self.domain}.{self.op}" if self.domain else self.op

    @property
    def subgraphs(self) -> list[Graph]:
        """Graphs held by attributes (the branches of If, the body of Loop)."""
        return [a for a in self.attributes.values() if isinstance(a, Graph)]

    def captured(self) -> list[Value]:
        """Values of enclosing graphs that the sub-graphs of this node use."""
        return [v for a in self.attributes.values() if isinstance(a, Graph) for v in a.captured()]

    def used(self) -> list[Value]:
        """Every value this node needs before it can run: its inputs and what its sub-graphs capture."""
        used = [v for v in self.inputs if v is not None]
        for attribute in self.attributes.values():  # asked of every node of every plan, where few have sub-graphs
            if isinstance(attribute, Graph):
                used.extend(attribute.captured())
        return used

    def describe(self) -> str:
        """One line for messages: name, operator, origin and input types."""
        types = ", ".join("-" if v is None else str(v.type) for v in self.inputs)
        origin = f", from {self.origin}" if self.origin else ""
        return f"node {self.name!r} ({self.qualified_op}{origin}) on ({types})"

    def __repr__(self) -> str:
        return f"<Node {self.name} {self.qualified_op}>"


class Graph:
    """Inputs, outputs, constants and nodes in an order in which they can run.

    Constants are values that no node writes: ``constants[value]`` is a NumPy array, read-only by
    convention and possibly memory-mapped (then perhaps not aligned to its elements; what a session gives to
    backends is). Passes edit graphs in place; take :meth:`copy` first where
    the old one is still needed.
    """

    def __init__(
        self,
        name: str = "graph",
        *,
        inputs: Iterable[Value] = (),
        outputs: Iterable[Value] = (),
        nodes: Iterable[Node] = (),
        constants: Mapping[Value, Array] | None = None,
    ) -> None:
        self.name = name
        self.inputs: list[Value] = list(inputs)
        self.outputs: list[Value] = list(outputs)
        self.nodes: list[Node] = list(nodes)
        self.constants: dict[Value, Array] = dict(constants or {})
        #: What the importer knows about the model: producer, format version, file. Plain strings.
        self.metadata: dict[str, str] = {}

    # **** looking ****

    def producers(self) -> dict[Value, Node]:
        """Which node of this graph writes each value."""
        return {v: node for node in self.nodes for v in node.outputs if v is not None}

    def consumers(self) -> dict[Value, list[Node]]:
        """Which nodes of this graph need each value (a sub-graph's use counts for its node)."""
        found: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for value in dict.fromkeys(node.used()):
                found.setdefault(value, []).append(node)
        return found

    def defined(self) -> Iterator[Value]:
        """Values that this graph itself defines: inputs, constants, node outputs."""
        yield from self.inputs
        yield from self.constants
        for node in self.nodes:
            for value in node.outputs:
                if value is not None:
                    yield value

    def captured(self) -> Iterator[Value]:
        """Values that are used here and defined in an enclosing graph, each once, in order of use."""
        own = set(self.defined())
        seen: dict[Value, None] = {}
        for node in self.nodes:
            seen.update(dict.fromkeys(node.used()))
        seen.update(dict.fromkeys(self.outputs))
        return (v for v in seen if v not in own)

    def walk(self) -> Iterator[Graph]:
        """This graph and every sub-graph inside it, outermost first."""
        yield self
        for node in self.nodes:
            for subgraph in node.subgraphs:
                yield from subgraph.walk()

    def every_constant(self) -> Iterator[Array]:
        """The arrays of this graph's constants and of those of every sub-graph inside it."""
        for graph in self.walk():
            yield from graph.constants.values()

    def op_counts(self) -> dict[str, int]:
        """How often each operator occurs, sub-graphs included, most frequent first."""
        counts: dict[str, int] = {}
        for graph in self.walk():
            for node in graph.nodes:
                counts[node.qualified_op] = counts.get(node.qualified_op, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    # **** editing ****

    def replace_uses(self, replacements: Mapping[Value, Value]) -> None:
        """Make every user of a key use its value instead, sub-graphs and graph outputs included."""
        if not replacements:
            return

        def resolve(value: Value) -> Value:
            while value in replacements:
                value = replacements[value]
            return value

        for graph in self.walk():
            for node in graph.nodes:
                if any(v in replacements for v in node.inputs if v is not None):
                    node.inputs = tuple(None if v is None else resolve(v) for v in node.inputs)
            graph.outputs = [resolve(v) for v in graph.outputs]

    def add_constant(self, name: str, array: Array) -> Value:
        """A new constant value of this graph."""
        value = Value(name, TensorType.of_array(array))
        self.constants[value] = array
        return value

    def align_constants(self) -> None:
        """Copy constants that lie at odd places of a mapped file: NumPy is slow, and BLAS refuses, on those."""
        for graph in self.walk():
            for value, array in graph.constants.items():
                if not array.flags.aligned:
                    graph.constants[value] = aligned = np.array(array)
                    aligned.flags.writeable = False

    def copy(self) -> Graph:
        """A copy with values and nodes of its own; constant arrays are shared, not duplicated."""
        return self._copy({})

    def _copy(self, mapping: dict[Value, Value]) -> Graph:
        for value in self.defined():
            mapping[value] = Value(value.name, value.type)
        # A captured value of a graph outside the copy is not in the mapping: it stays.
        result = Graph(
            self.name,
            inputs=[mapping[v] for v in self.inputs],
            constants={mapping[v]: array for v, array in self.constants.items()},
            nodes=[
                Node(
                    node.op,
                    [None if v is None else mapping.get(v, v) for v in node.inputs],
                    [None if v is None else mapping[v] for v in node.outputs],
                    {k: a._copy(mapping) if isinstance(a, Graph) else a for k, a in node.attributes.items()},
                    domain=node.domain,
                    name=node.name,
                    origin=node.origin,
                )
                for node in self.nodes
            ],
        )
        result.outputs = [mapping.get(v, v) for v in self.outputs]
        result.metadata = dict(self.metadata)
        return result

    def sort(self) -> None:
        """Put the nodes into a topological order, keeping the present order where it is free.

        Raises:
            GraphError: the graph has a cycle.
        """
        producers = self.producers()
        state: dict[Node, bool] = {}  # False: on the way, True: placed
        order: list[Node] = []
        for root in self.nodes:
            stack: list[tuple[Node, Iterator[Value]]] = []
            if root not in state:
                state[root] = False
                stack.append((root, iter(root.used())))
            while stack:
                node, pending = stack[-1]
                for value in pending:
                    producer = producers.get(value)
                    if producer is None or state.get(producer):
                        continue
                    if producer in state:
                        raise GraphError(f"the graph {self.name!r} has a cycle through {producer.describe()}")
                    state[producer] = False
                    stack.append((producer, iter(producer.used())))
                    break
                else:
                    stack.pop()
                    state[node] = True
                    order.append(node)
        self.nodes = order

    def __str__(self) -> str:
        return format_graph(self)

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self.nodes)} nodes, {len(self.constants)} constants>"


def format_graph(graph: Graph, *, origins: bool = False) -> str:
    """The graph as text, one line a node.

    Args:
        graph: what to print; sub-graphs are indented below their node.
        origins: add where each node comes from in the model that was read.
    """
    return "\n".join(_lines(graph, "", origins))


def _lines(graph: Graph, indent: str, origins: bool) -> list[str]:
    inputs = ", ".join(repr(v) for v in graph.inputs)
    lines = [f"{indent}graph {graph.name}({inputs}) {{"]
    lines += [f"{indent}  const %{v.name}: {format_constant(v.type, array)}" for v, array in graph.constants.items()]
    for node in graph.nodes:
        lines += _node_lines(node, indent + "  ", origins)
    lines.append(f"{indent}  return {', '.join(repr(v) for v in graph.outputs)}")
    return [*lines, f"{indent}}}"]


def _node_lines(node: Node, indent: str, origins: bool) -> list[str]:
    results = ", ".join("_" if v is None else repr(v) for v in node.outputs)
    arguments = ", ".join("_" if v is None else f"%{v.name}" for v in node.inputs)
    plain = {k: a for k, a in node.attributes.items() if not isinstance(a, Graph)}
    attributes = ", ".join(f"{k}={format_attribute(a)}" for k, a in plain.items())
    line = f"{indent}{results} = {node.qualified_op}({arguments})"
    if attributes:
        line += f" {{{attributes}}}"
    if origins and node.origin:
        line += f"  # {node.origin}"
    lines = [line]
    for key, attribute in node.attributes.items():
        if isinstance(attribute, Graph):
            lines.append(f"{indent}  {key} =")
            lines += _lines(attribute, indent + "    ", origins)
    return lines
