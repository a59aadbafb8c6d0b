"""Graphs with loops and branches, for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Value

__all__ = ["LoopBody", "add_if", "add_loop", "constant", "graph_of"]

#: Returns the outputs of a body: the condition, the carried values, and the outputs of an iteration.
LoopBody = Callable[..., Sequence[Value]]


def constant(b: GraphBuilder, value: Any, dtype: Any = None) -> Value:
    return b.constant(np.array(value, dtype))


def add_loop(
    outer: GraphBuilder,
    trips: Value | None,
    condition: Value | None,
    carried: Sequence[Value],
    body: LoopBody,
    outputs: int,
) -> list[Value]:
    """Add a Loop; ``body(builder, iteration, condition, *carried)`` adds its nodes."""
    inner = GraphBuilder("body", outer=outer)
    name = outer.unique_name("loop")
    inputs = [inner.input(f"{name}_i", "int64", []), inner.input(f"{name}_c", "bool", [])]
    inputs += [inner.input(f"{name}_{i}", v.dtype, v.shape) for i, v in enumerate(carried)]
    for value in body(inner, *inputs):
        inner.output(value)
    return outer.add_node("Loop", [trips, condition, *carried], {"body": inner.build()}, outputs=outputs)


def add_if(
    outer: GraphBuilder,
    condition: Value,
    then: Callable[[GraphBuilder], Sequence[Value]],
    other: Callable[[GraphBuilder], Sequence[Value]],
    outputs: int = 1,
) -> list[Value]:
    """Add an If."""
    branches = {}
    for name, make in (("then_branch", then), ("else_branch", other)):
        inner = GraphBuilder(name, outer=outer)
        for value in make(inner):
            inner.output(value)
        branches[name] = inner.build()
    return outer.add_node("If", [condition], branches, outputs=outputs)


def graph_of(make: Callable[[GraphBuilder], Sequence[Value]]) -> Graph:
    """Return the graph with the outputs ``y0``, ``y1``, ..."""
    b = GraphBuilder("control")
    for number, value in enumerate(make(b)):
        b.output(value, f"y{number}")
    return b.build()
