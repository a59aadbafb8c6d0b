"""Large matrix products by an external library; here by a NumPy function with the signature of ``cblas_sgemm``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from agreement import normal
from levels import LevelBackend, runnable_machines
from numpy_sgemm import NumpySgemm

from lite_core import load
from lite_core.builder import GraphBuilder
from lite_core.ir import Value
from lite_core.plugins.backends import plugins_with
from lite_cpu.machine import Machine

Array = np.ndarray[Any, Any]

_TOLERANCE = 4e-6


class _Backend(LevelBackend):
    def __init__(self, machine: Machine, sgemm: NumpySgemm) -> None:
        super().__init__(machine)
        self.external_sgemm = lambda _: sgemm.offered()  # type: ignore[method-assign]


@pytest.fixture
def sgemm() -> Iterator[NumpySgemm]:
    if not runnable_machines():
        pytest.skip("not an x86-64 processor")
    return NumpySgemm()


def run(sgemm: NumpySgemm, graph: GraphBuilder, *inputs: Array) -> Array:
    """Run a graph and return its output. It has one thread, because a Python function needs the GIL."""
    plugins = plugins_with(_Backend(runnable_machines()[-1], sgemm))
    session = load(graph.build(), backend="level", plugins=plugins, threads=1, fallback="never")
    return session.run({f"x{i}": array for i, array in enumerate(inputs)})["y"]


def operand(b: GraphBuilder, array: Array, constant: bool, name: str) -> Value:
    return b.constant(array) if constant else b.input(name, "float32", array.shape)


def check(actual: Array, expected: Array) -> None:
    np.testing.assert_allclose(actual, expected, rtol=0, atol=_TOLERANCE * np.abs(expected).max())


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "run-time"])
@pytest.mark.parametrize(
    ("left", "right", "calls"),
    [
        ((256, 256), (256, 256), [(256, 256, 256)]),
        ((301, 270), (270, 257), [(301, 257, 270)]),
        ((4, 80, 256), (256, 256), [(320, 256, 256)]),
        ((2, 256, 256), (2, 256, 260), [(256, 260, 256)] * 2),
        ((256, 256), (3, 256, 256), [(256, 256, 256)] * 3),
    ],
)
def test_product_with_bias_and_activation(
    sgemm: NumpySgemm, constant: bool, left: tuple[int, ...], right: tuple[int, ...], calls: list[tuple[int, int, int]]
) -> None:
    x, w, bias = normal(*left), normal(*right, seed=1), normal(right[-1], seed=2)
    b = GraphBuilder("product")
    product = b.add("MatMul", [b.input("x0", "float32", left), operand(b, w, constant, "x1")])
    b.output(b.add("Relu", [b.add("Add", [product, b.constant(bias)])]), "y")
    actual = run(sgemm, b, *([x] if constant else [x, w]))
    check(actual, np.maximum(x.astype(np.float64) @ w + bias, 0))
    assert sgemm.calls == calls


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "run-time"])
@pytest.mark.parametrize("transposed", [0, 1])
def test_gemm(sgemm: NumpySgemm, constant: bool, transposed: int) -> None:
    x, w, c = normal(260, 300), normal(300, 270, seed=1), normal(260, 1, seed=2)
    stored = np.ascontiguousarray(w.T) if transposed else w
    b = GraphBuilder("gemm")
    operands = [b.input("x0", "float32", x.shape), operand(b, stored, constant, "x1"), b.constant(c)]
    b.output(b.add("Gemm", operands, {"alpha": 0.5, "beta": 2.0, "transB": transposed}), "y")
    actual = run(sgemm, b, *([x] if constant else [x, stored]))
    check(actual, 0.5 * (x.astype(np.float64) @ w) + 2.0 * c)
    assert sgemm.calls == [(260, 270, 300)]


def test_product_without_epilogue_is_written_to_the_output(sgemm: NumpySgemm) -> None:
    x, w = normal(256, 256), normal(256, 256, seed=1)
    b = GraphBuilder("product")
    b.output(b.add("MatMul", [b.input("x0", "float32", x.shape), b.constant(w)]), "y")
    check(run(sgemm, b, x), x.astype(np.float64) @ w)
    assert sgemm.calls == [(256, 256, 256)]


@pytest.mark.parametrize(
    ("left", "right", "requests"),
    [
        ((255, 256), (256, 256), 0),  # too few operations
        ((63, 1024), (1024, 1024), 0),  # too few rows
        ((4096, 1024), (1024,), 0),  # a vector
        ((64, 64, 64), (64, 64, 64), 1),  # many operations, but of small products
    ],
)
def test_small_products_do_not_use_the_library(
    sgemm: NumpySgemm, left: tuple[int, ...], right: tuple[int, ...], requests: int
) -> None:
    x, w = normal(*left), normal(*right, seed=1)
    b = GraphBuilder("product")
    b.output(b.add("MatMul", [b.input("x0", "float32", left), b.constant(w)]), "y")
    check(run(sgemm, b, x), x.astype(np.float64) @ w)
    assert (sgemm.calls, sgemm.requests) == ([], requests)


def test_transposed_left_operand_does_not_use_the_library(sgemm: NumpySgemm) -> None:
    """The library is only called with a left operand whose rows are contiguous."""
    x, w = normal(256, 256), normal(256, 256, seed=1)
    b = GraphBuilder("product")
    left = b.add("Transpose", [b.input("x0", "float32", x.shape)], {"perm": [1, 0]})
    b.output(b.add("MatMul", [left, b.constant(w)]), "y")
    check(run(sgemm, b, x), x.T.astype(np.float64) @ w)
    assert sgemm.calls == []
