"""transpose_reshape_cleaning: chains of layout changes."""

from __future__ import annotations

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Value
from lite_core.passes.dead_node_elimination import DeadNodeElimination
from lite_core.passes.transpose_reshape_cleaning import TransposeReshapeCleaning
from lite_tools.checking import run_passes_checked


def clean(graph: Graph) -> Graph:
    return run_passes_checked(graph, [TransposeReshapeCleaning(), DeadNodeElimination()])[0]


def transpose(b: GraphBuilder, x: Value, *order: int) -> Value:
    return b.add("Transpose", [x], {"perm": order})


def start(dtype: str = "float32", rank: int = 3) -> tuple[GraphBuilder, Value]:
    b = GraphBuilder()
    return b, b.add("Abs", [b.input("x", dtype, ["n", 3, 4, "h"][:rank])])


def test_transposes_compose_or_cancel() -> None:
    b, x = start()
    b.output(b.add("Neg", [transpose(b, transpose(b, x, 1, 2, 0), 1, 0, 2)]), "composed")
    b.output(b.add("Exp", [transpose(b, transpose(b, x, 1, 2, 0), 2, 0, 1)]), "cancelled")
    graph = clean(b.build())
    assert graph.op_counts() == {"Abs": 1, "Exp": 1, "Neg": 1, "Transpose": 1}
    assert next(n for n in graph.nodes if n.op == "Transpose").attributes["perm"] == (2, 1, 0)


def test_default_order_reverses() -> None:
    b, x = start()
    b.output(b.add("Neg", [b.add("Transpose", [b.add("Transpose", [x])])]), "y")
    assert clean(b.build()).op_counts() == {"Abs": 1, "Neg": 1}


def test_a_cancelled_pair_that_writes_an_output_keeps_its_name() -> None:
    b, x = start()
    b.output(transpose(b, transpose(b, x, 0, 2, 1), 0, 2, 1), "y")
    graph = clean(b.build())
    assert graph.op_counts() == {"Abs": 1}
    assert graph.outputs[0].name == "y"


def test_an_intermediate_output_stays() -> None:
    b, x = start()
    middle = transpose(b, x, 0, 2, 1)
    b.output(middle, "middle")
    b.output(b.add("Neg", [transpose(b, middle, 0, 2, 1)]), "y")
    assert clean(b.build()).op_counts() == {"Abs": 1, "Transpose": 1, "Neg": 1}


# **** reshapes ****


def test_a_reshape_of_a_reshape_reads_the_first_input() -> None:
    b, x = start()
    flat = b.add("Reshape", [x, b.ints(0, -1)])
    b.output(b.add("Reshape", [flat, b.ints(0, 2, 6)]), "y")  # 0 copies n in both
    graph = clean(b.build())
    assert graph.op_counts() == {"Abs": 1, "Reshape": 1}


def test_a_zero_that_copies_a_new_dimension_becomes_its_size() -> None:
    b, x = start()
    flat = b.add("Reshape", [x, b.ints(6, 2, -1)])
    b.output(b.add("Reshape", [flat, b.ints(0, -1, 1)]), "y")
    graph = clean(b.build())
    (reshape,) = (n for n in graph.nodes if n.op == "Reshape")
    assert graph.constants[reshape.inputs[1]].tolist() == [6, -1, 1]  # type: ignore[index]


def test_zero_that_copies_an_unknown_new_dimension_prevents_merging() -> None:
    b, x = start()
    flat = b.add("Reshape", [x, b.ints(-1, 2, 2)])
    b.output(b.add("Reshape", [flat, b.ints(0, 4)]), "y")
    assert clean(b.build()).op_counts() == {"Reshape": 2, "Abs": 1}


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_squeeze_and_unsqueeze_cancel(dtype: str) -> None:
    b, x = start(dtype)
    wide = b.add("Unsqueeze", [x, b.ints(0, -1)])
    b.output(b.add("Neg", [b.add("Squeeze", [wide, b.ints(-1, 0)])]), "y")
    narrow = b.add("Squeeze", [b.input("z", dtype, ["n", 1, 4]), b.ints(1)])
    b.output(b.add("Exp", [b.add("Unsqueeze", [narrow, b.ints(1)])]), "w")
    assert clean(b.build()).op_counts() == {"Abs": 1, "Exp": 1, "Neg": 1}


def test_unsqueeze_of_another_axis_merges_with_squeeze() -> None:
    b = GraphBuilder()
    narrow = b.add("Squeeze", [b.input("z", "float32", ["n", 1, 4]), b.ints(1)])
    b.output(b.add("Unsqueeze", [narrow, b.ints(2)]), "w")
    assert clean(b.build()).op_counts() == {"Reshape": 1}


def test_a_flatten_with_two_unknown_sizes_stays() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 2, "h"])
    b.output(b.add("Flatten", [b.add("Unsqueeze", [x, b.ints(1)])]), "y")
    assert clean(b.build()).op_counts() == {"Flatten": 1, "Unsqueeze": 1}


# **** transposes below element-wise nodes ****


def test_transposes_around_elementwise_nodes_cancel() -> None:
    b, x = start(rank=4)
    y = transpose(b, x, 0, 2, 3, 1)
    y = b.add("Add", [y, b.constant(np.arange(3, dtype=np.float32))])
    y = b.add("Clip", [y, b.constant(np.float32(0)), b.constant(np.float32(6))])
    y = b.add("Mul", [y, b.add("Sigmoid", [y])])
    b.output(transpose(b, b.add("Mul", [b.constant(np.float32(2)), y]), 0, 3, 1, 2), "y")
    graph = clean(b.build())
    assert graph.op_counts() == {"Mul": 2, "Abs": 1, "Add": 1, "Clip": 1, "Sigmoid": 1}
    assert str(next(n for n in graph.nodes if n.op == "Sigmoid").outputs[0].type) == "float32[n, 3, 4, h]"  # type: ignore[union-attr]


def test_two_transposed_operands_cancel() -> None:
    b, x = start()
    z = b.input("z", "float32", ["n", 3, 4])
    total = b.add("Add", [transpose(b, x, 0, 2, 1), transpose(b, z, 0, 2, 1)])
    b.output(transpose(b, total, 0, 2, 1), "y")
    assert clean(b.build()).op_counts() == {"Abs": 1, "Add": 1}


def test_other_order_untransposed_operand_or_second_user_prevents_cancelling() -> None:
    b, x = start()
    b.output(transpose(b, b.add("Exp", [transpose(b, x, 1, 2, 0)]), 1, 2, 0), "other order")
    z = b.input("z", "float32", ["n", 4, 3])
    b.output(transpose(b, b.add("Sub", [transpose(b, x, 0, 2, 1), z]), 0, 2, 1), "operand")
    shared = b.add("Neg", [transpose(b, x, 0, 2, 1)])
    b.output(transpose(b, shared, 0, 2, 1), "shared")
    b.output(b.add("Sin", [shared]), "user")
    before = b.build()
    assert clean(before).op_counts() == before.op_counts()


def test_a_capture_is_a_second_user() -> None:
    b, x = start()
    condition = b.input("c", "bool", [])
    middle = b.add("Exp", [transpose(b, x, 0, 2, 1)])
    branches = {}
    for name in ("then_branch", "else_branch"):
        inner = GraphBuilder(name, outer=b)
        inner.output(transpose(inner, transpose(inner, middle, 2, 0, 1), 0, 1, 2))
        branches[name] = inner.build()
    b.output(b.add("If", [condition], branches), "z")
    b.output(transpose(b, middle, 0, 2, 1), "y")
    assert clean(b.build()).op_counts() == {"Transpose": 4, "Abs": 1, "Exp": 1, "If": 1}
