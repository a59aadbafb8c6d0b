"""Reductions and global pools: along rows, across rows, of every kind, and of nothing."""

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
@pytest.mark.parametrize(("shape", "axes"), [((5, 83), (1,)), ((83, 37), (0,)), ((2, 3, 4, 5), (0, 2))])
def test_every_reduction(machine: Machine, op: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = np.abs(normal(*shape)) + 0.5
    agree(machine, op, [x, _axes(*axes)], {"keepdims": 0}, constants=1, tolerance=16 * EPSILON)


@MACHINES
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("channels", [3, 24, 83])
def test_global_pools(machine: Machine, op: str, channels: int, channels_last: bool) -> None:
    agree(machine, op, [normal(2, channels, 5, 7)], channels_last=channels_last, tolerance=8 * EPSILON, threads=2)


@MACHINES
def test_vectors_lie_where_elements_are_neighbours(machine: Machine) -> None:
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
@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin", "ReduceSum"])
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
@pytest.mark.parametrize("axis", [0, 1])
def test_integers_are_exact_and_wrap_around(machine: Machine, op: str, dtype: str, axis: int) -> None:
    limits = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(limits.min, limits.max, (9, 19), dtype, endpoint=True)
    agree(machine, op, [x, _axes(axis)], constants=1)


@MACHINES
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8"])
@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_extremes_of_bytes(machine: Machine, op: str, dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, (9, 70)).astype(dtype)
    agree(machine, op, [x, _axes(1)], constants=1)
    agree(machine, op, [x, _axes(0)], constants=1)


@MACHINES
def test_reductions_of_nothing(machine: Machine) -> None:
    def reduced(op: str, dtype: str) -> float:
        graph = single_node(op, [np.zeros((2, 0), dtype), _axes(1)], {"keepdims": 0}, constants=1)
        result = run_on(machine, graph, {"x0": np.zeros((2, 0), dtype)})["y0"]
        assert result.shape == (2,)
        return float(result[0])

    assert reduced("ReduceSum", "float32") == 0
    assert reduced("ReduceProd", "float32") == 1
    assert reduced("ReduceMax", "float32") == -np.inf
    assert reduced("ReduceMin", "int32") == np.iinfo(np.int32).max
    assert reduced("ReduceMin", "bool") == 1
    assert np.isnan(reduced("ReduceMean", "float32"))
    assert reduced("ReduceMean", "int64") == 0  # a division by zero would end the process


@MACHINES
def test_nothing_to_reduce_passes_the_input_on(machine: Machine) -> None:
    agree(machine, "ReduceSumSquare", [normal(3, 4)], {"noop_with_empty_axes": 1})
