"""Values that grow in a Loop become stacked outputs, if nothing in the body reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from levels import run_on, runnable_machines
from loops import add_loop, constant, graph_of

from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Value
from lite_core.ops.evaluate import evaluate_graph
from lite_core.ops.infer import infer_graph
from lite_cpu.growing import GrowingOutputs

Array = np.ndarray[Any, Any]


def growing(b: GraphBuilder) -> Sequence[Value]:
    """Two values grow along different axes, one by two pieces; a third one is carried, and one is stacked."""
    x, ids = b.input("x", "float32", ["n", 3]), b.input("ids", "int64", [1, "m"])
    trips = b.input("trips", "int64", [])

    def body(i: GraphBuilder, number: Value, _: Value, rows: Value, words: Value, state: Value) -> Sequence[Value]:
        after, word = i.add("Add", [state, x]), i.add("Reshape", [number, i.ints(1, 1)])
        longer = i.add("Concat", [rows, after, x], {"axis": 0})
        return [constant(i, True), longer, i.add("Concat", [words, word], {"axis": -1}), after, number]

    return add_loop(b, trips, None, [x, ids, x], body, 4)


def reading(b: GraphBuilder) -> Sequence[Value]:
    """The body reads the value that grows."""
    x = b.input("x", "float32", [2, 3])

    def body(i: GraphBuilder, number: Value, _: Value, rows: Value) -> Sequence[Value]:
        piece = i.add("ReduceMax", [rows, i.ints(0)])
        return [constant(i, True), i.add("Concat", [rows, piece], {"axis": 0})]

    return add_loop(b, constant(b, 3), None, [x], body, 1)


def uneven(b: GraphBuilder) -> Sequence[Value]:
    """The pieces grow, too."""
    x = b.input("x", "float32", [2, 3])

    def body(i: GraphBuilder, number: Value, _: Value, rows: Value, piece: Value) -> Sequence[Value]:
        longer = i.add("Concat", [piece, piece], {"axis": 0})
        return [constant(i, True), i.add("Concat", [rows, piece], {"axis": 0}), i.add("Tanh", [longer])]

    return add_loop(b, constant(b, 3), None, [x, x], body, 2)


def in_front(b: GraphBuilder) -> Sequence[Value]:
    """Pieces are put in front."""
    x = b.input("x", "float32", [2, 3])

    def body(i: GraphBuilder, number: Value, _: Value, rows: Value) -> Sequence[Value]:
        return [constant(i, True), i.add("Concat", [x, rows], {"axis": 0})]

    return add_loop(b, constant(b, 3), None, [x], body, 1)


def rewritten(graph: Graph) -> Graph:
    """Return the graph after as many rounds as change it."""
    graph = graph.copy()
    infer_graph(graph)
    while True:
        graph, changed = GrowingOutputs()(graph)
        if not changed:
            return graph
        infer_graph(graph)


def loop_inputs(graph: Graph) -> int:
    return next(len(node.inputs) for node in graph.nodes if node.op == "Loop")


@pytest.mark.parametrize("trips", [0, 1, 40])
def test_pieces_are_collected(trips: int) -> None:
    graph = graph_of(growing)
    collected = rewritten(graph)
    assert loop_inputs(collected) == loop_inputs(graph) - 2
    inputs = [np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(5)[None], np.array(trips)]
    results = evaluate_graph(graph, inputs)
    for expected, found in zip(results, evaluate_graph(collected, inputs), strict=True):
        np.testing.assert_array_equal(found, expected)
    if runnable_machines():
        native = run_on(runnable_machines()[-1], collected, dict(zip(("x", "ids", "trips"), inputs)))
        for expected, found in zip(results, native.values(), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("make", [reading, uneven, in_front], ids=lambda make: make.__name__)
def test_other_values_are_carried_as_before(make: Any) -> None:
    graph = graph_of(make)
    assert loop_inputs(rewritten(graph)) == loop_inputs(graph)
