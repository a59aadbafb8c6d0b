"""Inputs whose elements must be known numbers before a node is compiled for fixed shapes, such as a shape or axes.

An operator declares them: ``numbers=`` of :func:`lite_core.ops.define`.
"""

from __future__ import annotations

from collections.abc import Container

from lite_core import ops
from lite_core.ir import Graph, Node, Value
from lite_core.ops.helpers.known_values import MOST_BYTES, find_known_values

__all__ = ["data_dependent_nodes", "number_inputs", "unknown_numbers"]


def number_inputs(node: Node) -> tuple[int, ...]:
    """Return the positions of a node's inputs whose elements decide the shapes of its outputs or how it is computed.

    These are for example the shape of Reshape, the axes of a reduction, all but the first input of Slice, the pads and
    axes of Pad, the scales of Resize, and the axis of CumSum. Inputs that are left out are not among them. The M and
    cond of Loop, and the cond of If, are not either: whether they must be known depends on the backend.
    """
    definition = ops.get(node)
    if not definition.numbers:
        return ()
    parameters = zip(range(len(node.inputs)), node.inputs, definition.inputs)
    return tuple(i for i, value, parameter in parameters if value is not None and parameter.name in definition.numbers)


def unknown_numbers(node: Node, known: Container[Value]) -> list[Value]:
    """Return the inputs of :func:`number_inputs` that are not among the known values; the node cannot be compiled yet.

    Args:
        node: a node.
        known: constants and other values whose elements the backend knows, see :func:`find_known_values`.
    """
    return [value for i in number_inputs(node) if (value := node.inputs[i]) is not None and value not in known]


def data_dependent_nodes(graph: Graph) -> list[Node]:
    """Return the nodes of a graph with static shapes that need numbers which become known only during a run.

    It is an argument of ``StagedExecutable`` and ``can_compile_whole``. The numbers of all other nodes are constants of
    the graph that ``fold_constants`` returns, unless the node that computes them fails.
    """
    known = find_known_values(graph, MOST_BYTES)
    return [node for node in graph.nodes if unknown_numbers(node, known)]
