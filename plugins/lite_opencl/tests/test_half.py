"""Sessions with ``precision="float16"``: accuracy, tensors that stay float32, and detection of overflow.

Kernels store 16-bit floats and compute in float32, which works on every device, with or without cl_khr_fp16. These
tests therefore report float16 support for every device, so that tensors are stored as on a device that has it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from opencl_agreement import normal
from opencl_device import first_device, first_runtime

import lite_core as lite
from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Value
from lite_core.ops.evaluate import evaluate_graph
from lite_opencl.device.devices import FoundDevice
from lite_opencl.lowering.compile import lower_graph
from lite_tools.cli.bisect import command as bisect_command
from lite_tools.cli.run import command as run_command
from lite_tools.diagnostics import check_finite

Array = np.ndarray[Any, Any]
Layer = Callable[[GraphBuilder, Value], Value]

#: The largest relative rounding error of float16.
ROUNDING = 2.0**-11
#: Weights, inputs and results are each rounded once in each of two layers. Errors of sums of products of standard
#: normal numbers, relative to the largest result, stay below twice the error of one product.
TOLERANCE = 2 * 2 * 3 * ROUNDING


@pytest.fixture(autouse=True)
def halves(monkeypatch: pytest.MonkeyPatch) -> None:
    first_device()
    monkeypatch.setattr(FoundDevice, "half", property(lambda found: True))


def weights(*shape: int) -> Array:
    return normal(*shape, seed=sum(shape)) / np.float32(np.sqrt(np.prod(shape[1:])))


def convolution(b: GraphBuilder, x: Value, **attributes: Any) -> Value:
    channels = x.shape[1] // attributes.get("group", 1)
    return b.add("Conv", [x, b.constant(weights(8, channels, 3, 3))], {"pads": [1, 1, 1, 1], **attributes})


def product(b: GraphBuilder, x: Value) -> Value:
    return b.add("MatMul", [x, b.constant(weights(12, 12))])


def reduced(op: str) -> Layer:
    """Return a reduction over the last dimension."""
    return lambda b, x: b.add(op, [x, b.constant(np.array([-1]))])


def normalization(b: GraphBuilder, x: Value) -> Value:
    return b.add("LayerNormalization", [x, b.constant(np.ones(12, np.float32))])


#: Each layer is applied twice, so that a float16 tensor is between them, except for two that are fused into one kernel.
LAYERS: dict[str, Layer] = {
    "convolution": convolution,
    "grouped": partial(convolution, group=2),
    "depthwise": partial(convolution, group=8),
    "transposed": lambda b, x: b.add("ConvTranspose", [x, b.constant(weights(8, 8, 3, 3))], {"pads": [1, 1, 1, 1]}),
    "product": product,
    "attention": lambda b, x: b.add("MatMul", [b.add("Softmax", [b.add("MatMul", [x, transposed(b, x)])]), x]),
    "mean": lambda b, x: b.add("Sub", [x, reduced("ReduceMean")(b, x)]),
    "softmax": lambda b, x: b.add("Softmax", [x]),
    "normalization": normalization,
    "max pooling": lambda b, x: b.add("MaxPool", [x], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "average pooling": lambda b, x: b.add("AveragePool", [x], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "transposition": lambda b, x: b.add("Tanh", [transposed(b, x)]),
    "element-wise": lambda b, x: b.add("Sigmoid", [b.add("Mul", [x, b.constant(np.float32(3))])]),
    "resize": lambda b, x: b.add(
        "Resize", [x, None, b.constant(np.array([1, 1, 2, 2], np.float32))], {"mode": "linear"}
    ),
}


def transposed(b: GraphBuilder, x: Value) -> Value:
    return b.add("Transpose", [x], {"perm": [0, 1, 3, 2]})


def graph_of(layers: list[Layer], shape: tuple[int, ...], dtype: str = "float32") -> Graph:
    """Return a graph of consecutive layers."""
    b = GraphBuilder("halves")
    x = b.input("x", dtype, shape)
    for layer in layers:
        x = layer(b, x)
    b.output(x, "y")
    return b.build()


def run_halves(graph: Graph, x: Array) -> Array:
    """Return the result of a session that may use float16 and runs all nodes on the device."""
    session = lite.load(graph, "opencl", precision="float16")
    result = session.run({"x": x})["y"]
    assert all(assignment.device.startswith("opencl") for assignment in session.assignment())
    return result


@pytest.mark.full("opencl")
@pytest.mark.parametrize("name", LAYERS)
def test_results_agree_within_float16_tolerance(name: str) -> None:
    graph = graph_of([LAYERS[name]] * 2, (1, 8, 12, 12))
    x = normal(1, 8, 12, 12)
    (expected,) = evaluate_graph(graph, [x])
    actual = run_halves(graph, x)
    assert actual.dtype == np.float32
    np.testing.assert_allclose(actual, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max())


@pytest.mark.parametrize("name", [name for name in LAYERS if name not in ("element-wise", "transposition")])
def test_tensors_between_layers_are_float16(name: str) -> None:
    graph = graph_of([LAYERS[name]] * 2, (1, 8, 12, 12))
    steps = lower_graph(graph, Options(precision="float16"), first_runtime()).steps
    assert DType.FLOAT16 in {t.dtype for step in steps for t in step.tensors if t.storage.memory is None}


def big(value: float) -> Layer:
    """Return a layer that scales its input; the next layer reads the result as float16."""
    return lambda b, x: b.add("Relu", [b.add("MatMul", [x, b.constant(np.eye(x.shape[-1], dtype=np.float32) * value)])])


#: Computations on 4096 numbers from 0.5 to 1, or 1000 times these, whose intermediate results overflow float16.
ISLANDS: dict[str, list[Layer]] = {
    "mean of many": [big(1000), reduced("ReduceMean")],
    "norm": [big(1000), reduced("ReduceL2")],
    "layer normalization": [big(1000), lambda b, x: b.add("LayerNormalization", [x, b.constant(np.ones(256, "f4"))])],
    "instance normalization": [
        big(1000),
        lambda b, x: b.add("InstanceNormalization", [x, b.constant(np.ones(1, "f4")), b.constant(np.zeros(1, "f4"))]),
    ],
    "softmax": [big(1000), lambda b, x: b.add("Softmax", [x])],
    "log-sum-exp": [big(1000), reduced("ReduceLogSumExp")],
    "global average": [big(1000), lambda b, x: b.add("GlobalAveragePool", [x])],
    "product": [big(1000), lambda b, x: b.add("MatMul", [x, b.constant(alternating(256))])],
    "sum and its root": [big(1000), reduced("ReduceSum"), lambda b, x: b.add("Sqrt", [x])],
    "exponential and its logarithm": [big(15), lambda b, x: b.add("Log", [b.add("Exp", [x])])],
}


def alternating(count: int) -> Array:
    """Return a matrix whose columns have large partial sums and a small sum."""
    column = np.repeat(np.array([1, -1], np.float32), count // 2)[:, None]
    return np.ascontiguousarray(np.broadcast_to(column, (count, 4)))


@pytest.mark.full("opencl")
@pytest.mark.parametrize("name", ISLANDS)
def test_intermediate_results_beyond_float16_are_computed_in_float32(name: str) -> None:
    graph = graph_of(ISLANDS[name], (1, 1, 16, 256))
    x = np.random.default_rng(1).uniform(0.5, 1, (1, 1, 16, 256)).astype(np.float16).astype(np.float32)
    (expected,) = evaluate_graph(graph, [x])
    actual = run_halves(graph, x)
    assert np.isfinite(actual).all()
    scale = 1000 * 256 * ROUNDING if name == "product" else np.abs(expected).max()
    # A softmax of numbers near 1000 turns their rounding errors, at most a quarter, into factors.
    tolerance = {"softmax": np.expm1(0.5), "product": 1.0}.get(name, TOLERANCE)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


def overflowing() -> Graph:
    """Return a graph whose second layer returns numbers beyond float16; the third layer scales them down."""
    b = GraphBuilder("overflow")
    x = b.input("x", "float32", (4, 16))
    for name, factor in (("first", 100.0), ("too large", 1000.0), ("small again", 1e-5)):
        x = b.add("MatMul", [x, b.constant(np.eye(16, dtype=np.float32) * factor)], name=name)
    b.output(b.add("Tanh", [x], name="last"), "y")
    return b.build()


@pytest.mark.full("opencl")
def test_check_finite_names_first_node_that_overflows_float16() -> None:
    load = partial(lite.load, backend="opencl", precision="float16", optimize=False)
    report = check_finite(overflowing(), load, {"x": np.ones((4, 16), np.float32)})
    assert report.first is not None
    assert (report.first.node, report.first.infinite) == ("too large", 64)
    assert report.first.device.startswith("opencl")
    assert report.first.inputs[0].largest == 100


@pytest.mark.full("opencl")
def test_run_validate_uses_the_requested_precision(tmp_path: Path) -> None:
    file = tmp_path / "overflowing.lite"
    lite.convert(overflowing(), file, "host")
    words = [str(file), "--backend", "opencl", "--validate"]
    assert "'too large'" not in CliRunner().invoke(run_command, words).output
    assert "'too large'" in CliRunner().invoke(run_command, [*words, "--precision", "float16"]).output


@pytest.mark.full("opencl")
def test_bisect_finds_the_node_that_must_stay_in_float32(tmp_path: Path) -> None:
    file, given = tmp_path / "overflowing.lite", tmp_path / "x.npy"
    lite.convert(overflowing(), file, "host", verify=False)
    np.save(given, np.ones((4, 16), np.float32))
    words = [str(file), "--by", "precision", "--b", "opencl", "-i", str(given), "--json"]
    found = json.loads(CliRunner().invoke(bisect_command, words).stdout)
    assert found["precision"] == {"too large": "float32", "*": "float16"}
    assert found["verified"]["verdict"] == "good"
    words = [str(file), "--backend", "opencl", "-i", str(given), "--validate", "--precision", "float16"]
    result = CliRunner().invoke(run_command, [*words, "--precision", "too large=float32", "--json"])
    assert json.loads(result.stdout)["finiteness"]["first"] is None


@pytest.mark.full("opencl")
def test_check_finite_finds_nothing_in_float32() -> None:
    load = partial(lite.load, backend="opencl", optimize=False)
    assert check_finite(overflowing(), load, {"x": np.ones((4, 16), np.float32)}).ok


@pytest.mark.full("opencl")
def test_output_that_is_also_read_inside_does_not_change_other_results() -> None:
    b = GraphBuilder("inside")
    x = b.input("x", "float32", (4, 16))
    first = b.add("MatMul", [x, b.constant(np.eye(16, dtype=np.float32))], name="first")
    b.output(first, "inside")
    b.output(b.add("MatMul", [first, b.constant(np.eye(16, dtype=np.float32))], name="second"), "y")
    inputs = {"x": normal(4, 16)}
    results = lite.load(b.build(), "opencl", precision="float16", optimize=False).run(inputs)
    rounded = inputs["x"].astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(results["inside"], rounded)
    np.testing.assert_array_equal(results["y"], rounded)
