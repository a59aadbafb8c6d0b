"""Mode and Inverse: sizes and numbers beyond those of the suite, and matrices without an inverse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import MACHINES
from levels import run_on

from lite_core import GraphBuilder
from lite_core.errors import ExecutionError
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_cpu.machine import Machine

Array = np.ndarray[Any, Any]


def node(op: str, x: Array, attributes: dict[str, Any], outputs: int) -> Graph:
    builder = GraphBuilder(op)
    given = builder.input("x", str(x.dtype), x.shape)
    for number, value in enumerate(builder.add_node(op, [given], attributes, outputs=outputs, domain="lite")):
        builder.output(value, f"y{number}")
    return builder.build()


@MACHINES
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8"])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_mode_is_that_of_the_reference(machine: Machine, dtype: str, axis: int) -> None:
    x = np.random.default_rng(axis).integers(0, 40, (67, 130)).astype(dtype)
    if x.dtype.kind == "f":
        x[::3, ::2] = np.nan
        x[1::3, ::3] = -0.0
    if dtype == "int64":
        x[::2] += 2**40
    graph = node("Mode", x, {"axis": axis}, 2)
    found = run_on(machine, graph, {"x": x}, threads=2)
    for number, expected in enumerate(evaluate_graph(graph, [x])):
        np.testing.assert_array_equal(found[f"y{number}"], expected)


@MACHINES
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("float64", 1e-12)])
@pytest.mark.parametrize("size", [3, 33])
def test_inverses_of_matrices_that_need_pivots(machine: Machine, dtype: str, tolerance: float, size: int) -> None:
    x = np.random.default_rng(size).standard_normal((5, size, size)).astype(dtype)
    x[:, 0, 0] = 0
    x[0] = np.eye(size)[::-1]
    found = run_on(machine, node("Inverse", x, {}, 1), {"x": x}, threads=2)["y0"]
    expected = np.linalg.inv(x.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())
    np.testing.assert_array_equal(found[0], x[0])


@MACHINES
def test_a_matrix_without_an_inverse_is_an_error(machine: Machine) -> None:
    x = np.stack([np.eye(4), np.ones((4, 4))]).astype(np.float32)
    with pytest.raises(ExecutionError, match="matrix 1, counted from 0, has no inverse"):
        run_on(machine, node("Inverse", x, {}, 1), {"x": x})
