"""Computing known values, which :func:`lite_core.ops.helpers.find_known_values` finds; sizes may be traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lite_compiler.tracing.numbers import call
from lite_core.ir import Node, Value
from lite_core.ops.evaluate import evaluate_node
from lite_core.ops.helpers.known_values import SHAPE_OPERATORS

__all__ = ["Evaluate", "evaluate_if_known", "evaluate_known"]

Array = np.ndarray[Any, Any]
#: Computes the results of a node from its input arrays.
Evaluate = Callable[[Node, Sequence["Array | None"]], Sequence[Array]]


def evaluate_if_known(
    nodes: Sequence[Node], known: Mapping[Value, Array], evaluate: Evaluate = evaluate_node
) -> dict[Value, Array] | None:
    """Compute the results of nodes if all their inputs are known, else return None.

    Args:
        nodes: nodes that may read the results of nodes before them.
        known: the elements of known values; every shape is known.
        evaluate: computes one node.
    """
    computed: dict[Value, Array] = {}
    for node in nodes:
        arrays = _input_arrays(node, known, computed)
        if arrays is None:
            return None
        computed.update((v, array) for v, array in zip(node.outputs, evaluate(node, arrays)) if v is not None)
    return computed


def evaluate_known(node: Node, known: Mapping[Value, Array]) -> Sequence[Array]:
    """Compute the results of a node, all of whose inputs must be known."""
    arrays = _input_arrays(node, known, {})
    assert arrays is not None, f"{node.describe()} reads a value that is not known before the run"
    return evaluate_node(node, arrays)


def _input_arrays(
    node: Node, known: Mapping[Value, Array], computed: Mapping[Value, Array]
) -> list[Array | None] | None:
    """Return the input arrays of a node; None if one is unknown or the node has sub-graphs, which read more values."""
    if node.qualified_op in SHAPE_OPERATORS:
        return [call(np.broadcast_to, np.zeros((), v.dtype.numpy), tuple(v.shape)) for v in node.used()]
    arrays: list[Array | None] = []
    for value in node.inputs:
        array = None if value is None else known.get(value)
        if array is None and value is not None:
            array = computed.get(value)
            if array is None:
                return None
        arrays.append(array)
    return None if node.subgraphs else arrays
