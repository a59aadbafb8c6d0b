"""Values that are known before a run: constants, shapes, and what is computed from them alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lite_core.ir import Graph, Node, Value
from lite_core.ops.evaluate import evaluate_node

__all__ = ["Evaluate", "evaluate_if_known", "evaluate_known", "known_values"]

Array = np.ndarray[Any, Any]
#: Computes the results of a node from the elements of its inputs.
Evaluate = Callable[[Node, Sequence["Array | None"]], Sequence[Array]]

#: Operators that read the shape of their input and none of its elements.
_OF_SHAPES = frozenset(("Shape", "Size"))


def known_values(graph: Graph) -> set[Value]:
    """All values of a graph that :func:`evaluate_known` can compute one after another."""
    known = set(graph.constants)
    for node in graph.nodes:
        if node.subgraphs:
            continue
        if node.qualified_op in _OF_SHAPES:
            is_known = all(v.type.is_static for v in node.used())
        else:
            is_known = known.issuperset(node.used())
        if is_known:
            known.update(v for v in node.outputs if v is not None)
    return known


def evaluate_if_known(
    nodes: Sequence[Node], known: Mapping[Value, Array], evaluate: Evaluate = evaluate_node
) -> dict[Value, Array] | None:
    """What nodes make, where all that they read is known; None where something is not.

    Args:
        nodes: one may read what another before it makes.
        known: elements of values; every shape is known.
        evaluate: computes a node.
    """
    made: dict[Value, Array] = {}
    for node in nodes:
        arrays = _arrays_read(node, known, made)
        if arrays is None:
            return None
        made.update((v, array) for v, array in zip(node.outputs, evaluate(node, arrays)) if v is not None)
    return made


def evaluate_known(node: Node, known: Mapping[Value, Array]) -> Sequence[Array]:
    """The results of a node whose inputs are known to be known."""
    arrays = _arrays_read(node, known, {})
    assert arrays is not None, f"{node.describe()} reads what is not known before the run"
    return evaluate_node(node, arrays)


def _arrays_read(node: Node, known: Mapping[Value, Array], made: Mapping[Value, Array]) -> list[Array | None] | None:
    """The inputs of a node; None where one of them is not known, or the node has sub-graphs, which read others."""
    if node.qualified_op in _OF_SHAPES:
        return [np.broadcast_to(np.zeros((), v.dtype.numpy), tuple(v.shape)) for v in node.used()]
    arrays: list[Array | None] = []
    for value in node.inputs:
        array = None if value is None else known.get(value)
        if array is None and value is not None:
            array = made.get(value)
            if array is None:
                return None
        arrays.append(array)
    return None if node.subgraphs else arrays
