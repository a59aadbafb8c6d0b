"""Products of 8-bit integers and quantized operators, on each level of this processor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from levels import Array, backend_for, machine_params, run_on, runnable_machines
from llvmlite import binding
from tile_machines import emulated_machines

from lite_core import load
from lite_core.backend import Device, No, Options
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Value
from lite_cpu.backend import CpuBackend
from lite_cpu.chains import Chain, Operand
from lite_cpu.dot_panels import pack_dots
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.conv_int8 import ConvInt8
from lite_cpu.kernels.depthwise_int8 import DepthwiseInt8
from lite_cpu.kernels.gemm_int8 import GemmInt8
from lite_cpu.kernels.int8_tiles import LeftSide
from lite_cpu.kernels.integer_dots import INT16_PAIRS, byte_form
from lite_cpu.kernels.packing_int8 import PackInt8
from lite_cpu.lowering.compile import simplified
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine import ARM_V8, X86_64_V3, X86_64_V4, Machine
from lite_cpu.machine_code.objects import compile_ir


def machines() -> list[Machine]:
    """Return the runnable levels, one with emulated matrix tiles, and the highest with VNNI if the processor has it."""
    found = [*emulated_machines(), *runnable_machines()]
    if binding.get_host_cpu_features().get("avx512vnni"):
        features = (*X86_64_V4.features, "+avx512vnni")
        found.append(replace(X86_64_V4, name="x86-64-v4+vnni", features=features, dot_product=True))
    return found


every_machine = pytest.mark.parametrize("machine", machine_params(machines()))


def random_integers(random: np.random.Generator, dtype: str, *shape: int) -> Array:
    """Return integers from the whole range of a type, a fifth of them the lowest one."""
    info = np.iinfo(dtype)
    numbers = random.integers(info.min, info.max, shape, endpoint=True).astype(dtype)
    return np.where(random.random(shape) < 0.2, np.asarray(info.min, dtype), numbers)


def check(machine: Machine, graph: Graph, seed: int = 0, **options: Any) -> None:
    """Assert that results are equal to those of the reference."""
    random = np.random.default_rng(seed)
    inputs = {v.name: random_integers(random, str(v.dtype), *v.shape) for v in graph.inputs}
    expected = load(graph, backend="host").run(inputs)
    actual = run_on(machine, graph, inputs, **options)
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array)


# **** products ****


def matmul(
    left: tuple[int, ...], right: tuple[int, ...], types: tuple[str, str], zero: Any, w_zero: Any, constant: bool = True
) -> Graph:
    b = GraphBuilder("matmul")
    x = b.input("x", types[0], left)
    w = (
        b.constant(random_integers(np.random.default_rng(1), types[1], *right))
        if constant
        else b.input("w", types[1], right)
    )
    points = [b.constant(np.array(z, t)) for z, t in ((zero, types[0]), (w_zero, types[1]))]
    b.output(b.add("MatMulInteger", [x, w, *points]), "y")
    return b.build()


@every_machine
@pytest.mark.parametrize(
    ("types", "w_zero"), [("uint8 int8", 0), ("uint8 int8", 9), ("int8 int8", 9), ("uint8 uint8", 9), ("int8 uint8", 9)]
)
def test_matmul_of_every_pair_of_types(machine: Machine, types: str, w_zero: int) -> None:
    left, right = types.split()
    check(machine, matmul((16, 37), (37, 45), (left, right), 5, w_zero))
    check(machine, matmul((9, 8), (8, 33), (left, right), 5, w_zero, constant=False))


@every_machine
def test_weights_with_zero_point_128_are_multiplied_as_bytes(machine: Machine) -> None:
    check(machine, matmul((5, 64), (64, 70), ("uint8", "uint8"), 3, 128))


@every_machine
def test_zero_points_of_rows_and_columns(machine: Machine) -> None:
    check(machine, matmul((5, 7), (7, 3), ("uint8", "uint8"), [1, 2, 3, 4, 5], [7, 8, 9]))


@every_machine
@pytest.mark.parametrize(
    ("left", "right"),
    [((2, 3, 5, 7), (7, 3)), ((2, 1, 3, 4), (5, 4, 2)), ((7,), (2, 7, 4)), ((4, 7), (7,))],
)
@pytest.mark.parametrize("constant", [True, False])
def test_stacks_and_vectors(machine: Machine, left: tuple[int, ...], right: tuple[int, ...], constant: bool) -> None:
    check(machine, matmul(left, right, ("int8", "int8"), -3, 0, constant))


@every_machine
def test_long_sums_of_extremes_do_not_saturate(machine: Machine) -> None:
    b = GraphBuilder("extremes")
    x = b.input("x", "uint8", (3, 4099))
    b.output(b.add("MatMulInteger", [x, b.constant(np.full((4099, 17), -128, np.int8))]), "y")
    inputs = {"x": np.full((3, 4099), 255, np.uint8)}
    actual = run_on(machine, b.build(), inputs)["y"]
    np.testing.assert_array_equal(actual, np.full((3, 17), -128 * 255 * 4099))


@every_machine
@pytest.mark.parametrize("types", ["uint8 int8", "int8 int8"])
def test_weights_of_seven_bits_are_multiplied_exactly(machine: Machine, types: str) -> None:
    """Sums of two products fit 16 bits, which x86 processors without dot products of bytes use."""
    left, right = types.split()
    b, random = GraphBuilder("seven"), np.random.default_rng(2)
    weights = np.where(random.random((70, 21)) < 0.7, random.choice([-64, 64], (1, 21)), 3).astype(right)
    x = b.input("x", left, (9, 70))
    b.output(b.add("MatMulInteger", [x, b.constant(weights), b.constant(np.array(7, left))]), "y")
    check(machine, b.build())
    largest = {"x": np.full((9, 70), np.iinfo(left).max, left)}
    expected = load(b.build(), backend="host").run(largest)["y"]
    np.testing.assert_array_equal(run_on(machine, b.build(), largest)["y"], expected)


def conv(
    x: tuple[int, ...],
    w: tuple[int, ...],
    types: str = "uint8 int8",
    zeros: tuple[Any, Any] = (5, 0),
    constant: bool = True,
    **attributes: Any,
) -> Graph:
    b = GraphBuilder("conv")
    left, right = types.split()
    weights = b.constant(random_integers(np.random.default_rng(1), right, *w)) if constant else b.input("w", right, w)
    points = [b.constant(np.array(z, t)) for z, t in zip(zeros, (left, right))]
    b.output(b.add("ConvInteger", [b.input("x", left, x), weights, *points], attributes), "y")
    return b.build()


@every_machine
@pytest.mark.parametrize(
    "graph",
    [
        conv((2, 8, 7, 9), (40, 8, 1, 1)),
        conv((1, 5, 7, 9), (12, 5, 1, 1), strides=(2, 3)),
        conv((1, 5, 4, 6), (6, 5, 1, 1), pads=(1, 1, 1, 1)),
        conv((1, 3, 16, 17), (20, 3, 3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
        conv((2, 6, 9, 11), (10, 3, 3, 3), group=2, pads=(1, 1, 1, 1)),
        conv((1, 4, 9, 7), (4, 4, 2, 3), strides=(1, 2), dilations=(3, 1), pads=(0, 1, 2, 0)),
        conv((2, 33, 9, 8), (33, 1, 3, 3), group=33, pads=(1, 1, 1, 1)),
        conv((1, 7, 8, 9), (7, 1, 5, 3), group=7, strides=(2, 2), dilations=(1, 2)),
        conv((2, 35, 7, 5), (35, 1, 5, 5), "int8 int8", (-9, 3), group=35, strides=(2, 2), pads=(2, 2, 2, 2)),
        conv((1, 16, 6, 3), (16, 1, 3, 2), group=16, dilations=(2, 1), pads=(1, 0, 3, 1)),
        conv((1, 17, 9, 11), (17, 1, 4, 3), "uint8 uint8", (250, 7), group=17, strides=(1, 2), pads=(3, 2, 3, 2)),
        conv((1, 3, 6, 6), (6, 1, 3, 3), group=3),
        conv((1, 3, 5, 5), (5, 3, 3, 3), "int8 uint8", (-7, [1, 2, 3, 4, 5]), pads=(1, 1, 1, 1)),
        conv((2, 4, 5, 5), (6, 2, 3, 3), "uint8 uint8", (7, [1, 2, 3, 4, 5, 6]), constant=False, group=2),
    ],
    ids=lambda graph: str(graph.nodes[0].inputs[1].type),
)
def test_convolutions(machine: Machine, graph: Graph) -> None:
    check(machine, graph)


@every_machine
def test_two_threads_share_the_work(machine: Machine) -> None:
    check(machine, conv((1, 16, 30, 30), (64, 16, 3, 3), pads=(1, 1, 1, 1)), threads=2)
    check(machine, matmul((200, 64), (64, 300), ("uint8", "int8"), 5, 0), threads=2)


def test_packing_pads_with_zeros() -> None:
    b = np.arange(1, 11).reshape(1, 1, 5, 2)
    packed = pack_dots(b, np.zeros((), b.dtype), DType.INT16, group=2, lanes=4, vectors=2)
    expected = np.zeros((3, 4, 2), np.int16)
    expected[:, :2] = [[[1, 3], [2, 4]], [[5, 7], [6, 8]], [[9, 0], [10, 0]]]
    np.testing.assert_array_equal(packed, expected.reshape(1, -1))


def test_every_dot_product_machine_has_a_byte_form() -> None:
    arm = byte_form(replace(ARM_V8, dot_product=True))
    assert arm is not None
    assert str(arm.left) == "int8"
    assert byte_form(ARM_V8) is None


@pytest.mark.parametrize("dot_product", [False, True])
def test_every_kernel_compiles_for_arm(dot_product: bool) -> None:
    features = (*ARM_V8.features, "+dotprod") if dot_product else ARM_V8.features
    machine = replace(ARM_V8, features=features, dot_product=dot_product)
    form = byte_form(machine) or INT16_PAIRS
    sums = Chain(Operand(DType.INT32))
    left = LeftSide(DType.UINT8, form)
    for kernel in (GemmInt8(left, sums, in_place=False), ConvInt8(left, sums), DepthwiseInt8(DType.UINT8, sums),
                   PackInt8(DType.UINT8, form)):  # fmt: skip
        k = Emitter(machine)
        kernel.emit(k)
        assert kernel.symbol in compile_ir(k.text(), machine).entries


# **** models made by quantization tools ****


class Quantized:
    """A graph with dequantized tensors under construction; scales are powers of two, so that results are exact."""

    def __init__(self) -> None:
        self.b = GraphBuilder("quantized")
        self._random = np.random.default_rng(2)

    def input(self, *shape: int, zero: int = 20) -> Value:
        return self.dequantize(self.b.input("x", "uint8", shape), 0.5, zero, "uint8")

    def dequantize(self, value: Value, scale: Any, zero: Any, dtype: str, axis: int = 1) -> Value:
        parameters = [self.b.constant(np.array(scale, np.float32)), self.b.constant(np.array(zero, dtype))]
        return self.b.add("DequantizeLinear", [value, *parameters], {"axis": axis})

    def weights(self, *shape: int, channels: int, axis: int) -> Value:
        scales = [0.25, 0.125, 0.5, 0.0625] * channels
        return self.dequantize(
            self.b.constant(random_integers(self._random, "int8", *shape)),
            scales[:channels],
            [0] * channels,
            "int8",
            axis,
        )

    def bias(self, count: int) -> Value:
        numbers = self.b.constant(self._random.integers(-99, 99, count).astype(np.int32))
        return self.b.add("DequantizeLinear", [numbers, self.b.constant(np.float32(0.125))])

    def output(self, value: Value, scale: float = 64.0) -> Graph:
        parameters = [self.b.constant(np.float32(scale)), self.b.constant(np.uint8(100))]
        self.b.output(self.b.add("QuantizeLinear", [value, *parameters]), "y")
        return self.b.build()


def quantized_conv() -> Graph:
    q = Quantized()
    w = q.weights(12, 6, 3, 3, channels=12, axis=0)
    y = q.b.add("Conv", [q.input(2, 6, 7, 8), w, q.bias(12)], {"pads": (1, 1, 1, 1)})
    return q.output(q.b.add("Relu", [y]))


def quantized_residual() -> Graph:
    q = Quantized()
    x = q.input(1, 8, 5, 6)
    y = q.b.add("Conv", [x, q.weights(8, 8, 1, 1, channels=8, axis=0)])
    return q.output(q.b.add("Add", [y, x]))


def residual_of_two_convolutions() -> Graph:
    """Both operands of the addition are quantized, and dequantized, before it."""
    q = Quantized()
    x, terms = q.input(1, 8, 5, 6), []
    for scale in (0.5, 2.0):
        y = q.b.add("Conv", [x, q.weights(8, 8, 1, 1, channels=8, axis=0)])
        parameters = [q.b.constant(np.float32(scale)), q.b.constant(np.uint8(90))]
        small = q.b.add("QuantizeLinear", [y, *parameters])
        terms.append(q.b.add("DequantizeLinear", [small, *parameters]))
    return q.output(q.b.add("Relu", [q.b.add("Add", terms)]))


def scaled_and_limited_convolution() -> Graph:
    """The factors and limits that normalization and activation leave behind a convolution."""
    q = Quantized()
    x, random = q.input(1, 8, 5, 6), np.random.default_rng(3)
    y = q.b.add("Conv", [x, q.weights(8, 8, 1, 1, channels=8, axis=0)])
    factors = q.b.constant(np.float32(2.0) ** random.integers(-2, 2, (1, 8, 1, 1)).astype(np.float32))
    terms = q.b.constant(random.integers(-64, 64, (8, 1, 1)).astype(np.float32))
    y = q.b.add("Add", [q.b.add("Mul", [y, factors]), terms])
    y = q.b.add("Clip", [y, q.b.constant(np.float32(-700)), q.b.constant(np.float32(900))])
    return q.output(q.b.add("Max", [y, q.b.constant(np.float32(-650))]))


def quantized_pool() -> Graph:
    """The same scale before and after."""
    q = Quantized()
    x = q.dequantize(q.b.input("x", "uint8", (1, 5, 7, 6)), 0.25, 100, "uint8")
    attributes = {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}
    return q.output(q.b.add("MaxPool", [x], attributes), 0.25)


def quantized_matmul() -> Graph:
    q = Quantized()
    return q.output(q.b.add("MatMul", [q.input(2, 5, 9), q.weights(9, 20, channels=20, axis=1)]))


def quantized_gemm() -> Graph:
    q = Quantized()
    w = q.weights(20, 9, channels=20, axis=0)
    return q.output(q.b.add("Gemm", [q.input(5, 9), w, q.bias(20)], {"transB": 1}))


@every_machine
@pytest.mark.parametrize(
    "make",
    [
        quantized_conv,
        quantized_residual,
        residual_of_two_convolutions,
        scaled_and_limited_convolution,
        quantized_matmul,
        quantized_gemm,
    ],
)
def test_dequantized_operands_are_multiplied_as_integers(machine: Machine, make: Any) -> None:
    graph = make()
    ops = [node.op for node in simplified(graph, WeightCache(), X86_64_V3, Options()).nodes]
    assert any(op in ("ConvInteger", "MatMulInteger") for op in ops)
    assert not any(op in ("Conv", "MatMul", "Gemm", "Mul", "Clip") for op in ops)
    check(machine, graph)


@every_machine
def test_maximum_of_dequantized_bytes_is_that_of_the_bytes(machine: Machine) -> None:
    graph = quantized_pool()
    ops = [node.op for node in simplified(graph, WeightCache(), X86_64_V3, Options()).nodes]
    assert not {"QuantizeLinear", "DequantizeLinear"} & set(ops)
    check(machine, graph)


@every_machine
def test_results_of_arbitrary_scales_differ_by_at_most_one_step(machine: Machine) -> None:
    """The kernel rounds one factor, the model several operations: results near a half may be rounded differently."""
    random, q = np.random.default_rng(5), Quantized()
    x = q.dequantize(q.b.input("x", "int8", (1, 6, 12, 12)), 0.037, 0, "int8")
    scales = random.uniform(0.001, 0.02, 24)
    w = q.dequantize(q.b.constant(random_integers(random, "int8", 24, 6, 3, 3)), scales, [0] * 24, "int8", axis=0)
    bias = q.b.constant(random.normal(size=(1, 24, 1, 1)).astype(np.float32))
    y = q.b.add("Relu", [q.b.add("Add", [q.b.add("Conv", [x, w], {"pads": (1, 1, 1, 1)}), bias])])
    graph = q.output(y, 0.0913)
    inputs = {"x": random_integers(random, "int8", 1, 6, 12, 12)}
    expected = load(graph, backend="host").run(inputs)["y"].astype(np.int32)
    difference = np.abs(run_on(machine, graph, inputs)["y"].astype(np.int32) - expected)
    assert difference.max() <= 1
    assert np.count_nonzero(difference) < 0.01 * difference.size
    assert np.unique(expected).size > 50


@every_machine
def test_scales_of_input_channels_keep_the_convolution_in_float(machine: Machine) -> None:
    """A scale for each input channel cannot be factored out of the sums."""
    q = Quantized()
    x = q.dequantize(q.b.input("x", "uint8", (1, 4, 5, 5)), [0.5, 0.25, 1, 2], [1, 2, 3, 4], "uint8")
    graph = q.output(q.b.add("Conv", [x, q.weights(8, 4, 1, 1, channels=8, axis=0)]))
    assert "Conv" in [node.op for node in simplified(graph, WeightCache(), X86_64_V3, Options()).nodes]
    check(machine, graph)


@every_machine
def test_simplification_does_not_change_the_model(machine: Machine) -> None:
    graph = quantized_conv()
    before = str(graph)
    simplified(graph, WeightCache(), X86_64_V3, Options())
    assert str(graph) == before


# **** scales ****


@every_machine
@pytest.mark.parametrize(
    ("shape", "parameter", "attributes"),
    [
        ((3, 5), (), {}),
        ((2, 3, 4, 5), (3,), {}),
        ((2, 7), (2, 3), {"axis": 1, "block_size": 3}),
    ],
)
def test_quantize_and_dequantize(
    machine: Machine, shape: tuple[int, ...], parameter: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    random = np.random.default_rng(3)
    b = GraphBuilder("scales")
    scale = b.constant((2.0 ** random.integers(-3, 3, parameter)).astype(np.float32))
    zero = b.constant(random.integers(0, 50, parameter).astype(np.uint8))
    x = b.input("x", "float32", shape)
    y = b.add("QuantizeLinear", [x, scale, zero], attributes)
    b.output(y, "y")
    b.output(b.add("DequantizeLinear", [y, scale, zero], attributes), "z")
    graph = b.build()
    inputs = {"x": (random.integers(-999, 999, shape) / 4).astype(np.float32)}
    if shape == (3, 5):
        inputs["x"][0] = [np.nan, np.inf, -np.inf, 1e30, -0.0]
    expected = load(graph, backend="host").run(inputs)
    actual = run_on(machine, graph, inputs)
    for name in ("y", "z"):
        np.testing.assert_array_equal(actual[name], expected[name])


@every_machine
@pytest.mark.parametrize("factor", [0.0, 1.0])
def test_dynamic_quantization(machine: Machine, factor: float) -> None:
    b = GraphBuilder("dynamic")
    x = b.input("x", "float32", (5, 33))
    y, scale, zero = b.add_node("DynamicQuantizeLinear", [x], {}, outputs=3)
    sums = b.add("MatMulInteger", [y, b.constant(random_integers(np.random.default_rng(1), "int8", 33, 20)), zero])
    for name, value in (("y", y), ("scale", scale), ("zero", zero), ("sums", sums)):
        b.output(value, name)
    graph = b.build()
    inputs = {"x": (factor * np.random.default_rng(4).normal(size=(5, 33))).astype(np.float32)}
    expected = load(graph, backend="host").run(inputs)
    actual = run_on(machine, graph, inputs)
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array)


# **** refusals ****


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (conv((1, 2, 3, 4, 5), (3, 2, 1, 1, 1)), "one or two spatial dimensions"),
        (matmul((4, 3), (3,), ("uint8", "uint8"), 0, [1, 2, 3]), "a vector on the right"),
    ],
)
def test_unsupported_nodes_are_refused_with_a_reason(graph: Graph, reason: str) -> None:
    backend: CpuBackend = backend_for(X86_64_V4)
    answer = backend.supports(graph.nodes[0], Device("level"))
    assert isinstance(answer, No)
    assert reason in answer.reason
