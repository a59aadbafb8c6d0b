"""Resize of any number of channels, alone and with element-wise operators in the same step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from levels import backend_for, machine_params, run_on, runnable_machines

from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_cpu.lowering.compile import lower_graph
from lite_cpu.machine import Machine

Array = np.ndarray[Any, Any]

machines = pytest.mark.parametrize("machine", machine_params())


def resized(
    shape: tuple[int, ...],
    scales: tuple[float, ...],
    attributes: dict[str, Any],
    *,
    tail: bool = False,
    dtype: str = "float32",
) -> Graph:
    """Return a Resize, with ``tail`` followed by the addition of an image, a factor for each channel, and Relu."""
    b = GraphBuilder("resize")
    x = b.input("x", dtype, shape)
    y = b.add("Resize", [x, None, b.constant(np.array(scales, np.float32))], attributes)
    if tail:
        other = b.input("other", dtype, y.shape)
        factors = np.linspace(-1, 1, shape[1], dtype=np.float32).reshape(-1, 1, 1).astype(dtype)
        y = b.add("Relu", [b.add("Mul", [b.add("Add", [y, other]), b.constant(factors)])])
    b.output(y, "y")
    return b.build()


def inputs_for(graph: Graph) -> dict[str, Array]:
    draw = np.random.default_rng(0)
    return {v.name: draw.standard_normal(v.shape).astype(v.dtype.numpy) for v in graph.inputs}


def check(machine: Machine, graph: Graph) -> None:
    inputs = inputs_for(graph)
    (expected,) = evaluate_graph(graph, list(inputs.values()))
    actual = run_on(machine, graph, inputs, threads=2)["y"]
    np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-6)


@machines
@pytest.mark.parametrize(
    ("mode", "coordinates"),
    [("nearest", "half_pixel"), ("linear", "half_pixel"), ("linear", "asymmetric"), ("cubic", "half_pixel")],
)
@pytest.mark.parametrize("tail", [False, True])
def test_any_number_of_channels(machine: Machine, mode: str, coordinates: str, tail: bool) -> None:
    """With asymmetric coordinates, the columns that keep their size have one tap."""
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
    for channels, scales in ((3, (1.0, 1.0, 2.0, 2.0)), (24, (1.0, 1.0, 1.5, 0.5)), (41, (1.0, 1.0, 4.0, 1.0))):
        check(machine, resized((2, channels, 5, 6), scales, attributes, tail=tail))


@machines
def test_many_taps_are_resized_one_axis_at_a_time(machine: Machine) -> None:
    check(machine, resized((1, 5, 40, 30), (1, 1, 0.1, 0.2), {"mode": "linear", "antialias": 1}))


@machines
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_floats(machine: Machine, dtype: str) -> None:
    if dtype == "float16" and not machine.half:
        pytest.skip("the machine has no float16")
    graph = resized((1, 9, 4, 5), (1, 1, 2, 3), {"mode": "nearest"}, dtype=dtype)
    inputs = inputs_for(graph)
    actual = run_on(machine, graph, inputs)["y"]
    assert actual.tobytes() == evaluate_graph(graph, list(inputs.values()))[0].tobytes()


def test_addition_after_an_enlargement_is_part_of_its_step() -> None:
    b = GraphBuilder("pyramid")
    small, large = b.input("small", "float32", (1, 8, 4, 4)), b.input("large", "float32", (1, 8, 8, 8))
    weights = b.constant(np.ones((8, 8, 1, 1), np.float32))
    fine = b.add("Conv", [large, weights])
    coarse = b.add("Conv", [small, weights])
    enlarged = b.add("Resize", [coarse, None, b.constant(np.array([1, 1, 2, 2], np.float32))])
    b.output(b.add("Conv", [b.add("Add", [fine, enlarged]), weights]), "y")
    shared = backend_for(runnable_machines()[-1])._share()
    steps = lower_graph(b.build(), Options(threads=1), shared.library, shared.weights).steps
    assert "elementwise" not in [s.label for s in steps]
