"""identity_elimination: removal of nodes that return their input unchanged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Value
from lite_core.passes.dead_node_elimination import DeadNodeElimination
from lite_core.passes.identity_elimination import IdentityElimination
from lite_tools.checking import run_passes_checked


def eliminate(graph: Graph) -> Graph:
    return run_passes_checked(graph, [IdentityElimination(), DeadNodeElimination()])[0]


Build = Callable[[GraphBuilder, Value], Value]

NO_OPS: dict[str, Build] = {
    "identity": lambda b, x: b.add("Identity", [x]),
    "dropout": lambda b, x: b.add("Dropout", [x]),
    "dropout not training": lambda b, x: b.add("Dropout", [x, None, b.constant(np.array(False))]),
    "reshape": lambda b, x: b.add("Reshape", [x, b.ints(0, 1, -1)]),
    "squeeze nothing": lambda b, x: b.add("Squeeze", [x, b.ints()]),
    "expand": lambda b, x: b.add("Expand", [x, b.ints(1, 1)]),
    "transpose": lambda b, x: b.add("Transpose", [x], {"perm": (0, 1, 2)}),
    "cast": lambda b, x: b.add("Cast", [x], {"to": x.dtype}),
    "pad": lambda b, x: b.add("Pad", [x, b.ints(0, 0, 0, 0, 0, 0)]),
    "slice": lambda b, x: b.add("Slice", [x, b.ints(0), b.ints(4), b.ints(-1)]),
    "tile": lambda b, x: b.add("Tile", [x, b.ints(1, 1, 1)]),
    "concat": lambda b, x: b.add("Concat", [x], {"axis": 0}),
    "max": lambda b, x: b.add("Max", [x]),
    "x + 0": lambda b, x: b.add("Add", [x, b.constant(0, dtype=x.dtype)]),
    "0 + x": lambda b, x: b.add("Add", [b.constant(np.zeros((1, 4)), dtype=x.dtype), x]),
    "x - 0": lambda b, x: b.add("Sub", [x, b.constant([0], dtype=x.dtype)]),
    "1 * x": lambda b, x: b.add("Mul", [b.constant(1, dtype=x.dtype), x]),
    "x / 1": lambda b, x: b.add("Div", [x, b.constant(1, dtype=x.dtype)]),
    "x ** 1": lambda b, x: b.add("Pow", [x, b.constant(1, dtype="int64")]),
}

NEAR_MISSES: dict[str, Build] = {
    "dropout, training unknown": lambda b, x: b.add("Dropout", [x, None, b.input("t", "bool", [])]),
    "reshape": lambda b, x: b.add("Reshape", [x, b.ints(1, -1, 4)]),
    "transpose": lambda b, x: b.add("Transpose", [x], {"perm": (2, 1, 0)}),
    "cast": lambda b, x: b.add("Cast", [x], {"to": DType.INT64}),
    "pad": lambda b, x: b.add("Pad", [x, b.ints(0, 0, 0, 1, 0, -1)]),
    "reverse": lambda b, x: b.add("Slice", [x, b.ints(-1), b.ints(-9), b.ints(2), b.ints(-1)]),
    "tile": lambda b, x: b.add("Tile", [x, b.ints(1, 2, 1)]),
    "x + 1": lambda b, x: b.add("Add", [x, b.constant(1, dtype=x.dtype)]),
    "0 - x": lambda b, x: b.add("Sub", [b.constant(0, dtype=x.dtype), x]),
    "1 / x": lambda b, x: b.add("Div", [b.constant(1, dtype=x.dtype), x]),
    "broadcasts": lambda b, x: b.add("Add", [x, b.constant(np.zeros((3, 1)), dtype=x.dtype)]),
    "adds a dimension": lambda b, x: b.add("Mul", [x, b.constant(np.ones((1, 1, 1, 1)), dtype=x.dtype)]),
}


def graph_of(build: Build, dtype: str = "float32") -> Graph:
    b = GraphBuilder()
    x = b.input("x", dtype, ["n", 1, 4])
    b.output(b.add("Neg", [build(b, b.add("Abs", [x]))]), "y")
    return b.build()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("case", NO_OPS)
def test_nodes_without_effect_are_removed(case: str, dtype: str) -> None:
    assert eliminate(graph_of(NO_OPS[case], dtype)).op_counts() == {"Abs": 1, "Neg": 1}


@pytest.mark.parametrize("case", NEAR_MISSES)
def test_similar_nodes_are_kept(case: str) -> None:
    graph = graph_of(NEAR_MISSES[case])
    assert eliminate(graph).op_counts() == graph.op_counts()


def test_transpose_that_moves_only_axes_of_size_one_is_removed() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [1, 1, "n"])
    b.output(b.add("Neg", [b.add("Transpose", [x], {"perm": (1, 0, 2)})]), "y")
    assert eliminate(b.build()).op_counts() == {"Neg": 1}


def test_transpose_of_equal_sizes_is_kept() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", "n"])
    b.output(b.add("Neg", [b.add("Transpose", [x])]), "y")
    assert eliminate(b.build()).op_counts() == {"Neg": 1, "Transpose": 1}


def test_a_dropout_whose_mask_is_used_stays() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [4])
    y, mask = b.add_node("Dropout", [b.add("Abs", [x])], outputs=2)
    b.output(b.add("Neg", [y]), "y")
    b.output(mask, "mask")
    assert eliminate(b.build()).op_counts()["Dropout"] == 1


def test_the_name_of_an_output_moves_to_its_producer() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [4])
    y = b.add("Abs", [x])
    b.output(b.add("Identity", [y], output="result"))
    b.output(b.add("Neg", [y]), "negative")
    graph = eliminate(b.build())
    assert [v.name for v in graph.outputs] == ["result", "negative"]
    assert graph.op_counts() == {"Abs": 1, "Neg": 1}


def test_identity_between_outputs_or_of_an_input_is_kept() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [4])
    y = b.add("Abs", [x])
    b.output(y, "y")
    b.output(b.add("Identity", [x]), "copy of x")
    b.output(b.add("Identity", [y]), "copy of y")
    graph = eliminate(b.build())
    assert graph.op_counts() == {"Identity": 2, "Abs": 1}
    assert [v.name for v in graph.outputs] == ["y", "copy of x", "copy of y"]


def test_identities_captured_by_and_inside_sub_graphs_are_removed() -> None:
    b = GraphBuilder()
    condition, x = b.input("c", "bool", []), b.input("x", "float32", [2])
    captured = b.add("Identity", [b.add("Abs", [x])])
    branches = {}
    for name, op in (("then_branch", "Exp"), ("else_branch", "Neg")):
        inner = GraphBuilder(name, outer=b)
        inner.output(inner.add(op, [inner.add("Identity", [captured])]))
        branches[name] = inner.build()
    b.output(b.add("If", [condition], branches), "y")
    assert eliminate(b.build()).op_counts() == {"Abs": 1, "Exp": 1, "If": 1, "Neg": 1}
