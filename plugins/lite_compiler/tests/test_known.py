"""What is computed before the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_compiler.known import evaluate_if_known, evaluate_known, known_values
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Node
from lite_core.ops.evaluate import evaluate_node

Array = np.ndarray[Any, Any]


def graph_of(batch: int | str = 3) -> Graph:
    """The height of an input plus one, which is known; a product with the input, which is not; a graph inside."""
    b = GraphBuilder("known")
    x = b.input("x", "float32", [batch, 4])
    size = b.add("Gather", [b.add("Shape", [x]), b.add("Squeeze", [b.ints(0)])])
    more = b.add("Add", [size, b.constant(np.int64(1))])
    b.output(more, "more")
    b.output(b.add("Mul", [x, b.add("Cast", [more], {"to": x.dtype})]), "scaled")
    return b.build()


def test_what_follows_from_constants_and_shapes_is_known() -> None:
    graph = graph_of()
    known = known_values(graph)
    assert {v.name for v in graph.outputs} & {v.name for v in known} == {"more"}
    assert len(known) == len(graph.constants) + 5


def test_a_shape_that_depends_on_data_is_not_known() -> None:
    graph = graph_of("batch")
    assert known_values(graph) == {*graph.constants, *graph.nodes[1].outputs}  # the Squeeze of a constant


def test_nodes_are_evaluated_one_after_another() -> None:
    graph = graph_of()
    made = evaluate_if_known(graph.nodes[:-1], graph.constants)
    assert made is not None
    assert {v.name: a.tolist() for v, a in made.items()}["more"] == 4


def test_nothing_is_evaluated_where_something_is_not_known() -> None:
    graph, asked = graph_of(), []

    def evaluate(node: Node, arrays: Sequence[Array | None]) -> Sequence[Array]:
        asked.append(node.op)
        return evaluate_node(node, arrays)

    assert evaluate_if_known(graph.nodes[-1:], graph.constants, evaluate) is None
    assert asked == []


def test_a_node_with_a_graph_inside_is_not_known() -> None:
    b = GraphBuilder("outer")
    inner = GraphBuilder("inner", outer=b)
    inner.output(inner.constant(np.float32(1)), "one")
    b.output(
        b.add("If", [b.constant(np.bool_(True))], {"then_branch": inner.build(), "else_branch": inner.build()}), "y"
    )
    graph = b.build()
    assert known_values(graph) == set(graph.constants)
    assert evaluate_if_known(graph.nodes, graph.constants) is None


def test_one_node() -> None:
    graph = graph_of()
    shape = next(n for n in graph.nodes if n.op == "Shape")
    assert [a.tolist() for a in evaluate_known(shape, {})] == [[3, 4]]
