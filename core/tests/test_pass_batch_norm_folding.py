"""batch_norm_folding: per-channel scales and offsets are folded into weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Origin, Value
from lite_core.passes.batch_norm_folding import BatchNormFolding
from lite_core.passes.dead_node_elimination import DeadNodeElimination
from lite_tools.checking import run_passes_checked

random = np.random.default_rng(7)


def fold(graph: Graph) -> Graph:
    return run_passes_checked(graph, [BatchNormFolding(), DeadNodeElimination()])[0]


def weights(b: GraphBuilder, *shape: int, dtype: str = "float32", name: str = "") -> Value:
    return b.constant(random.standard_normal(shape), dtype=dtype, name=name)


def batch_norm(b: GraphBuilder, x: Value, channels: int, dtype: str = "float32") -> Value:
    statistics = [weights(b, channels, dtype=dtype) for _ in range(3)]
    variance = b.constant(random.uniform(0.5, 2, channels), dtype=dtype)
    return b.add("BatchNormalization", [x, *statistics, variance], {"epsilon": 1e-3})


Layer = Callable[[GraphBuilder, str], Value]


def conv(b: GraphBuilder, dtype: str) -> Value:
    x = b.input("x", dtype, ["n", 4, "h", "w"])
    return b.add("Conv", [x, weights(b, 6, 2, 3, 3, dtype=dtype)], {"group": 2})


def conv_with_bias(b: GraphBuilder, dtype: str) -> Value:
    x = b.input("x", dtype, ["n", 4, "t"])
    return b.add("Conv", [x, weights(b, 6, 4, 3, dtype=dtype), weights(b, 6, dtype=dtype)])


def conv_transpose(b: GraphBuilder, dtype: str) -> Value:
    x = b.input("x", dtype, ["n", 4, 5, 5])
    inputs = [x, weights(b, 4, 3, 2, 2, dtype=dtype), weights(b, 6, dtype=dtype)]
    return b.add("ConvTranspose", inputs, {"group": 2, "strides": (2, 2)})


def gemm(b: GraphBuilder, dtype: str) -> Value:
    x = b.input("x", dtype, ["n", 4])
    inputs = [x, weights(b, 6, 4, dtype=dtype), weights(b, 1, dtype=dtype)]
    return b.add("Gemm", inputs, {"transB": 1, "alpha": 0.5, "beta": 3.0})


def matmul(b: GraphBuilder, dtype: str) -> Value:
    return b.add("MatMul", [b.input("x", dtype, ["n", 4]), weights(b, 4, 6, dtype=dtype)])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("layer", [conv, conv_with_bias, conv_transpose, gemm, matmul])
def test_batch_normalization_folds(layer: Layer, dtype: str) -> None:
    b = GraphBuilder()
    b.output(batch_norm(b, layer(b, dtype), 6, dtype), "y")
    (node,) = fold(b.build()).nodes
    assert node.op == {"conv": "Conv", "conv_with_bias": "Conv", "conv_transpose": "ConvTranspose"}.get(
        layer.__name__, "Gemm"
    )
    assert len(node.inputs) == 3
    assert [v.name for v in node.outputs if v] == ["y"]


@pytest.mark.parametrize("layer", [conv, conv_with_bias, conv_transpose])
def test_a_chain_of_channel_constants_folds(layer: Layer) -> None:
    b = GraphBuilder()
    y = b.add("Add", [layer(b, "float32"), weights(b, 1, 6, *([1] * (1 if layer is conv_with_bias else 2)))])
    y = b.add("Mul", [b.constant(np.float32(0.25)), y])
    y = b.add("Div", [y, weights(b, 6, *([1] * (1 if layer is conv_with_bias else 2)))])
    y = b.add("Sub", [y, b.constant(np.float32(1.5))])
    b.output(y, "y")
    assert len(fold(b.build()).nodes) == 1


def test_product_of_matrices_gets_a_bias_and_other_products_do_not() -> None:
    b = GraphBuilder()
    x, z = b.input("x", "float32", ["n", 4]), b.input("z", "float32", ["n", "t", 4])
    b.output(b.add("Add", [b.add("MatMul", [x, weights(b, 4, 6)]), weights(b, 6)]), "y")
    scaled = b.add("Mul", [b.add("MatMul", [z, weights(b, 4, 6)]), weights(b, 6)])
    b.output(b.add("Add", [scaled, weights(b, 6)]), "w")
    assert fold(b.build()).op_counts() == {"Gemm": 1, "MatMul": 1, "Add": 1}


def test_constants_that_are_not_per_channel_stay() -> None:
    for constant in (weights_of(6), weights_of(1, 1, 1, 5), weights_of(2, 6, 1, 1), weights_of(1, 1, 6, 1, 1)):
        b = GraphBuilder()
        x = b.input("x", "float32", [2, 4, 5, 8])
        y = b.add("Conv", [x, weights(b, 6, 4, 1, 4)])
        if constant.shape == (6,):
            y = b.add("Conv", [b.input("q", "float32", [2, 4, 5, 6]), weights(b, 6, 4, 1, 1)])
        b.output(b.add("Mul", [y, b.constant(constant)]), "y")
        assert fold(b.build()).op_counts() == {"Conv": 1, "Mul": 1}


def weights_of(*shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


def test_constant_that_broadcasts_one_channel_stays() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 4, 3, 3])
    b.output(b.add("Add", [b.add("Conv", [x, weights(b, 1, 4, 1, 1)]), weights(b, 5, 1, 1)]), "y")
    assert fold(b.build()).op_counts() == {"Conv": 1, "Add": 1}


def test_reversed_subtraction_and_division_stay() -> None:
    for op in ("Sub", "Div"):
        b = GraphBuilder()
        b.output(b.add(op, [weights(b, 6, 1, 1), conv(b, "float32")]), "y")
        assert fold(b.build()).op_counts() == {"Conv": 1, op: 1}


def test_a_second_user_or_an_output_in_the_middle_prevents_folding() -> None:
    for as_output in (False, True):
        b = GraphBuilder()
        y = conv(b, "float32")
        b.output(batch_norm(b, y, 6), "y")
        b.output(y if as_output else b.add("Relu", [y]), "second")
        counts = fold(b.build()).op_counts()
        assert counts == {"Conv": 1, "Mul": 1, "Add": 1, **({} if as_output else {"Relu": 1})}


def test_separate_batch_normalization_becomes_mul_and_add() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 3, "h", "w"])
    b.origin = Origin("batch_norm", "bn0")
    b.output(batch_norm(b, x, 3), "y")
    graph = fold(b.build())
    assert [n.op for n in graph.nodes] == ["Mul", "Add"]
    assert {n.origin for n in graph.nodes} == {Origin("batch_norm", "bn0")}
    assert all(array.shape == (3, 1, 1) for array in graph.constants.values())


def test_weights_that_are_not_constant_stay() -> None:
    b = GraphBuilder()
    x, w = b.input("x", "float32", [1, 2, 4, 4]), b.input("w", "float32", [3, 2, 1, 1])
    b.output(b.add("Mul", [b.add("Conv", [x, w]), weights(b, 3, 1, 1)]), "y")
    assert fold(b.build()).op_counts() == {"Conv": 1, "Mul": 1}


def test_folding_that_overflows_half_precision_stays() -> None:
    b = GraphBuilder()
    x = b.input("x", "float16", [1, 1, 4, 4])
    w = b.constant(np.full((1, 1, 1, 1), 3e4), dtype="float16")
    small = b.add("Mul", [x, b.constant(1e-3, dtype="float16")])
    b.output(b.add("Mul", [b.add("Conv", [small, w]), b.constant(10, dtype="float16")]), "y")
    assert fold(b.build()).op_counts() == {"Mul": 2, "Conv": 1}


def test_shared_weights_keep_their_other_user() -> None:
    b = GraphBuilder()
    x, w = b.input("x", "float32", [1, 2, 4, 4]), weights(b, 3, 2, 1, 1, name="w")
    b.output(batch_norm(b, b.add("Conv", [x, w]), 3), "y")
    b.output(b.add("Conv", [x, w]), "z")
    assert fold(b.build()).op_counts() == {"Conv": 2}


def test_integers_are_not_folded() -> None:
    b = GraphBuilder()
    x = b.input("x", "int32", [2, 3])
    product = b.add("MatMul", [x, b.constant(np.ones((3, 4), np.int32))])
    b.output(b.add("Add", [product, b.constant(np.ones(4, np.int32))]), "y")
    assert fold(b.build()).op_counts() == {"MatMul": 1, "Add": 1}


def test_a_captured_result_is_a_second_user_and_branches_fold_too() -> None:
    b = GraphBuilder()
    condition = b.input("c", "bool", [])
    y = conv(b, "float32")
    scaled = b.add("Mul", [y, weights(b, 6, 1, 1)])
    branches = {}
    for name in ("then_branch", "else_branch"):
        inner = GraphBuilder(name, outer=b)
        head = inner.add("Conv", [y, weights(inner, 5, 6, 1, 1)])
        inner.output(batch_norm(inner, head, 5))
        branches[name] = inner.build()
    b.output(b.add("If", [condition], branches), "z")
    b.output(scaled, "scaled")
    assert fold(b.build()).op_counts() == {"Conv": 3, "If": 1, "Mul": 1}
