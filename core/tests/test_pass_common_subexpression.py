"""common_subexpression: merging of equal nodes and constants."""

from __future__ import annotations

import numpy as np

from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_core.passes.common_subexpression import CommonSubexpression
from lite_core.passes.dead_node_elimination import DeadNodeElimination
from lite_tools.checking import run_passes_checked


def merge(graph: Graph) -> Graph:
    return run_passes_checked(graph, [CommonSubexpression(), DeadNodeElimination()])[0]


def test_equal_nodes_and_constants_merge() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 100])
    big = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    first = b.add("Softmax", [b.add("Add", [x, b.constant(big, name="a")])])
    second = b.add("Softmax", [b.add("Add", [b.constant(big.copy(), name="b"), x])], {"axis": -1})
    b.output(b.add("Mul", [first, second]), "y")
    graph = merge(b.build())
    assert graph.op_counts() == {"Add": 1, "Mul": 1, "Softmax": 1}
    assert len(graph.constants) == 1


def test_different_nodes_and_constants_do_not_merge() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 4])
    nearly = np.zeros(200, np.float32)
    nearly[101] = 1.0  # between the sampled elements
    big = b.input("big", "float32", [200])
    values = [
        b.add("Softmax", [x], {"axis": 0}),
        b.add("Softmax", [x], {"axis": 1}),
        b.add("Sub", [x, b.constant(np.float32(2), name="two")]),
        b.add("Sub", [b.constant(np.float32(2), name="two again"), x]),
        b.add("Div", [x, b.constant(np.float32(0.0), name="zero")]),
        b.add("Div", [x, b.constant(np.float32(-0.0), name="minus zero")]),
        b.add("Add", [big, b.constant(np.zeros(200, np.float32), name="zeros")]),
        b.add("Add", [big, b.constant(nearly, name="nearly")]),
    ]
    for index, value in enumerate(values):
        b.output(value, f"y{index}")
    graph = merge(b.build())
    assert len(graph.nodes) == len(values)
    assert len(graph.constants) == 5


def test_a_second_output_becomes_an_identity() -> None:
    b = GraphBuilder()
    x = b.input("x", "float64", ["n"])
    b.output(b.add("Exp", [x]), "a")
    b.output(b.add("Exp", [x]), "b")
    graph = merge(b.build())
    assert graph.op_counts() == {"Exp": 1, "Identity": 1}
    assert [v.name for v in graph.outputs] == ["a", "b"]


def test_branch_reuses_only_results_computed_before_it() -> None:
    b = GraphBuilder()
    condition, x = b.input("c", "bool", []), b.input("x", "float32", [2])
    before = b.add("Exp", [x])
    branches = {}
    for name in ("then_branch", "else_branch"):
        inner = GraphBuilder(name, outer=b)
        early, late = inner.add("Exp", [x]), inner.add("Sin", [x])
        inner.output(inner.add("Add" if name == "then_branch" else "Mul", [early, late]))
        branches[name] = inner.build()
    y = b.add("If", [condition], branches)
    b.output(b.add("Sum", [y, before, b.add("Sin", [x])]), "y")
    graph = merge(b.build())
    assert graph.op_counts() == {"Sin": 3, "Add": 1, "Exp": 1, "If": 1, "Mul": 1, "Sum": 1}


def test_nodes_with_different_numbers_of_outputs_do_not_merge() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [1, 1, 4, 4])
    (one,) = b.add_node("MaxPool", [x], {"kernel_shape": (2, 2)})
    two, indices = b.add_node("MaxPool", [x], {"kernel_shape": (2, 2)}, outputs=2)
    b.output(b.add("Add", [one, two]), "y")
    b.output(indices, "indices")
    assert merge(b.build()).op_counts() == {"MaxPool": 2, "Add": 1}
