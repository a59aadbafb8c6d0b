"""MatMul, Gemm and Einsum: shapes, layouts, broadcasting and epilogues."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import MACHINES, agree, normal
from graph_agreement import SeededGraph, agree_graph
from levels import run_on

from lite_core.builder import GraphBuilder
from lite_core.ir import Value
from lite_cpu.lowering.registry import find_lowering
from lite_cpu.machine import Machine

Shape = tuple[int, ...]

CONSTANT = pytest.mark.parametrize("constant", [True, False], ids=["constant", "run-time"])
TOLERANCE = 4e-6

# Tiles have at most 8 rows and 32 columns: sizes below, at and above both; vectors; batches that broadcast.
TILES: list[tuple[Shape, Shape]] = [
    ((1, 64), (64, 100)),
    ((2, 33), (33, 32)),
    ((37, 33), (33, 65)),
    ((50, 7), (7, 1)),
    ((4, 2, 3, 5), (2, 5, 33)),
    ((2, 1, 8, 20), (1, 3, 20, 40)),
]
SHAPES: list[tuple[Shape, Shape]] = [
    *TILES,
    ((5,), (5, 7)),
    ((3, 5), (5,)),
    ((5,), (5,)),
    ((5,), (2, 3, 5, 4)),
    ((2, 3, 5, 4), (4,)),
    ((2, 9, 5), (5, 7)),
    ((2, 9, 5), (2, 5, 7)),
    ((2, 3, 4, 5, 6), (2, 1, 4, 6, 17)),
]


@MACHINES
@CONSTANT
@pytest.mark.parametrize(("left", "right"), TILES)
def test_matmul(machine: Machine, constant: bool, left: Shape, right: Shape) -> None:
    arrays = [normal(*left), normal(*right, seed=1)]
    agree(machine, "MatMul", arrays, constants=int(constant), tolerance=TOLERANCE, threads=2)


@MACHINES
@CONSTANT
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_epilogue_is_part_of_the_step(machine: Machine, constant: bool, left: Shape, right: Shape) -> None:
    def build(g: SeededGraph) -> tuple[Value, ...]:
        product = g.add("MatMul", g.input(*left), g.tensor(constant, *right))
        shape = tuple(product.shape)
        biased = g.add("Add", product, g.constant(*shape[-1:]))
        return (g.add("Mul", g.add("Relu", biased), g.input(*shape)),)

    agree_graph(machine, build)


@MACHINES
@CONSTANT
@pytest.mark.parametrize(
    ("left", "left_order", "right", "right_order"),
    [
        ((20, 9), (1, 0), (17, 20), (1, 0)),
        ((2, 9, 3, 20), (0, 2, 1, 3), (2, 17, 3, 20), (0, 2, 3, 1)),
        ((2, 20, 9), (0, 2, 1), (2, 17, 20), (0, 2, 1)),
        ((2, 3, 4, 5), (0, 1, 2, 3), (4, 2, 5, 3), (1, 3, 2, 0)),
        ((3, 70, 5), (0, 2, 1), (70, 3), (0, 1)),
    ],
)
def test_transposed_operands(
    machine: Machine, constant: bool, left: Shape, left_order: Shape, right: Shape, right_order: Shape
) -> None:
    def build(g: SeededGraph) -> tuple[Value, ...]:
        a = g.add("Transpose", g.input(*left), perm=left_order)
        b = g.add("Transpose", g.tensor(constant, *right), perm=right_order)
        return (g.add("MatMul", a, b),)

    agree_graph(machine, build)


@MACHINES
@pytest.mark.parametrize("rows", [1, 2, 5, 9])
@pytest.mark.parametrize("depth", [7, 64, 1001])
def test_equal_columns_give_equal_sums(machine: Machine, rows: int, depth: int) -> None:
    """A column is summed in the same order in every tile; 101 is not a multiple of the width of any tile."""
    b = GraphBuilder("columns")
    x = b.input("x", "float32", (rows, depth))
    weights = np.repeat(normal(depth, 1, seed=1), 101, axis=1)
    b.output(b.add("MatMul", [x, b.constant(weights)]), "y")
    sums = run_on(machine, b.build(), {"x": normal(rows, depth)})["y"]
    np.testing.assert_array_equal(sums, np.broadcast_to(sums[:, :1], sums.shape))


@MACHINES
@pytest.mark.parametrize("dtype", ["int32", "uint32", "uint64", "float64"])
def test_other_types(machine: Machine, dtype: str) -> None:
    arrays = [np.abs(normal(*shape) * 9).astype(dtype) for shape in ((2, 3, 5), (2, 5, 7))]
    agree(machine, "MatMul", arrays, tolerance=1e-15)


@MACHINES
def test_other_types_with_following_operators(machine: Machine) -> None:
    b = GraphBuilder("integers")
    x = b.input("x", "int64", (2, 3))
    y = b.add("Add", [b.add("MatMul", [x, b.constant(np.arange(12).reshape(3, 4))]), b.constant(np.arange(4))])
    b.output(y, "y")
    values = np.arange(6).reshape(2, 3)
    actual = run_on(machine, b.build(), {"x": values})["y"]
    np.testing.assert_array_equal(actual, values @ np.arange(12).reshape(3, 4) + np.arange(4))


@MACHINES
@CONSTANT
@pytest.mark.parametrize("transposed", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_transposed_operands_of_gemm(machine: Machine, constant: bool, transposed: tuple[int, int]) -> None:
    arrays = [normal(20, 9) if transposed[0] else normal(9, 20)]
    arrays.append(normal(33, 20, seed=1) if transposed[1] else normal(20, 33, seed=1))
    attributes = {"transA": transposed[0], "transB": transposed[1]}
    agree(machine, "Gemm", arrays, attributes, constants=int(constant), tolerance=TOLERANCE)


@MACHINES
@CONSTANT
@pytest.mark.parametrize("addend", [(33,), (9, 33), (9, 1), ()])
def test_addend_of_gemm_is_read_in_every_tile(machine: Machine, constant: bool, addend: Shape) -> None:
    arrays = [normal(9, 20), normal(20, 33, seed=1)]
    arrays.append(normal(*addend, seed=2) if addend else np.array(0.7, np.float32))
    attributes = {"alpha": 0.5, "beta": 2.0}
    agree(machine, "Gemm", arrays, attributes, constants=2 if constant else 0, tolerance=TOLERANCE)


@MACHINES
def test_nan_affects_only_its_row_and_column(machine: Machine) -> None:
    a, b = normal(11, 20), normal(20, 40, seed=1)
    a[4, 3], b[5, 38] = np.nan, np.inf
    agree(machine, "MatMul", [a, b], tolerance=TOLERANCE)


@MACHINES
@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("ij,jk->ki", (9, 33), (33, 37)),
        ("abcd,cdef->abef", (2, 3, 4, 5), (4, 5, 6, 7)),
        ("bij,bjk->bik", (1, 3, 5), (4, 5, 7)),
        ("bij,bjk->ibk", (4, 3, 1), (4, 5, 7)),
    ],
)
def test_einsum_that_is_a_product(machine: Machine, equation: str, left: Shape, right: Shape) -> None:
    agree(machine, "Einsum", [normal(*left), normal(*right, seed=1)], {"equation": equation}, tolerance=TOLERANCE)


@pytest.mark.parametrize("equation", ["ij,ij->ij", "ij,jk->i", "ii,ij->j", "...i,...i->...i", "ij,jk,kl->il", "ij->ji"])
def test_einsum_that_is_not_a_product_is_refused(equation: str) -> None:
    g = SeededGraph("float32")
    terms = equation.split("->")[0].split(",")
    operands = [g.input(*[3] * len(term.replace("...", "."))) for term in terms]
    result = g.add("Einsum", *operands, equation=equation)
    (node,) = g.built(result).nodes
    function, reason = find_lowering(node)
    assert function is None
    assert f"Einsum {equation!r}" in reason
