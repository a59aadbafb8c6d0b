"""Known values: constants, static shapes, and values computed from these alone, all available before a run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lite_core import ops
from lite_core.errors import LiteError
from lite_core.ir import Array, Graph, Node, Value
from lite_core.ops.evaluate import evaluate_node

__all__ = ["MOST_BYTES", "SHAPE_OPERATORS", "find_known_values", "fold_constants"]

#: The largest result that is computed before the run.
MOST_BYTES = 1 << 20
#: Operators that read only the shape of their input, not its elements.
SHAPE_OPERATORS = frozenset(("Shape", "Size"))


def find_known_values(graph: Graph, most_bytes: int | None = None) -> set[Value]:
    """Return the constants of a graph, and all values that can be computed from these and from static shapes.

    Nodes with sub-graphs, and random ones, have no known results.

    Args:
        graph: a graph, usually that of a partition.
        most_bytes: leave out values larger than this, and those that are not of a static shape; by default none.
    """
    known = set(graph.constants)
    for node in graph.nodes:
        if _is_known(node, known) and (most_bytes is None or _is_small(node, most_bytes)):
            known.update(v for v in node.outputs if v is not None)
    return known


def fold_constants(graph: Graph, most_bytes: int = MOST_BYTES) -> Graph:
    """Return a graph of the same values without the nodes whose results are known; those results are constants.

    Lite's passes fold constants when a model is loaded. What is left for a partition is mostly arithmetic with shapes,
    which are known then. An output that is known is a constant and an output of the result.

    Args:
        graph: stays as it is.
        most_bytes: nodes with a larger result stay, such as a weight that is stored quantized.
    """
    constants, nodes = dict(graph.constants), []
    for node in graph.nodes:
        results = None
        if _is_known(node, constants) and _is_small(node, most_bytes):
            results = _computed(node, constants)
        if results is None:
            nodes.append(node)
        else:
            constants.update((v, array) for v, array in zip(node.outputs, results) if v is not None)
    used = {*graph.outputs, *(value for node in nodes for value in node.used())}
    constants = {value: array for value, array in constants.items() if value in used}
    return Graph(graph.name, inputs=graph.inputs, outputs=graph.outputs, nodes=nodes, constants=constants)


def _is_known(node: Node, known: set[Value] | Mapping[Value, Array]) -> bool:
    if node.subgraphs or node.qualified_op in ops.IMPURE_OPS:
        return False
    if node.qualified_op in SHAPE_OPERATORS:
        return all(v.type.is_static for v in node.used())
    return all(v in known for v in node.used())


def _is_small(node: Node, most_bytes: int) -> bool:
    types = [v.type for v in node.outputs if v is not None]
    return all(t.is_static and t.size * t.dtype.itemsize <= most_bytes for t in types)  # type: ignore[operator]


def _computed(node: Node, known: Mapping[Value, Array]) -> list[Array] | None:
    """Return the results of a node; None if its reference fails, so that the failure is reported when the node runs."""
    if node.qualified_op in SHAPE_OPERATORS:
        arrays = [np.broadcast_to(np.zeros((), v.dtype.numpy), v.shape) for v in node.used()]
        return evaluate_node(node, arrays)
    try:
        return evaluate_node(node, [None if v is None else known[v] for v in node.inputs])
    except LiteError:
        return None
