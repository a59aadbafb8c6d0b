"""MatMul and Gemm: tiles, layouts, kernels of GPUs, and fusion of the tail."""

from __future__ import annotations

import numpy as np
import pytest
from opencl_agreement import agree, normal, steps_of
from opencl_device import run
from tiers import in_part

from lite_core import load
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_opencl.lowering.product_choice import ProductShape, panel_tile

Shape = tuple[int, ...]

TOLERANCE = 4e-6

#: Sizes below, at and above those of tiles: at most 6 rows and 64 columns on processors, 64 by 64 on GPUs.
TILES: dict[str, tuple[Shape, Shape]] = {
    "1x64,64x100": ((1, 64), (64, 100)),
    "2x33,33x32": ((2, 33), (33, 32)),
    "37x33,33x65": ((37, 33), (33, 65)),
    "70x7,7x130": ((70, 7), (7, 130)),
    "50x37,37x1": ((50, 37), (37, 1)),
    "4x2x9x5,2x5x33": ((4, 2, 9, 5), (2, 5, 33)),
}
#: Forms that the conformance suite tests on processors.
GPU_SHAPES: dict[str, tuple[Shape, Shape]] = {
    **TILES,
    "3x70,70": ((3, 70), (70,)),
    "5,2x3x5x4": ((5,), (2, 3, 5, 4)),
    "2x1x8x20,1x3x20x40": ((2, 1, 8, 20), (1, 3, 20, 40)),
    "2x0,0x3": ((2, 0), (0, 3)),
}


@pytest.mark.parametrize("constants", [0, 1])
@pytest.mark.parametrize("name", in_part("opencl", TILES, ["37x33,33x65"]))
def test_tiles_of_processors(name: str, constants: int) -> None:
    left, right = TILES[name]
    agree("CPU", "MatMul", [normal(*left), normal(*right, seed=1)], constants=constants, tolerance=TOLERANCE)


@pytest.mark.parametrize("constants", in_part("opencl", [0, 1], [1]))
@pytest.mark.parametrize("name", in_part("opencl", GPU_SHAPES, ["37x33,33x65"]))
def test_products_on_gpus(name: str, constants: int) -> None:
    left, right = GPU_SHAPES[name]
    agree("GPU", "MatMul", [normal(*left), normal(*right, seed=1)], constants=constants, tolerance=TOLERANCE)


def check_gemm(kind: str, rows: int, *, left: int, right: int) -> None:
    """Compare a Gemm of run-time operands, each of which may be transposed, with the reference."""
    a = normal(20, rows) if left else normal(rows, 20)
    b = normal(33, 20, seed=1) if right else normal(20, 33, seed=1)
    attributes = {"alpha": 0.5, "beta": 2.0, "transA": left, "transB": right}
    agree(kind, "Gemm", [a, b, normal(rows, 1)], attributes, tolerance=TOLERANCE)


def test_few_rows_with_strides() -> None:
    check_gemm("CPU", 2, left=1, right=1)


@pytest.mark.full("opencl")
@pytest.mark.parametrize("left", [0, 1])
@pytest.mark.parametrize("right", [0, 1])
@pytest.mark.parametrize("rows", [2, 19])
def test_transposed_operands_on_gpus(left: int, right: int, rows: int) -> None:
    check_gemm("GPU", rows, left=left, right=right)


def attention(heads: int, length: int, size: int) -> tuple[Graph, list[np.ndarray]]:
    """Return MatMul, Softmax and MatMul on interleaved heads, [batch, length, heads, size], and inputs."""
    builder = GraphBuilder("attention")
    shape = (2, length, heads, size)
    q, k, v = (builder.input(name, "float32", shape) for name in "qkv")
    q, v = (builder.add("Transpose", [x], {"perm": (0, 2, 1, 3)}) for x in (q, v))
    scores = builder.add("MatMul", [q, builder.add("Transpose", [k], {"perm": (0, 2, 3, 1)})])
    scores = builder.add("Mul", [scores, builder.constant(np.float32(size**-0.5))])
    weights = builder.add("Softmax", [scores], {"axis": -1})
    builder.output(builder.add("MatMul", [weights, v]), "y")
    return builder.build(), [normal(*shape, seed=n) for n in range(3)]


@pytest.mark.full("opencl")
def test_attention_reads_strided_heads() -> None:
    graph, inputs = attention(3, 21, 16)
    np.testing.assert_allclose(run(graph, inputs)[0], evaluate_graph(graph, inputs)[0], rtol=0, atol=1e-5)


def test_element_wise_tail_is_fused_into_matmul() -> None:
    builder = GraphBuilder("layer")
    x = builder.input("x", "float32", (3, 9, 20))
    y = builder.add("MatMul", [x, builder.constant(normal(20, 40))])
    y = builder.add("Relu", [builder.add("Add", [y, builder.constant(normal(40))])])
    builder.output(builder.add("Mul", [y, builder.input("m", "float32", (3, 9, 40))]), "y")
    graph, inputs = builder.build(), [normal(3, 9, 20), normal(3, 9, 40)]
    assert steps_of("CPU", graph) == ["matmul_panels"]
    np.testing.assert_allclose(run(graph, inputs)[0], evaluate_graph(graph, inputs)[0], rtol=0, atol=1e-4)


@pytest.mark.parametrize("columns", [1, 3, 8, 23, 1000])
def test_panel_tile_fits_matrix_and_registers(columns: int) -> None:
    for rows in range(1, 20):
        shape = ProductShape(rows, columns, 5, 5, 1, columns, 1)
        for dtype in (DType.FLOAT16, DType.FLOAT32, DType.FLOAT64, DType.INT64):
            tile_rows, vectors, width = panel_tile(shape, dtype)
            assert 1 <= tile_rows <= rows
            assert 1 <= vectors * width <= columns
            # A processor with 16 vector registers holds the sums.
            assert tile_rows * vectors <= 12


def test_negative_factor_of_unsigned_integers_is_refused() -> None:
    builder = GraphBuilder("gemm")
    inputs = [builder.input(name, "uint32", (2, 2)) for name in "abc"]
    builder.output(builder.add("Gemm", inputs, {"beta": -1.0}), "y")
    session = load(builder.build(), backend="opencl")
    ones = np.ones((2, 2), np.uint32)
    assert session.run(a=ones, b=ones, c=ones)["y"].tolist() == [[1, 1], [1, 1]]
    (assigned,) = session.assignment()
    assert assigned.refusals == (("opencl", "it multiplies unsigned integers by a negative alpha or beta"),)
