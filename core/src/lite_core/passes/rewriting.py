"""Shared parts of passes: a scope (a graph or sub-graph) with its producers and users, updated by edits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from lite_core.ir import Array, Attribute, Graph, Node, Origin, TensorType, Value
from lite_core.passes.base import PassResult

__all__ = ["Scope", "ScopePass", "first_origin"]


def first_origin(nodes: Sequence[Node]) -> Origin | None:
    """Return the origin of a node that replaces ``nodes``: the first origin among them."""
    return next((n.origin for n in nodes if n.origin is not None), None)


class Scope:
    """A graph or sub-graph during a rewrite. Producers and users of values are updated by each edit.

    NOTE: a graph's outputs are never replaced by other values, because their names are the model's interface. A node
    that writes an output is replaced by a node that writes the same value.
    """

    def __init__(self, graph: Graph, outer: Scope | None = None) -> None:
        self.graph = graph
        self.outer = outer
        self.changed = False
        self._outputs = set(graph.outputs)
        self._replacements: dict[Node, Sequence[Node]] = {}
        self._removed: set[Node] = set()

    # Computed on first use, because most passes find nothing to do. The first edit needs them.

    @cached_property
    def _producers(self) -> dict[Value, Node]:
        return self.graph.producers()

    @cached_property
    def _consumers(self) -> dict[Value, list[Node]]:
        return self.graph.consumers()

    @cached_property
    def _names(self) -> set[str]:
        """Names of all values in this graph, its sub-graphs and enclosing graphs; a new value needs another name."""
        if self.outer is not None:
            return self.outer._names
        return {value.name for scope in self.graph.walk() for value in scope.defined()}

    # **** queries ****

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes in order, except those that edits during the iteration remove."""
        return (n for n in self.graph.nodes if n not in self._removed)

    def constant(self, value: Value | None) -> Array | None:
        """Return the array of a constant of this graph or an enclosing one, or None."""
        found = None if value is None else self.graph.constants.get(value)
        return self.outer.constant(value) if found is None and self.outer is not None else found

    def scalar(self, value: Value | None) -> float | None:
        """Return the number in a constant of one element, or None."""
        array = self.constant(value)
        return float(array.reshape(())) if array is not None and array.size == 1 else None

    def integers(self, value: Value | None) -> tuple[int, ...] | None:
        """Return the elements of a constant integer vector (axes, a shape), or None."""
        array = self.constant(value)
        return None if array is None else tuple(int(i) for i in array.reshape(-1))

    def producer(self, value: Value | None, *ops: str) -> Node | None:
        """Return the node of this graph that writes a value, or None; with ``ops``, only a node of these operators."""
        node = None if value is None else self._producers.get(value)
        return node if node is not None and (not ops or node.qualified_op in ops) else None

    def consumers(self, value: Value) -> Sequence[Node]:
        """Return the nodes that read a value; a use in a sub-graph counts for its node."""
        return self._consumers.get(value, ())

    def is_output(self, value: Value) -> bool:
        return value in self._outputs

    def sole_consumer(self, value: Value) -> Node | None:
        """Return the only node that reads a value; None if there are several, or if the value is a graph output."""
        users = self.consumers(value)
        return users[0] if len(users) == 1 and value not in self._outputs else None

    def are_private(self, nodes: Sequence[Node]) -> bool:
        """Return True if only ``nodes`` read the results of all of them except the last; none is a graph output."""
        results = [v for node in nodes[:-1] for v in node.outputs if v is not None]
        return all(v not in self._outputs and all(user in nodes for user in self.consumers(v)) for v in results)

    def tensor_and_scalar(self, node: Node) -> tuple[Value, float] | None:
        """Return the tensor and the number that a node of two inputs reads; None if it reads something else."""
        if len(node.inputs) != 2:
            return None
        for value, other in (node.inputs, node.inputs[::-1]):
            number = self.scalar(other)
            if number is not None and value is not None and self.constant(value) is None:
                return value, number
        return None

    # **** editing ****

    def new_value(self, wanted: str, type: TensorType) -> Value:
        """Return a new value with a unique name."""
        name, number = wanted, 1
        while name in self._names:
            name, number = f"{wanted}_{number}", number + 1
        self._names.add(name)
        return Value(name, type)

    def new_constant(self, wanted: str, array: Array) -> Value:
        """Add a constant with a unique name."""
        value = self.new_value(wanted, TensorType.of_array(array))
        self.graph.constants[value] = array
        return value

    def replace(self, old: Sequence[Node], new: Sequence[Node]) -> None:
        """Replace ``old`` nodes, at the position of the last one, by ``new`` nodes that write all values still used."""
        for node in old:
            self._unregister(node)
        for node in new:
            for value in dict.fromkeys(node.used()):
                self._consumers.setdefault(value, []).append(node)
            self._producers.update((v, node) for v in node.outputs if v is not None)
        self._replacements[old[-1]] = new

    def substitute(
        self,
        old: Sequence[Node],
        op: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute] | None = None,
        *,
        domain: str = "",
    ) -> Node:
        """Replace ``old`` nodes by one node, which takes over the name and the first output of the last of them."""
        last = old[-1]
        origin = first_origin(old)
        node = Node(op, inputs, last.outputs[:1], attributes, domain=domain, name=last.name, origin=origin)
        self.replace(old, [node])
        return node

    def make_constant(self, node: Node, arrays: Sequence[Array]) -> None:
        """Replace a node by constants with these elements."""
        self._unregister(node)
        for value, array in zip(node.outputs, arrays):
            if value is not None:
                # NOTE: a broadcast view would be small in memory and large in a file; asarray preserves rank 0.
                array = np.asarray(array, order="C")
                value.type = TensorType.of_array(array)
                self.graph.constants[value] = array

    def merge(self, node: Node, equal: Mapping[Value, Value]) -> None:
        """Remove a node whose outputs are no graph outputs; their users read the equal values instead."""
        self._unregister(node)
        for old, new in equal.items():
            self._redirect(old, new)

    def bypass(self, node: Node, source: Value) -> bool:
        """Remove a node whose first output equals ``source``; return False if it must stay.

        It must stay if its output is a graph output and ``source`` cannot be renamed to it, because ``source`` is a
        graph input, a constant, a value of an enclosing graph, or another graph output.
        """
        output = node.outputs[0]
        assert output is not None
        if output not in self._outputs:
            self._unregister(node)
            self._redirect(output, source)
        else:
            producer = self._producers.get(source)
            if producer is None or source in self._outputs:
                return False
            self._unregister(node)
            producer.outputs = tuple(output if v is source else v for v in producer.outputs)
            self._producers[output] = producer
            del self._producers[source]
            self._redirect(source, output)
        return True

    def _redirect(self, old: Value, new: Value) -> None:
        for user in self._consumers.pop(old, []):
            if new not in user.used():
                self._consumers.setdefault(new, []).append(user)
            user.inputs = tuple(new if v is old else v for v in user.inputs)
            for subgraph in user.subgraphs:
                subgraph.replace_uses({old: new})

    def _unregister(self, node: Node) -> None:
        """Mark a node as removed, and remove it from the producers and users."""
        self.changed = True
        self._removed.add(node)
        for value in dict.fromkeys(node.used()):
            users = self._consumers.get(value, [])
            if node in users:
                users.remove(node)
        for output in node.outputs:
            if output is not None and self._producers.get(output) is node:
                del self._producers[output]

    def commit(self) -> bool:
        """Write the edits to the graph's list of nodes; return True if there were any."""
        if self.changed:
            self.graph.nodes = [n for node in self.graph.nodes for n in self._with_replacements(node)]
            self._removed.clear()
            self._replacements.clear()
        return self.changed

    def _with_replacements(self, node: Node) -> Iterator[Node]:
        """Yield a node unless it was removed, then its replacements."""
        if node not in self._removed:
            yield node
        for replacement in self._replacements.get(node, ()):
            yield from self._with_replacements(replacement)


class ScopePass(ABC):
    """A pass that rewrites a graph and then each of its sub-graphs, one scope at a time."""

    name: str

    def __call__(self, graph: Graph) -> PassResult:
        return PassResult(graph, self._visit(graph, None))

    def _visit(self, graph: Graph, outer: Scope | None) -> bool:
        scope = Scope(graph, outer)
        self.rewrite(scope)
        changed = scope.commit()
        for node in graph.nodes:
            for subgraph in node.subgraphs:
                changed |= self._visit(subgraph, scope)
        return changed

    @abstractmethod
    def rewrite(self, scope: Scope) -> None:
        """Edit one scope through its methods, which set ``scope.changed``."""
