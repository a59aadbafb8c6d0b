"""Common subexpression elimination: merging equal constants and equal nodes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from lite_core import ops
from lite_core.ir import Array, Graph, Node, Value
from lite_core.passes.base import PassResult
from lite_core.passes.rewriting import Scope

__all__ = ["CommonSubexpression"]

_COMMUTATIVE = frozenset({"Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Mul", "Or", "Xor"})
# Few: each may lie in another page, which would be read from the model's file.
_SAMPLED_ELEMENTS = 8


class CommonSubexpression:
    """Pass that merges equal constants and equal nodes.

    Rules:
        1. Constants of equal type and equal bytes become one (-0.0 and 0.0 differ).
        2. Of two pure nodes with the same operator, inputs and attributes, including defaults, the second is removed,
           and its users read the outputs of the first. The order of inputs does not matter if the operator is
           commutative.
        3. A sub-graph uses values that enclosing graphs compute before its node.

    If the second node writes a graph output, it becomes an Identity of the first, so that the output's name stays.
    Nodes with sub-graphs and random nodes are not merged.
    """

    name = "common_subexpression"

    def __call__(self, graph: Graph) -> PassResult:
        return PassResult(graph, _merge(graph, None, {}, {}))


def _merge(
    graph: Graph,
    outer: Scope | None,
    seen_nodes: dict[Hashable, Node],
    seen_constants: dict[Hashable, list[tuple[Value, Array]]],
) -> bool:
    changed = _merge_constants(graph, seen_constants)
    scope = Scope(graph, outer)
    for node in scope.nodes():
        for subgraph in node.subgraphs:
            constants = {key: list(entries) for key, entries in seen_constants.items()}
            # The sub-graph may use the nodes before its node, which are those seen so far.
            changed |= _merge(subgraph, scope, dict(seen_nodes), constants)
        if (key := _node_key(node)) is None:
            continue
        first = seen_nodes.setdefault(key, node)
        if first is not node:
            _merge_nodes(scope, node, first)
    return scope.commit() or changed


def _merge_nodes(scope: Scope, node: Node, first: Node) -> None:
    pairs = [(a, b) for a, b in zip(first.outputs, node.outputs) if b is not None]
    if any(a is None for a, _ in pairs):
        return  # the first node omits an output that this one has
    if not any(scope.is_output(b) for _, b in pairs):
        scope.merge(node, {b: a for a, b in pairs if a is not None})
    elif len(pairs) == 1 and node.op != "Identity":
        scope.substitute([node], "Identity", [pairs[0][0]])


def _node_key(node: Node) -> Hashable | None:
    if node.qualified_op in ops.IMPURE_OPS or any(node.subgraphs):
        return None
    inputs = [id(v) if v is not None else 0 for v in node.inputs]
    if node.qualified_op in _COMMUTATIVE:
        inputs.sort()
    attributes = tuple([(name, _attribute_key(a)) for name, a in ops.attributes_of(node).items()])
    return node.qualified_op, tuple(inputs), attributes, len(node.outputs)


def _attribute_key(attribute: Any) -> Hashable:
    if isinstance(attribute, np.ndarray):
        return (attribute.dtype.name, attribute.shape, attribute.tobytes())
    return repr(attribute)  # distinguishes -0.0 from 0.0, and equals itself for NaN


# **** constants ****


def _merge_constants(graph: Graph, seen: dict[Hashable, list[tuple[Value, Array]]]) -> bool:
    replacements: dict[Value, Value] = {}
    outputs = set(graph.outputs)
    for value, array in graph.constants.items():
        entries = seen.setdefault(_constant_key(array), [])
        equal = next((v for v, other in entries if _same_bytes(array, other)), None)
        if equal is None:
            entries.append((value, array))
        elif value not in outputs:
            replacements[value] = equal
    for value in replacements:
        del graph.constants[value]
    graph.replace_uses(replacements)
    return bool(replacements)


def _constant_key(array: Array) -> Hashable:
    """Return a cheap key, equal for equal arrays: large weights usually differ in a few sampled elements."""
    step = max(1, array.size // _SAMPLED_ELEMENTS)
    return (array.dtype.name, array.shape, array.reshape(-1)[::step].tobytes())


def _same_bytes(a: Array, b: Array) -> bool:
    if a.size <= _SAMPLED_ELEMENTS:
        return True  # the key holds every element
    first, second = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (a, b))
    return bool(np.array_equal(first, second))
