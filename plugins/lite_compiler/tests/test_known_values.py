"""Tests of values that are known before a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_compiler.known_values import evaluate_if_known, evaluate_known
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Node
from lite_core.ops.evaluate import evaluate_node
from lite_core.ops.helpers import find_known_values

Array = np.ndarray[Any, Any]


def graph_of(batch: int | str = 3) -> Graph:
    """A graph with a known value, the input's batch size plus one, and an unknown one, its product with the input."""
    b = GraphBuilder("known")
    x = b.input("x", "float32", [batch, 4])
    size = b.add("Gather", [b.add("Shape", [x]), b.add("Squeeze", [b.ints(0)])])
    more = b.add("Add", [size, b.constant(np.int64(1))])
    b.output(more, "more")
    b.output(b.add("Mul", [x, b.add("Cast", [more], {"to": x.dtype})]), "scaled")
    return b.build()


def test_values_computed_from_constants_and_shapes_are_known() -> None:
    graph = graph_of()
    known = find_known_values(graph)
    assert {v.name for v in graph.outputs} & {v.name for v in known} == {"more"}
    assert len(known) == len(graph.constants) + 5


def test_data_dependent_shape_is_not_known() -> None:
    graph = graph_of("batch")
    assert find_known_values(graph) == {*graph.constants, *graph.nodes[1].outputs}  # the Squeeze of a constant


def test_known_nodes_are_evaluated_in_order() -> None:
    graph = graph_of()
    computed = evaluate_if_known(graph.nodes[:-1], graph.constants)
    assert computed is not None
    assert {v.name: a.tolist() for v, a in computed.items()}["more"] == 4


def test_node_with_an_unknown_input_is_not_evaluated() -> None:
    graph, evaluated = graph_of(), []

    def evaluate(node: Node, arrays: Sequence[Array | None]) -> Sequence[Array]:
        evaluated.append(node.op)
        return evaluate_node(node, arrays)

    assert evaluate_if_known(graph.nodes[-1:], graph.constants, evaluate) is None
    assert evaluated == []


def test_node_with_sub_graphs_is_not_known() -> None:
    b = GraphBuilder("outer")
    inner = GraphBuilder("inner", outer=b)
    inner.output(inner.constant(np.float32(1)), "one")
    b.output(
        b.add("If", [b.constant(np.bool_(True))], {"then_branch": inner.build(), "else_branch": inner.build()}), "y"
    )
    graph = b.build()
    assert find_known_values(graph) == set(graph.constants)
    assert evaluate_if_known(graph.nodes, graph.constants) is None


def test_evaluate_known_node() -> None:
    graph = graph_of()
    shape = next(n for n in graph.nodes if n.op == "Shape")
    assert [a.tolist() for a in evaluate_known(shape, {})] == [[3, 4]]
