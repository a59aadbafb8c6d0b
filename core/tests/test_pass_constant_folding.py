"""constant_folding and dead_node_elimination."""

from __future__ import annotations

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError
from lite_core.ir import DType, Graph, Node, TensorType, Value
from lite_core.ops.evaluate import evaluate_graph
from lite_core.passes import run_passes
from lite_core.passes.constant_folding import ConstantFolding
from lite_core.passes.dead_node_elimination import DeadNodeElimination
from lite_tools.checking import run_passes_checked


def fold(graph: Graph, *passes: object) -> Graph:
    return run_passes_checked(graph, [*(passes or (ConstantFolding(),)), DeadNodeElimination()])[0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_arithmetic_on_constants_is_folded(dtype: str) -> None:
    b = GraphBuilder()
    x = b.input("x", dtype, ["n", 2])
    c = b.add("Mul", [b.constant([1.0, 2.0], dtype=dtype), b.constant([3.0, 0.5], dtype=dtype)])
    b.output(b.add("Add", [x, b.add("Neg", [c])]), "y")
    graph = fold(b.build())
    assert graph.op_counts() == {"Add": 1}
    (array,) = graph.constants.values()
    assert DType.of(array.dtype) == dtype
    assert array.astype(np.float64).tolist() == [-3.0, -1.0]


def test_a_folded_value_may_be_a_graph_output() -> None:
    b = GraphBuilder()
    b.output(b.add("Add", [b.constant(np.float32(1)), b.constant(np.float32(2))]), "three")
    graph = fold(b.build())
    assert not graph.nodes
    assert [v.name for v in graph.outputs] == ["three"]
    assert evaluate_graph(graph, [])[0] == 3


def test_a_result_beyond_the_limit_is_not_stored() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [1])
    big = b.add("ConstantOfShape", [b.ints(512, 512)], {"value": np.ones(1, np.float32)})
    wide = b.add("Expand", [b.constant(np.ones(4, np.float32)), b.ints(300, 300, 4)])
    b.output(b.add("Add", [x, big]), "y")
    b.output(b.add("Add", [x, wide]), "z")
    assert fold(b.build()).op_counts() == {"Add": 2, "ConstantOfShape": 1, "Expand": 1}
    assert fold(b.build(), ConstantFolding(size_limit=1 << 21)).op_counts() == {"Add": 2}


def test_growth_of_folded_constants_is_limited() -> None:
    b = GraphBuilder()
    value = b.constant(np.ones(1 << 18, np.float32))
    for _ in range(12):  # to 4 GiB
        value = b.add("Concat", [value, value], {"axis": 0})
    b.output(b.add("Add", [b.input("x", "float32", [1]), value]), "y")
    graph, _ = run_passes(b.build(), [ConstantFolding(), DeadNodeElimination()])
    assert 0 < graph.op_counts()["Concat"] < 12
    assert sum(array.nbytes for array in graph.constants.values()) < 100 << 20


def test_total_size_of_folded_constants_is_limited() -> None:
    b = GraphBuilder()
    x, wide = b.input("x", "float32", [1]), b.constant(np.ones(1 << 20, np.float32))
    for number in range(100):
        b.output(b.add("Mul", [x, b.add("Add", [wide, b.constant(np.float32(number))])]), f"y{number}")
    graph, _ = run_passes(b.build(), [ConstantFolding(), DeadNodeElimination()])
    assert 0 < graph.op_counts()["Add"] < 100


def test_a_folded_expand_owns_its_memory() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [3, 4])
    b.output(b.add("Add", [x, b.add("Expand", [b.constant(np.ones(4, np.float32)), b.ints(3, 4)])]), "y")
    (array,) = fold(b.build()).constants.values()
    assert array.flags.c_contiguous
    assert array.shape == (3, 4)


def test_random_nodes_and_dequantized_weights_stay() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [4])
    weights = b.constant(np.arange(4, dtype=np.int8))
    b.output(b.add("Add", [x, b.add("DequantizeLinear", [weights, b.constant(np.float32(0.5))])]), "y")
    graph = fold(b.build())
    assert graph.op_counts() == {"Add": 1, "DequantizeLinear": 1}

    noise = Value("noise", TensorType(DType.FLOAT32, (4,)))
    random = Graph("r", outputs=[noise], nodes=[Node("RandomNormal", [], [noise], {"shape": (4,)})])
    assert not ConstantFolding()(random).changed


def test_only_shapes_of_known_sizes_become_constants() -> None:
    b = GraphBuilder()
    x, s = b.input("x", "float32", [2, 3]), b.input("s", "float32", ["n", 3])
    b.output(b.add("Shape", [x]), "known")
    b.output(b.add("Size", [x]), "count")
    b.output(b.add("Shape", [s]), "unknown")
    graph = fold(b.build())
    assert graph.op_counts() == {"Shape": 1}
    assert sorted(a.tolist() for a in graph.constants.values() if a.ndim) == [[2, 3]]


def test_node_that_fails_stays_and_raises_at_run_time() -> None:
    b = GraphBuilder()
    table = b.constant(np.ones((1000, 2), np.float32))  # too large for inference to know its elements
    b.output(b.add("Gather", [table, b.constant(np.array([1007]))]), "y")
    graph = b.build()
    assert not ConstantFolding()(graph).changed
    with pytest.raises(GraphError, match="index 1007 "):
        evaluate_graph(graph, [])


def test_constants_captured_by_a_branch_are_folded_there() -> None:
    b = GraphBuilder()
    condition, x = b.input("c", "bool", []), b.input("x", "float32", [2])
    one = b.constant(np.ones(2, np.float32), name="one")
    branches = {}
    for name in ("then_branch", "else_branch"):
        inner = GraphBuilder(name, outer=b)
        doubled = inner.add("Add", [one, one])
        inner.output(inner.add("Mul" if name == "then_branch" else "Sub", [x, doubled]))
        branches[name] = inner.build()
    b.output(b.add("If", [condition], branches), "y")
    graph = fold(b.build())
    assert graph.op_counts() == {"If": 1, "Mul": 1, "Sub": 1}
    assert not graph.constants  # nothing outside the branches needs `one` any more


# **** dead nodes ****


def test_unused_nodes_and_constants_are_removed() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [2])
    b.add("Exp", [b.add("Add", [x, b.constant(np.ones(2, np.float32))])])
    b.output(b.add("Relu", [x]), "y")
    graph = b.build()
    result = DeadNodeElimination()(graph)
    assert result.changed
    assert graph.op_counts() == {"Relu": 1}
    assert not graph.constants
    assert [v.name for v in graph.inputs] == ["x"]
    assert not DeadNodeElimination()(graph).changed


def test_a_capture_keeps_a_node_alive() -> None:
    b = GraphBuilder()
    condition, x = b.input("c", "bool", []), b.input("x", "float32", [2])
    captured, unused = b.add("Exp", [x]), b.add("Log", [x])
    branches = {}
    for name in ("then_branch", "else_branch"):
        inner = GraphBuilder(name, outer=b)
        inner.add("Neg", [unused])  # dead in the branch, so that Log dies too
        inner.output(inner.add("Relu", [captured]))
        branches[name] = inner.build()
    b.output(b.add("If", [condition], branches), "y")
    graph = fold(b.build(), DeadNodeElimination())
    assert graph.op_counts() == {"Relu": 2, "Exp": 1, "If": 1}


def test_unused_trailing_optional_outputs_are_removed() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [1, 1, 4, 4])
    y, _ = b.add_node("MaxPool", [x], {"kernel_shape": (2, 2)}, outputs=2)
    b.output(y, "y")
    first, _ = b.add_node("Split", [x], {"axis": 2, "num_outputs": 2}, outputs=2)
    b.output(first, "first")
    graph = fold(b.build(), DeadNodeElimination())
    assert {n.op: len(n.outputs) for n in graph.nodes} == {"MaxPool": 1, "Split": 2}
