"""MatMul and Gemm: shapes, layouts, broadcasting, which kernel runs and what is fused behind it."""

from __future__ import annotations

import numpy as np
import pytest
from opencl_agreement import KINDS, agree, normal, steps_of
from opencl_device import run

from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_opencl.lowering.product_choice import ProductShape, panel_tile

Shape = tuple[int, ...]

CONSTANT = pytest.mark.parametrize("constant", [True, False], ids=["constant", "run-time"])
TOLERANCE = 4e-6

# Tiles are at most 6 rows and 64 columns, those of GPUs 64 by 64: below, at and above; vectors; stacks.
SHAPES: list[tuple[Shape, Shape]] = [
    ((1, 64), (64, 100)),
    ((2, 33), (33, 32)),
    ((37, 33), (33, 65)),
    ((70, 7), (7, 130)),
    ((50, 37), (37, 1)),
    ((5,), (5, 7)),
    ((3, 70), (70,)),
    ((5,), (5,)),
    ((5,), (2, 3, 5, 4)),
    ((2, 3, 5, 4), (4,)),
    ((2, 9, 5), (5, 7)),
    ((4, 2, 9, 5), (2, 5, 33)),
    ((2, 1, 8, 20), (1, 3, 20, 40)),
    ((2, 0), (0, 3)),
    ((0, 5), (5, 3)),
]


@KINDS
@CONSTANT
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_matmul(kind: str, constant: bool, left: Shape, right: Shape) -> None:
    agree(kind, "MatMul", [normal(*left), normal(*right, seed=1)], constants=int(constant), tolerance=TOLERANCE)


@KINDS
@pytest.mark.parametrize("transposed", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("rows", [2, 19])
def test_gemm(kind: str, transposed: tuple[int, int], rows: int) -> None:
    a = normal(20, rows) if transposed[0] else normal(rows, 20)
    b = normal(33, 20, seed=1) if transposed[1] else normal(20, 33, seed=1)
    attributes = {"alpha": 0.5, "beta": 2.0, "transA": transposed[0], "transB": transposed[1]}
    for constants in (0, 2):
        agree(kind, "Gemm", [a, b, normal(rows, 1)], attributes, constants=constants, tolerance=TOLERANCE)


def attention(heads: int, length: int, size: int) -> tuple[Graph, list[np.ndarray]]:
    """MatMul, Softmax and MatMul on heads that lie side by side, [batch, length, heads, size]."""
    builder = GraphBuilder("attention")
    shape = (2, length, heads, size)
    q, k, v = (builder.input(name, "float32", shape) for name in "qkv")
    q, v = (builder.add("Transpose", [x], {"perm": (0, 2, 1, 3)}) for x in (q, v))
    scores = builder.add("MatMul", [q, builder.add("Transpose", [k], {"perm": (0, 2, 3, 1)})])
    scores = builder.add("Mul", [scores, builder.constant(np.float32(size**-0.5))])
    weights = builder.add("Softmax", [scores], {"axis": -1})
    builder.output(builder.add("MatMul", [weights, v]), "y")
    return builder.build(), [normal(*shape, seed=n) for n in range(3)]


def test_attention_reads_its_heads_where_they_lie() -> None:
    graph, inputs = attention(3, 21, 16)
    np.testing.assert_allclose(run(graph, inputs)[0], evaluate_graph(graph, inputs)[0], rtol=0, atol=1e-5)


def test_what_follows_a_product_is_part_of_its_step() -> None:
    builder = GraphBuilder("layer")
    x = builder.input("x", "float32", (3, 9, 20))
    y = builder.add("MatMul", [x, builder.constant(normal(20, 40))])
    y = builder.add("Relu", [builder.add("Add", [y, builder.constant(normal(40))])])
    builder.output(builder.add("Mul", [y, builder.input("m", "float32", (3, 9, 40))]), "y")
    graph, inputs = builder.build(), [normal(3, 9, 20), normal(3, 9, 40)]
    assert steps_of("CPU", graph) == ["matmul_panels"]
    np.testing.assert_allclose(run(graph, inputs)[0], evaluate_graph(graph, inputs)[0], rtol=0, atol=1e-4)


@pytest.mark.parametrize("rows", range(1, 20))
@pytest.mark.parametrize("columns", [1, 3, 8, 23, 1000])
def test_a_tile_fits_into_the_matrix(rows: int, columns: int) -> None:
    shape = ProductShape(rows, columns, 5, 5, 1, columns, 1)
    for dtype in (DType.FLOAT16, DType.FLOAT32, DType.FLOAT64, DType.INT64):
        tile_rows, vectors, width = panel_tile(shape, dtype)
        assert 1 <= tile_rows <= rows
        assert 1 <= vectors * width <= columns
        # A processor with 16 vector registers holds the sums.
        assert tile_rows * vectors <= 12
