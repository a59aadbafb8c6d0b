"""Partitions whose shapes depend on data: correct results for all data."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from opencl_device import first_device, run, run_executable

import lite_core as lite
from lite_compiler.staging import StagedExecutable
from lite_core.backend import Options, Partition
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph

Array = np.ndarray[Any, Any]

RANDOM = np.random.default_rng(0)


def chosen_rows() -> Graph:
    """Return a graph that selects rows by scores, scales and sums them; the number of rows depends on data."""
    builder = GraphBuilder("chosen_rows")
    x = builder.input("x", "float32", (6, 5))
    scores = builder.add("ReduceSum", [x, builder.ints(1)], {"keepdims": 0})
    above = builder.add("Greater", [scores, builder.constant(np.float32(0))])
    selected = builder.add("Squeeze", [builder.add("NonZero", [above]), builder.ints(0)])
    rows = builder.add("Mul", [builder.add("Gather", [x, selected]), builder.constant(np.float32(3))])
    builder.output(builder.add("Exp", [builder.add("Neg", [rows])]), "rows")
    builder.output(builder.add("ReduceSum", [rows, builder.ints(0)], {"keepdims": 0}), "sum")
    builder.output(builder.add("Shape", [rows]), "shape")
    return builder.build()


def computed_shape() -> Graph:
    """Return a graph whose Reshape takes its shape from an input, so that it is compiled in stages."""
    builder = GraphBuilder("computed_shape")
    x = builder.input("x", "float32", (4, 6))
    shape = builder.input("shape", "int64", (2,))
    y = builder.add("Reshape", [builder.add("Relu", [x]), shape])
    y = builder.add("Transpose", [builder.add("Neg", [y])], {"perm": (1, 0)})
    builder.output(builder.add("Softmax", [y]), "y")
    return builder.build()


def rows_for(count: int) -> Array:
    """Return data from which ``count`` rows are selected."""
    x = np.abs(RANDOM.standard_normal((6, 5))).astype(np.float32)
    x[count:] *= -1
    return RANDOM.permutation(x)


def check(session: lite.Session, x: Array) -> None:
    results = session.run({"x": x})
    for name, right in zip(session.outputs, evaluate_graph(session.graph, [x])):
        assert results[name].dtype == right.dtype
        np.testing.assert_allclose(results[name], right, rtol=1e-5, atol=1e-6, err_msg=name)


def session() -> lite.Session:
    return lite.load(chosen_rows(), first_device()[1].label)


def test_every_data_dependent_number_of_rows() -> None:
    one = session()
    for count in (3, 0, 6, 1, 3, 0):
        check(one, rows_for(count))
    on_device = {a.op for a in one.assignment() if a.device != "host"}
    assert {"Gather", "Mul", "Exp"} <= on_device


def test_profile_has_kernels_of_all_stages() -> None:
    profile = lite.RunProfile()
    inputs = {"x": RANDOM.standard_normal((4, 6)).astype(np.float32), "shape": np.array([2, 12])}
    lite.load(computed_shape(), first_device()[1].label).run(inputs, profile=profile)
    assert {op for kernel in profile.kernels for op in kernel.op.split("+")} >= {"Relu", "Reshape", "Neg", "Softmax"}
    assert [kernel.op for kernel in profile.kernels if kernel.kernel == "host reference"] == ["Reshape"]
    assert any(part.notes for part in profile.partitions)


def test_empty_tensors_between_kernels() -> None:
    builder = GraphBuilder("empty")
    x = builder.input("x", "float32", (0, 5))
    y = builder.add("MatMul", [builder.add("Softmax", [x]), builder.constant(np.ones((5, 4), np.float32))])
    builder.output(builder.add("ReduceSum", [y, builder.ints(0)], {"keepdims": 0}), "y")
    (y,) = run(builder.build(), [np.zeros((0, 5), np.float32)])
    np.testing.assert_array_equal(y, np.zeros(4, np.float32))


def test_concurrent_runs_with_different_data() -> None:
    one = session()
    inputs = [rows_for(i % 7) for i in range(48)]
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda x: check(one, x), inputs))


@pytest.mark.parametrize("shape", [(24, 1), (-1, 3)])
def test_partition_is_staged_where_elements_must_be_known(shape: tuple[int, int]) -> None:
    graph = computed_shape()
    backend, device = first_device()
    executable = backend.compile(Partition("test", graph), device, Options())
    assert isinstance(executable, StagedExecutable)
    inputs = [RANDOM.standard_normal((4, 6)).astype(np.float32), np.array(shape)]
    (y,) = run_executable(executable, graph, inputs)
    np.testing.assert_allclose(y, evaluate_graph(graph, inputs)[0], rtol=1e-5)


def test_invalid_shape_in_data_is_an_error() -> None:
    graph = computed_shape()
    one = lite.load(graph, first_device()[1].label)
    with pytest.raises(lite.LiteError, match="(?i)reshape"):
        one.run({"x": np.zeros((4, 6), np.float32), "shape": np.array([5, 5])})
    x = RANDOM.standard_normal((4, 6)).astype(np.float32)
    y = one.run({"x": x, "shape": np.array([3, 8])})["y"]
    np.testing.assert_allclose(y, evaluate_graph(graph, [x, np.array([3, 8])])[0], rtol=1e-5)
