"""Reductions and global pools of all kinds: along rows, across rows, and of no elements."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import MACHINES, agree, normal, single_node
from levels import backend_for, run_on

from lite_core.backend import Options
from lite_cpu.kernels.reduction import REDUCTIONS, Reduction
from lite_cpu.kernels.rows import Vectors
from lite_cpu.lowering.compile import lower_graph
from lite_cpu.machine import Machine

EPSILON = 2.0**-23


def _axes(*axes: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(axes, np.int64)


@MACHINES
@pytest.mark.parametrize("op", REDUCTIONS)
def test_every_reduction_of_rows_with_a_partial_vector(machine: Machine, op: str) -> None:
    x = np.abs(normal(5, 83)) + 0.5
    agree(machine, op, [x, _axes(1)], {"keepdims": 0}, constants=1, tolerance=16 * EPSILON)


@MACHINES
@pytest.mark.parametrize(("shape", "axes"), [((83, 37), (0,)), ((7, 83), (0,)), ((2, 3, 4, 5), (0, 2))])
def test_reductions_across_rows(machine: Machine, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    agree(machine, "ReduceL2", [normal(*shape), _axes(*axes)], {"keepdims": 0}, constants=1, tolerance=16 * EPSILON)


@MACHINES
@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("channels", [3, 83])
def test_global_pools_of_channels_last_images(machine: Machine, op: str, channels: int) -> None:
    agree(machine, op, [normal(2, channels, 5, 7)], channels_last=True, tolerance=8 * EPSILON, threads=2)


@MACHINES
def test_vectors_are_along_contiguous_elements(machine: Machine) -> None:
    def vectors(channels_last: bool) -> Vectors:
        graph = single_node("GlobalAveragePool", [normal(1, 8, 4, 4)], {}, channels_last=channels_last)
        shared = backend_for(machine)._share()
        kernel = lower_graph(graph, Options(threads=1), shared.library, shared.weights).steps[0].kernel
        assert isinstance(kernel, Reduction)
        return kernel.layout.vectors

    assert (vectors(False), vectors(True)) == (Vectors.ALONG, Vectors.ACROSS)


@MACHINES
@pytest.mark.parametrize("channels_last", [False, True])
def test_long_sums_stay_accurate(machine: Machine, channels_last: bool) -> None:
    x = np.abs(normal(1, 5, 400, 251))
    agree(machine, "GlobalAveragePool", [x], channels_last=channels_last, tolerance=4 * EPSILON)


@MACHINES
@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("axis", [0, 1])
def test_nan_wins(machine: Machine, op: str, axis: int) -> None:
    x = normal(40, 40)
    x[3, 17] = x[39, 0] = np.nan
    x[5, 5], x[6, 39] = np.inf, -np.inf
    agree(machine, op, [x, _axes(axis)], constants=1, tolerance=8 * EPSILON)


@MACHINES
@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        ("ReduceSum", "int64"),
        ("ReduceMean", "int32"),
        ("ReduceMean", "int64"),
        ("ReduceMean", "uint64"),
        ("ReduceMax", "uint32"),
        ("ReduceProd", "int32"),
        ("ReduceL1", "int32"),
        ("ReduceSumSquare", "uint32"),
    ],
)
def test_integers_are_exact_and_wrap_around(machine: Machine, op: str, dtype: str) -> None:
    limits = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(limits.min, limits.max, (9, 19), dtype, endpoint=True)
    agree(machine, op, [x, _axes(1)], constants=1)


@MACHINES
@pytest.mark.parametrize(("op", "dtype"), [("ReduceMean", "uint64"), ("ReduceProd", "int32")])
def test_integers_across_rows(machine: Machine, op: str, dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, (9, 19), dtype, endpoint=True)
    agree(machine, op, [x, _axes(0)], constants=1)


@MACHINES
@pytest.mark.parametrize(("op", "dtype"), [("ReduceMax", "int8"), ("ReduceMin", "uint8")])
def test_extremes_of_bytes(machine: Machine, op: str, dtype: str) -> None:
    limits = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(limits.min, limits.max, (9, 70), dtype, endpoint=True)
    agree(machine, op, [x, _axes(1)], constants=1)
    agree(machine, op, [x, _axes(0)], constants=1)


@MACHINES
@pytest.mark.parametrize(("dtype", "mean"), [("float32", np.nan), ("int64", 0)])
def test_mean_of_no_elements(machine: Machine, dtype: str, mean: float) -> None:
    """An integer division by zero would crash the process."""
    graph = single_node("ReduceMean", [np.zeros((2, 0), dtype), _axes(1)], {"keepdims": 0}, constants=1)
    result = run_on(machine, graph, {"x0": np.zeros((2, 0), dtype)})["y0"]
    np.testing.assert_array_equal(result, np.array([mean, mean], dtype))


@MACHINES
def test_reduction_without_axes_agrees_with_the_reference(machine: Machine) -> None:
    agree(machine, "ReduceSumSquare", [normal(3, 4)], {"noop_with_empty_axes": 1})
