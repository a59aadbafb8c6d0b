"""Depthwise convolution: all geometries compared with the reference in float64, on each level of this processor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from levels import machine_params, run_on

from lite_core import load
from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_cpu.kernels.depthwise import Axis, Depthwise, Edges
from lite_cpu.lowering.compile import lower_graph
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine import X86_64_V3, Machine
from lite_cpu.machine_code.library import KernelLibrary

Array = np.ndarray[Any, Any]

LEVELS = pytest.mark.parametrize("machine", machine_params())


@dataclass(frozen=True)
class Case:
    """A depthwise Conv; pads are top, left, bottom, right."""

    channels: int
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (1, 1, 1, 1)
    dilations: tuple[int, ...] = (1, 1)
    multiplier: int = 1
    batch: int = 1
    tail: str = ""

    def graph(self, dtype: str, rng: np.random.Generator) -> Graph:
        """Return a Conv with bias, followed by the operators that ``tail`` names."""
        outputs = self.channels * self.multiplier
        b = GraphBuilder("depthwise")
        x = b.input("x", dtype, (self.batch, self.channels, *self.size))
        weights = rng.standard_normal((outputs, 1, *self.kernel)).astype("float32").astype(dtype)
        bias = rng.standard_normal(outputs).astype("float32").astype(dtype)
        attributes = {
            "kernel_shape": self.kernel,
            "strides": self.strides,
            "pads": self.pads,
            "dilations": self.dilations,
            "group": self.channels,
        }
        y = b.add("Conv", [x, b.constant(weights), b.constant(bias)], attributes)
        if self.tail == "hard-swish":
            y = b.add("HardSwish", [y])
        elif self.tail == "clip":
            low, high = (b.constant(np.array(n, dtype)) for n in (-1, 2))
            y = b.add("Clip", [y, low, high])
        elif self.tail == "residual":
            scale = b.constant(rng.standard_normal((outputs, *(1 for _ in self.size))).astype("float32").astype(dtype))
            y = b.add("Relu", [b.add("Add", [b.add("Mul", [y, scale]), x])])
        b.output(y, "y")
        return b.build()


def differences(case: Case, machine: Machine, threads: int = 1) -> float:
    """Return the largest difference from the reference in float64, relative to its largest magnitude."""
    x = np.random.default_rng(1).standard_normal((case.batch, case.channels, *case.size)).astype("float32")
    graph = case.graph("float32", np.random.default_rng(2))
    exact = load(case.graph("float64", np.random.default_rng(2)), backend="host").run(x=x.astype("float64"))["y"]
    found = run_on(machine, graph, {"x": x}, threads=threads)["y"]
    assert found.shape == exact.shape
    return float(np.abs(found - exact).max() / np.abs(exact).max())


SQUARE = Case(20, (9, 11), (3, 3))
CASES = {
    "3x3": SQUARE,
    "3x3 one row": replace(SQUARE, size=(1, 11)),
    "3x3 smaller than the window": replace(SQUARE, size=(2, 1)),
    "3x3 no padding": replace(SQUARE, pads=(0, 0, 0, 0)),
    "3x3 uneven padding": replace(SQUARE, pads=(0, 2, 1, 0)),
    "3x3 padding beyond the window": replace(SQUARE, pads=(4, 5, 5, 4)),
    "3x3 stride 2": replace(SQUARE, strides=(2, 2)),
    "3x3 strides 2, 1": replace(SQUARE, strides=(2, 1)),
    "3x3 strides 1, 2": replace(SQUARE, strides=(1, 2)),
    "3x3 dilated": replace(SQUARE, dilations=(2, 3), pads=(2, 3, 2, 3)),
    "one tile in each row": Case(24, (7, 7), (3, 3)),
    "two tiles in each row": Case(24, (5, 14), (3, 3)),
    "tiles that overlap": Case(24, (5, 13), (3, 3), tail="residual"),
    "wide rows": Case(24, (5, 38), (3, 3)),
    "wide rows, stride 2": Case(24, (5, 75), (3, 3), (2, 2)),
    "stride 2, no padding needed on the right": Case(24, (9, 28), (3, 3), (2, 2)),
    "stride 2, padding on both sides": Case(24, (9, 27), (3, 3), (2, 2)),
    "padding under several tiles": Case(24, (9, 13), (3, 3), pads=(2, 9, 2, 9), dilations=(2, 9)),
    "5x5": Case(24, (8, 15), (5, 5), pads=(2, 2, 2, 2)),
    "5x5, one tile in each row": Case(24, (7, 7), (5, 5), pads=(2, 2, 2, 2)),
    "5x5, tiles that overlap too much": Case(24, (5, 8), (5, 5), pads=(2, 2, 2, 2)),
    "5x5 stride 2": Case(24, (8, 15), (5, 5), (2, 2), (2, 2, 2, 2)),
    "5x5 dilated rows": Case(24, (16, 9), (5, 5), (2, 1), (3, 2, 5, 2), (3, 1)),
    "7x7": Case(33, (9, 9), (7, 7), pads=(3, 3, 3, 3)),
    "2x4": Case(17, (6, 9), (2, 4), pads=(0, 1, 1, 2)),
    "1x33": Case(4, (3, 50), (1, 33), pads=(0, 16, 0, 16)),
    "1x65 is left to the products": Case(4, (2, 70), (1, 65), pads=(0, 0, 0, 0)),
    "one dimension, tail": Case(18, (25,), (3,), (1,), (1, 1), (1,), tail="residual"),
    "multiplier": Case(6, (7, 8), (3, 3), multiplier=3),
    "batch": replace(SQUARE, batch=3),
    "fewer channels than a vector": replace(SQUARE, channels=3),
    "fewer channels than a vector, tail": replace(SQUARE, channels=3, tail="residual"),
    "whole vectors": replace(SQUARE, channels=32, tail="hard-swish"),
    "bounds that are constants": replace(SQUARE, tail="clip"),
    "tail": replace(SQUARE, tail="residual", batch=2),
    "5x5 tail": Case(21, (8, 15), (5, 5), pads=(2, 2, 2, 2), tail="residual", batch=2),
}


SQUARE_OF_MANY_CHANNELS = Case(96, (3, 40), (3, 3))


@LEVELS
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_agrees_with_the_reference(case: Case, machine: Machine) -> None:
    assert differences(case, machine) < 1e-6


@LEVELS
@pytest.mark.parametrize("seed", range(8))
def test_any_size_padding_and_number_of_channels(machine: Machine, seed: int) -> None:
    rng = np.random.default_rng(seed)
    height, width, channels, batch = (int(n) for n in rng.integers((1, 1, 2, 1), (20, 20, 70, 3)))
    pads = tuple(int(n) for n in rng.integers(1, 6, 4))
    kernel, strides = [((3, 3), (1, 1)), ((3, 3), (2, 2)), ((5, 5), (1, 1))][seed % 3]
    case = Case(channels, (height + 3, width + 3), kernel, strides, pads, batch=batch)
    assert differences(case, machine) < 1e-6


@LEVELS
def test_threads_share_rows_and_channels(machine: Machine) -> None:
    assert differences(SQUARE_OF_MANY_CHANNELS, machine, threads=2) < 1e-6


@LEVELS
@pytest.mark.parametrize("channels", [36, 100])
def test_images_that_are_prefetched_give_the_same_bits(machine: Machine, channels: int) -> None:
    case = Case(channels, (9, 21), (3, 3), (2, 2), tail="hard-swish")
    graph, small_caches = case.graph("float32", np.random.default_rng(2)), machine.with_caches(32 << 10, 8 << 10)
    x = np.random.default_rng(1).standard_normal((1, channels, 9, 21)).astype("float32")
    steps = lower_graph(graph, Options(threads=1), KernelLibrary(small_caches), WeightCache()).steps
    (kernel,) = (step.kernel for step in steps if isinstance(step.kernel, Depthwise))
    # With many registers, images of wide pixels are not prefetched.
    assert kernel.ahead == (channels < 50 or machine.vector_registers < 32)
    np.testing.assert_array_equal(run_on(small_caches, graph, {"x": x})["y"], run_on(machine, graph, {"x": x})["y"])


@LEVELS
@pytest.mark.parametrize("tail", ["", "clip"])
def test_non_finite_inputs_affect_only_their_windows(machine: Machine, tail: str) -> None:
    case = replace(SQUARE, channels=18, pads=(0, 0, 0, 0))
    x = np.random.default_rng(1).standard_normal((1, 18, 9, 11)).astype("float32")
    x[0, 3, 4, 5], x[0, 17, 0, 10] = np.nan, np.inf
    case = replace(case, tail=tail)
    graph = case.graph("float32", np.random.default_rng(2))
    expected = load(graph, backend="host").run(x=x)["y"]
    found = run_on(machine, graph, {"x": x})["y"]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))


@pytest.mark.parametrize(("columns", "tile", "x_columns", "edges"), [
    (7, 7, 7, Edges(1, 1, only=True)),
    (14, 7, 14, Edges(1, 1, only=False)),
    (13, 7, 13, Edges(1, 1, only=False)),
    (8, 7, 8, Edges(1, 1, only=False)),
    (3, 4, 3, None),
])  # fmt: skip
def test_edges_of_a_row(columns: int, tile: int, x_columns: int, edges: Edges | None) -> None:
    assert Edges.of(Axis(3, 1, 1, tile), 1, columns, x_columns) == edges


def test_edges_exist_only_where_inner_tiles_stay_inside_the_image() -> None:
    for window, stride, dilation, left, tile, x_columns in product(
        (3, 5), (1, 2), (1, 3), (0, 1, 2, 5), (4, 7), range(1, 40)
    ):
        across = Axis(window, stride, dilation, tile)
        columns = (x_columns + 2 * left - (window - 1) * dilation - 1) // stride + 1
        edges = Edges.of(across, left, columns, x_columns)
        if edges is None:
            continue
        starts = sorted({max(0, columns - tile * n) for n in range(1, -(-columns // tile) + 1)})
        assert edges.only == (len(starts) == 1)
        for start in starts:
            first = start * stride - left
            assert max(0, -first) == (edges.before if start == 0 else 0)
            assert max(0, first + across.reach + 1 - x_columns) == (edges.after if start == starts[-1] else 0)


def test_pixels_read_only_by_depthwise_convolutions_share_no_cache_sets() -> None:
    def pixel_strides(channels: int) -> set[int]:
        graph = after_relu(channels)
        lowering = lower_graph(graph, Options(), KernelLibrary(X86_64_V3), WeightCache())
        convolutions = [step for step in lowering.steps if step.kernel.symbol == "depthwise"]
        return {step.tensors[0].strides[3] for step in convolutions}

    assert pixel_strides(256) == {256 + X86_64_V3.lanes()}
    assert pixel_strides(240) == {240}


@LEVELS
def test_depthwise_reads_spaced_pixels(machine: Machine) -> None:
    x = np.random.default_rng(1).standard_normal((2, 256, 4, 5)).astype("float32")
    graph = after_relu(256)
    expected = load(graph, backend="host").run(x=x)
    found = run_on(machine, graph, {"x": x})
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=0, atol=1e-5)


def after_relu(channels: int) -> Graph:
    """Return a graph of two depthwise convolutions of the result of a Relu."""
    rng = np.random.default_rng(3)
    b = GraphBuilder("after relu")
    x = b.add("Relu", [b.input("x", "float32", (2, channels, 4, 5))])
    for size in (3, 5):
        weights = b.constant(rng.standard_normal((channels, 1, size, size)).astype("float32"))
        pads = (size // 2,) * 4
        attributes = {"kernel_shape": (size, size), "pads": pads, "group": channels}
        b.output(b.add("Conv", [x, weights], attributes), f"y{size}")
    return b.build()
