"""shape_folding: shape arithmetic with symbols."""

from __future__ import annotations

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, TensorType
from lite_core.ops.evaluate import evaluate_graph
from lite_core.passes.dead_node_elimination import DeadNodeElimination
from lite_core.passes.shape_folding import ShapeFolding
from lite_tools.checking import run_passes_checked


def fold(graph: Graph) -> Graph:
    return run_passes_checked(graph, [ShapeFolding(), DeadNodeElimination()])[0]


def dimension(b: GraphBuilder, value: object, axis: int) -> object:
    shape = b.add("Shape", [value])  # type: ignore[list-item]
    return b.add("Slice", [shape, b.ints(axis), b.ints(axis + 1)])


def test_known_sizes_become_constants() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 3, 8])
    rest = b.add("Mul", [dimension(b, x, 1), dimension(b, x, 2)])
    b.output(rest, "rest")
    graph = fold(b.build())
    assert not graph.nodes
    assert graph.constants[graph.outputs[0]].tolist() == [24]


def test_reshape_target_copies_and_infers() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", "c", 4, "h"])
    target = b.add(
        "Concat", [dimension(b, x, 0), b.add("Mul", [dimension(b, x, 1), b.ints(4)]), b.ints(-1)], {"axis": 0}
    )
    b.output(b.add("Reshape", [x, target]), "y")
    b2 = GraphBuilder()
    x2 = b2.input("x", "float32", ["n", 6, "t"])
    b2.output(
        b2.add(
            "Reshape", [x2, b2.add("Concat", [dimension(b2, x2, 0), b2.ints(2, 3), dimension(b2, x2, 2)], {"axis": 0})]
        ),
        "y",
    )

    before = b.build()
    assert fold(before).op_counts()["Reshape"] == 1
    assert "Shape" in fold(before).op_counts()  # two dimensions are neither known nor copies

    graph = fold(b2.build())
    assert graph.op_counts() == {"Reshape": 1}
    target2 = graph.constants[graph.nodes[0].inputs[1]]  # type: ignore[index]
    assert target2.tolist() == [0, 2, 3, -1]


def test_a_dimension_of_zero_is_not_taken_for_a_copy() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [0, "n"])
    target = b.add("Concat", [dimension(b, x, 1), b.ints(0)], {"axis": 0})
    b.output(b.add("Reshape", [x, target], {"allowzero": 1}), "y")
    assert "Concat" in fold(b.build()).op_counts()


def test_expand_and_slice_of_everything_are_removed() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 3])
    y = b.add("Expand", [x, b.add("Shape", [x])])
    y = b.add("Slice", [y, b.ints(0), b.ints(2**63 - 1), b.ints(0)])
    y = b.add("Reshape", [y, b.add("Shape", [y])])
    b.output(b.add("Relu", [y]), "y")
    assert fold(b.build()).op_counts() == {"Relu": 1}


def test_a_reversing_slice_stays() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [4])
    b.output(b.add("Slice", [x, b.ints(-1), b.ints(-(2**31)), b.ints(0), b.ints(-1)]), "y")
    assert fold(b.build()).op_counts() == {"Slice": 1}


def test_types_are_refined_inside_and_kept_at_the_outputs() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [2, 3])
    y = b.add("Relu", [x])
    b.output(b.add("Neg", [y]), "z")
    graph = b.build()
    declared = TensorType(y.dtype, None)
    y.type = graph.outputs[0].type = declared
    assert not ShapeFolding()(graph).changed
    assert y.type.shape == (2, 3)
    assert graph.outputs[0].type == declared


def test_a_branch_uses_the_shapes_of_what_it_captures() -> None:
    b = GraphBuilder()
    condition, x = b.input("c", "bool", []), b.input("x", "float32", ["n", 3])
    branches = {}
    for name in ("then_branch", "else_branch"):
        inner = GraphBuilder(name, outer=b)
        size = inner.add("Cast", [dimension(inner, x, 1)], {"to": x.dtype})  # type: ignore[list-item]
        inner.output(inner.add("Mul" if name == "then_branch" else "Add", [x, size]))
        branches[name] = inner.build()
    b.output(b.add("If", [condition], branches), "y")
    assert fold(b.build()).op_counts() == {"If": 1, "Add": 1, "Mul": 1}


def test_a_branch_that_is_never_taken_need_not_fit() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 3])
    branches = {}
    for name, size in (("then_branch", 3), ("else_branch", 5)):
        inner = GraphBuilder(name, outer=b)
        captured = x if size == 3 else inner.input("unfit", "float32", ["n", 5])
        inner.output(inner.add("Add", [captured, inner.constant(np.ones(size, np.float32))]))
        inner.graph.inputs.clear()
        for node in inner.graph.nodes:
            node.inputs = (x, node.inputs[1])
        branches[name] = inner.build()
    b.output(b.add("If", [b.constant(np.array(True))], branches), "y")
    assert not ShapeFolding()(b.build()).changed


def test_a_loop_that_grows_its_value_has_unknown_sizes() -> None:
    b = GraphBuilder()
    trips, x = b.input("trips", "int64", []), b.input("x", "float32", [2, 3])
    body = GraphBuilder("body", outer=b)
    body.input("i", "int64", [])
    go_on = body.input("go_on", "bool", [])
    state = body.input("state", "float32", [2, 3])  # the shape of the first iteration
    flat = body.add("Concat", [state, state], {"axis": 0})
    body.output(body.add("Identity", [go_on]))
    body.output(flat)
    total = b.add("Loop", [trips, None, x], {"body": body.build()})
    b.output(b.add("Shape", [total]), "shape")
    graph = fold(b.build())
    assert graph.op_counts()["Shape"] == 1
    loop = next(n for n in graph.nodes if n.op == "Loop")
    (inner,) = loop.subgraphs
    assert not isinstance(inner.inputs[2].shape[0], int)


@pytest.mark.parametrize("shape", [(2, 3, 4), (0, 3, 4), (2, 0, 4), (0, 0, 4)])
def test_folded_target_is_valid_for_empty_tensors(shape: tuple[int, ...]) -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", "m", 4])
    target = b.add("Concat", [dimension(b, x, 0), b.add("Mul", [dimension(b, x, 1), b.ints(4)])], {"axis": 0})
    b.output(b.add("Reshape", [x, target]), "y")
    graph = b.build()
    folded = fold(graph)
    assert folded.op_counts() == {"Reshape": 1}
    expected = (shape[0], shape[1] * 4)
    assert [evaluate_graph(g, [np.ones(shape, np.float32)])[0].shape for g in (graph, folded)] == [expected] * 2
