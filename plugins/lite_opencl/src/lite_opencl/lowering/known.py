"""Values that are known before a run: constants, shapes, and what is computed from them alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lite_core.ir import Graph, Node, Value
from lite_core.ops.evaluate import evaluate_node

__all__ = ["evaluate_known", "is_known_when", "known_values"]

Array = np.ndarray[Any, Any]

#: Operators that read the shape of their input and none of its elements.
_OF_SHAPES = frozenset(("Shape", "Size"))


def known_values(graph: Graph) -> set[Value]:
    """All values of a graph that :func:`evaluate_known` can compute one after another."""
    known = set(graph.constants)
    for node in graph.nodes:
        if is_known_when(node, known):
            known.update(v for v in node.outputs if v is not None)
    return known


def is_known_when(node: Node, known: set[Value] | Mapping[Value, Array]) -> bool:
    """Whether a node's results can be computed before the run when the elements of ``known`` are there."""
    if node.subgraphs:
        return False
    if node.qualified_op in _OF_SHAPES:
        return all(v.type.is_static for v in node.used())
    return all(v in known for v in node.used())


def evaluate_known(node: Node, known: Mapping[Value, Array]) -> Sequence[Array | None]:
    """The results of a node for which :func:`is_known_when` said yes."""
    if node.qualified_op in _OF_SHAPES:
        (value,) = node.used()
        return evaluate_node(node, [np.broadcast_to(np.zeros((), value.dtype.numpy), tuple(value.shape))])
    return evaluate_node(node, [None if v is None else known[v] for v in node.inputs])
