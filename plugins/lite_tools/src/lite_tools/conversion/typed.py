"""Graphs with the types that follow from input shapes."""

from __future__ import annotations

from collections.abc import Mapping

from lite_core.errors import GraphError, InputError
from lite_core.ir import Graph
from lite_core.ops.infer import infer_graph

__all__ = ["Shapes", "typed_graph"]

#: The shape of each input, by name.
Shapes = Mapping[str, tuple[int, ...]]


def typed_graph(graph: Graph, shapes: Shapes) -> Graph:
    """Copy a graph and infer the types that follow from the shapes of its inputs.

    Args:
        graph: the graph, with inferred types.
        shapes: the shapes of all inputs, which must fit their types.

    Raises:
        InputError: the model does not accept them.
    """
    typed = graph.copy()
    if all(value.type.is_static for value in graph.inputs):
        return typed  # the types already follow from the static shapes
    try:
        infer_graph(typed, {v.name: v.type.with_shape(shapes[v.name]) for v in graph.inputs})
    except GraphError as error:
        listed = ", ".join(f"{name}={list(shape)}" for name, shape in shapes.items())
        raise InputError(f"the model does not accept the input shapes {listed}: {error}") from None
    return typed
