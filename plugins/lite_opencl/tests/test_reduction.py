"""Reductions, softmax and running sums, along and across rows: the kernels of GPUs, vectors, accuracy and extremes."""

from __future__ import annotations

import numpy as np
import pytest
from opencl_agreement import KINDS, agree, normal, single_node, steps_of
from opencl_device import run
from tiers import in_part

from lite_core.builder import GraphBuilder
from lite_core.ops.evaluate import evaluate_graph
from lite_opencl.lowering.reduction import refuse_reduction

EPSILON = 2.0**-23
NAMES = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
REDUCTIONS = [f"Reduce{name}" for name in NAMES]


def _axes(*axes: int) -> np.ndarray:
    return np.array(axes, np.int64)


@pytest.mark.parametrize("op", in_part("opencl", REDUCTIONS, ["ReduceLogSumExp"]))
@pytest.mark.parametrize("axis", in_part("opencl", [0, 1], [1]))
def test_every_reduction_on_gpus(op: str, axis: int) -> None:
    x = 0.75 + 0.5 * np.random.default_rng(0).random((83, 37), np.float32)
    agree("GPU", op, [x, _axes(axis)], {"keepdims": 0}, constants=1, tolerance=16 * EPSILON)


@pytest.mark.full("opencl")
@pytest.mark.parametrize(
    ("kind", "shape", "axes"),
    [
        ("GPU", (2, 3, 4, 5), (0, 2)),
        ("GPU", (3, 2, 4, 3, 5), (0, 2, 4)),
        ("GPU", (40, 5), (1,)),
        ("CPU", (40, 5), (1,)),
    ],
)
def test_axes_that_are_not_neighbours_and_short_rows(kind: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    agree(kind, "ReduceSum", [normal(*shape), _axes(*axes)], {"keepdims": 0}, constants=1, tolerance=16 * EPSILON)


@pytest.mark.full("opencl")
@KINDS
@pytest.mark.parametrize(("shape", "axis"), [((3, 40_001), 1), ((40_001, 3), 0), ((1, 100_000), 1)])
def test_long_sums_stay_accurate(kind: str, shape: tuple[int, ...], axis: int) -> None:
    agree(kind, "ReduceSum", [np.abs(normal(*shape)), _axes(axis)], constants=1, tolerance=4 * EPSILON)


@pytest.mark.full("opencl")
@KINDS
@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("axis", [0, 1])
def test_nan_propagates_through_reductions(kind: str, op: str, axis: int) -> None:
    x = normal(40, 41)
    x[3, 17] = x[39, 0] = x[20, 40] = np.nan
    x[5, 5], x[6, 39] = np.inf, -np.inf
    agree(kind, op, [x, _axes(axis)], constants=1, tolerance=8 * EPSILON)


@pytest.mark.full("opencl")
@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        ("ReduceSum", "int64"),
        ("ReduceMean", "int32"),
        ("ReduceMean", "int64"),
        ("ReduceMean", "uint64"),
        ("ReduceMax", "uint32"),
        ("ReduceMin", "int64"),
        ("ReduceProd", "int32"),
        ("ReduceL1", "int32"),
        ("ReduceSumSquare", "uint32"),
    ],
)
@pytest.mark.parametrize(("kind", "axis"), [("CPU", 0), ("GPU", 1)])
def test_integers_are_exact_and_wrap_around(kind: str, op: str, dtype: str, axis: int) -> None:
    limits = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(limits.min, limits.max, (9, 19), dtype, endpoint=True)
    agree(kind, op, [x, _axes(axis)], constants=1)


def test_norms_and_logarithms_of_integers_are_refused() -> None:
    node = single_node("ReduceL2", [np.ones((2, 2), np.int32)], {}).nodes[0]
    assert "float64" in str(refuse_reduction(node))


@pytest.mark.full("opencl")
@KINDS
def test_reductions_of_empty_axes(kind: str) -> None:
    empty = np.zeros((2, 0), np.float32)
    for op in ("ReduceMax", "ReduceMean"):
        agree(kind, op, [empty, _axes(1)], {"keepdims": 0}, constants=1)
    agree(kind, "ReduceMean", [empty.astype(np.int64), _axes(1)], constants=1)


@pytest.mark.full("opencl")
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((7, 129), 1), ((130, 9), 0), ((2, 21, 5, 7), 1), ((40, 3), 1), ((9, 1), 1)]
)
def test_softmax_on_gpus(op: str, shape: tuple[int, ...], axis: int) -> None:
    agree("GPU", op, [8 * normal(*shape)], {"axis": axis}, tolerance=16 * EPSILON)


@pytest.mark.full("opencl")
@pytest.mark.parametrize(("shape", "axis"), [((130, 9), 0), ((40, 3), 1)])
def test_softmax_across_vectors_of_rows(shape: tuple[int, ...], axis: int) -> None:
    agree("CPU", "Softmax", [8 * normal(*shape)], {"axis": axis}, tolerance=16 * EPSILON)


@pytest.mark.parametrize("kind", in_part("opencl", ["CPU", "GPU"], ["CPU"]))
@pytest.mark.parametrize("axis", in_part("opencl", [0, 1], [1]))
def test_softmax_of_masked_and_of_extreme_numbers(kind: str, axis: int) -> None:
    x = normal(24, 25)
    x[3, :20] = x[:20, 7] = -np.inf
    x[9], x[:, 11] = 1e30, -80.0
    x[10] = np.linspace(-120, 0, 25)
    x[13, 13] = np.nan
    agree(kind, "Softmax", [x], {"axis": axis}, tolerance=16 * EPSILON)


@pytest.mark.full("opencl")
@pytest.mark.parametrize(("shape", "axis"), [((5, 83), 1), ((2, 33, 7, 5), 1), ((3, 2000), 1)])
@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (1, 1)])
def test_running_sums_on_gpus(shape: tuple[int, ...], axis: int, exclusive: int, reverse: int) -> None:
    attributes = {"exclusive": exclusive, "reverse": reverse}
    agree("GPU", "CumSum", [normal(*shape), np.array(axis)], attributes, constants=1, tolerance=8 * EPSILON)
    integers = np.random.default_rng(0).integers(-(2**60), 2**60, shape)
    agree("GPU", "CumSum", [integers, np.array(axis)], attributes, constants=1)


@pytest.mark.full("opencl")
def test_reduction_of_a_transposed_view() -> None:
    builder = GraphBuilder("channels last")
    x = builder.input("x", "float32", (2, 5, 6, 19))
    y = builder.add("Transpose", [x], {"perm": (0, 3, 1, 2)})
    builder.output(builder.add("GlobalAveragePool", [y]), "y")
    graph, array = builder.build(), normal(2, 5, 6, 19)
    np.testing.assert_allclose(run(graph, [array])[0], evaluate_graph(graph, [array])[0], rtol=1e-5, atol=1e-6)


@KINDS
def test_softmax_and_global_pool_are_single_kernels(kind: str) -> None:
    assert steps_of(kind, single_node("Softmax", [normal(3, 5, 7)], {"axis": 1})) == ["normalize_rows"]
    assert steps_of(kind, single_node("GlobalAveragePool", [normal(1, 3, 5, 7)], {})) == ["reduce_rows"]


@pytest.mark.full("opencl")
@pytest.mark.parametrize("shape", [(2000, 300), (64, 300, 7)])
def test_concurrent_work_groups_do_not_share_local_memory(shape: tuple[int, ...]) -> None:
    """Softmax makes two passes, each joining parts of rows in the local memory of a work group."""
    for seed in range(10):
        agree("GPU", "Softmax", [normal(*shape, seed=seed)], {"axis": 1}, tolerance=1e-5)
