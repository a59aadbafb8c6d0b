"""Products of float16, and sessions that allow them; on this processor the instructions that multiply are emulated."""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from levels import Array, machine_params, run_on, runnable_machines
from saving import compiled, restored, run, saved

from lite_core import load
from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Value
from lite_cpu.chains import Chain, Operand
from lite_cpu.dot_panels import DotPanels, Matrices, pack_halves, unit_of_halves
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.gemm import Gemm
from lite_cpu.kernels.half_products import STEPS
from lite_cpu.lowering.compile import lower_graph
from lite_cpu.lowering.narrow_floats import narrow_floats
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine import ARM_V8, X86_64_V3, X86_64_V4, Machine
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.machine_code.objects import assembly_of

F16, F32 = DType.FLOAT16, DType.FLOAT32
ARM = replace(ARM_V8, name="arm-v8+fp16", features=(*ARM_V8.features, "+fullfp16"), half_products=True)
#: A Sapphire Rapids; LLVM orders the instructions for it.
X86 = replace(
    X86_64_V4, name="x86-64-v4+fp16", cpu="sapphirerapids", features=(*X86_64_V4.features, "+avx512fp16"),
    half_products=True,
)  # fmt: skip


def emulated(machine: Machine) -> Machine:
    return replace(machine, name=f"{machine.name} with emulated float16", half_products=True)


# SSE has no instruction that converts float16.
MACHINES = [emulated(machine) for machine in runnable_machines() if machine.half]
every_machine = pytest.mark.parametrize("machine", machine_params(MACHINES))
slow = pytest.mark.full("cpu")  # emulated products take long to compile

#: Half the distance between 1 and the next float16.
ROUNDING = 2.0**-11


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def run_halves(machine: Machine, graph: Graph, **arrays: Array) -> Array:
    return run_on(machine, graph, arrays, precision="float16")["y"].astype(np.float64)


def assert_near(actual: Array, expected: Array, magnitudes: Array, depth: int) -> None:
    """Compare with float64: each element by the worst case, all by what errors of both signs add up to.

    Two factors are rounded, and up to STEPS sums of float16; the error of sums is below the bound of Higham, Accuracy
    and Stability of Numerical Algorithms, section 3.1.
    """
    steps = min(STEPS, depth)
    bound = (2 * ROUNDING + steps * ROUNDING / (1 - steps * ROUNDING)) * magnitudes
    assert np.all(np.abs(actual - expected) <= bound)
    assert np.sqrt(np.mean((actual - expected) ** 2) / np.mean(expected**2)) < 2.0**-9


# **** panels ****


@pytest.mark.parametrize("scale", [1e-9, 1.0, 3e6])
@pytest.mark.parametrize(("runs", "depth"), [(1, 16), (1, 300), (9, 40)])
def test_unit_keeps_sums_of_float16_in_range(runs: int, depth: int, scale: float) -> None:
    b = normal(2, runs, depth, 5) * np.float32(scale)
    parts = np.abs(b / unit_of_halves(b)).reshape(2, runs * depth, 5)
    sums = [parts[:, first : first + 64].sum(1).max() for first in range(runs * depth)]
    assert 0.2 < max(sums) < 1 - 64 * ROUNDING


@pytest.mark.parametrize("numbers", [[0.0, 0.0], [np.inf, 1.0], [np.nan, 1.0]])
def test_weights_without_a_size_have_the_unit_one(numbers: list[float]) -> None:
    assert unit_of_halves(np.array(numbers, np.float32).reshape(1, 1, 2, 1)) == 1


def test_panels_are_those_of_other_products_divided_by_the_unit() -> None:
    b = normal(1, 1, 10, 20)
    packed = pack_halves(b, 4.0, 8, 2).astype(np.float64)
    first, second = packed[0, : 10 * 16].reshape(10, 16), packed[0, 10 * 16 :].reshape(10, 8)
    np.testing.assert_allclose(first, b[0, 0, :, :16] / 4, rtol=ROUNDING)
    np.testing.assert_allclose(second[:, :4], b[0, 0, :, 16:] / 4, rtol=ROUNDING)
    assert not second[:, 4:].any()


def test_panels_are_made_again_from_their_description() -> None:
    w = normal(20, 10)
    panels = DotPanels(Matrices((1, 1, 20, 10), (0, 1, 3, 2), (1, 1, 10, 20), ()), F16, 1, 8, 3)
    b = w.T[None, None]
    np.testing.assert_array_equal(panels.pack(w), pack_halves(b, unit_of_halves(b), 8, 3))


# **** products ****


@every_machine
@pytest.mark.parametrize("sizes", [(3, 16, 2), (4, 17, 24), (20, 64, 33), (9, 65, 70), (33, 300, 7)])
def test_matmul(machine: Machine, sizes: tuple[int, int, int]) -> None:
    rows, depth, columns = sizes
    a, w = normal(rows, depth), normal(depth, columns, seed=1)
    b = GraphBuilder("product")
    b.output(b.add("MatMul", [b.input("x", F32, a.shape), b.constant(w)]), "y")
    wide_a, wide_w = a.astype(np.float64), w.astype(np.float64)
    assert_near(run_halves(machine, b.build(), x=a), wide_a @ wide_w, np.abs(wide_a) @ np.abs(wide_w), depth)


@every_machine
def test_stacks_of_matrices(machine: Machine) -> None:
    a, w = normal(2, 3, 9, 40), normal(3, 40, 20, seed=1)
    b = GraphBuilder("product")
    b.output(b.add("MatMul", [b.input("x", F32, a.shape), b.constant(w)]), "y")
    wide_a, wide_w = a.astype(np.float64), w.astype(np.float64)
    assert_near(run_halves(machine, b.build(), x=a), wide_a @ wide_w, np.abs(wide_a) @ np.abs(wide_w), 40)


@every_machine
def test_gemm(machine: Machine) -> None:
    a, w, c = normal(38, 6), normal(20, 38, seed=1), normal(20, seed=2)
    b = GraphBuilder("gemm")
    inputs = [b.input("x", F32, a.shape), b.constant(w), b.constant(c)]
    b.output(b.add("Gemm", inputs, {"alpha": 0.5, "beta": 2.0, "transA": 1, "transB": 1}), "y")
    wide_a, wide_w, wide_c = (x.astype(np.float64) for x in (a, w, c))
    expected, magnitudes = 0.5 * wide_a.T @ wide_w.T + 2 * wide_c, np.abs(wide_a.T) @ np.abs(wide_w.T)
    assert_near(run_halves(machine, b.build(), x=a), expected, magnitudes, 38)


def convolution(x: Array, w: Array, **attributes: Any) -> Graph:
    b = GraphBuilder("convolution")
    inputs = [b.input("x", F32, x.shape), b.constant(w), b.constant(normal(w.shape[0], seed=2))]
    b.output(b.add("Conv", inputs, attributes), "y")
    return b.build()


@every_machine
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("channels", "filters", "window", "stride", "pads", "dilation", "groups"),
    [
        (24, 20, 1, 1, 0, 1, 1),
        (24, 50, 1, 2, 0, 1, 1),
        (32, 26, 1, 1, 0, 1, 2),
        pytest.param(3, 16, 7, 2, 3, 1, 1, marks=slow),
        pytest.param(4, 9, 3, 2, 1, 1, 1, marks=slow),
        pytest.param(6, 33, 3, 1, 2, 2, 1, marks=slow),
        pytest.param(16, 32, 5, 1, 1, 1, 4, marks=slow),
        pytest.param(64, 48, 3, 2, 1, 1, 1, marks=slow),
    ],
)  # fmt: skip
def test_convolution(
    machine: Machine, channels: int, filters: int, window: int, stride: int, pads: int, dilation: int, groups: int,
    threads: int,
) -> None:  # fmt: skip
    x, w = normal(2, channels, 13, 11), normal(filters, channels // groups, window, window, seed=1)
    attributes = {
        "strides": (stride,) * 2, "pads": (pads,) * 4, "dilations": (dilation,) * 2, "group": groups,
    }  # fmt: skip
    graph = convolution(x, w, **attributes)
    (step,) = [s for s in lower(machine, graph).steps if s.label in ("gemm", "direct")]
    assert getattr(step.kernel, "halves", False)
    expected = load(graph, backend="host").run(x=x)["y"].astype(np.float64)
    magnitudes = load(convolution(x, np.abs(w), **attributes), backend="host").run(x=np.abs(x))["y"]
    bias = np.abs(normal(filters, seed=2)) - normal(filters, seed=2)
    actual = run_on(machine, graph, {"x": x}, precision="float16", threads=threads)["y"]
    assert_near(actual.astype(np.float64), expected, magnitudes + bias[:, None, None], prod(w.shape[1:]))


@pytest.mark.parametrize("size", [1e-7, 1.0, 1e5])
def test_weights_of_any_size_neither_vanish_nor_overflow(size: float) -> None:
    a, w = normal(5, 200), normal(200, 30, seed=1) * np.float32(size)
    b = GraphBuilder("product")
    b.output(b.add("MatMul", [b.input("x", F32, a.shape), b.constant(w)]), "y")
    wide_a, wide_w = a.astype(np.float64), w.astype(np.float64)
    assert_near(run_halves(MACHINES[-1], b.build(), x=a), wide_a @ wide_w, np.abs(wide_a) @ np.abs(wide_w), 200)


def test_sums_of_the_largest_factors_do_not_overflow() -> None:
    a, w = np.full((3, 128), 65504, np.float32), np.ones((128, 20), np.float32)
    a[:, 64:] *= -1
    w[:, 10:] = -1
    b = GraphBuilder("product")
    b.output(b.add("MatMul", [b.input("x", F32, a.shape), b.constant(w)]), "y")
    np.testing.assert_allclose(run_halves(MACHINES[-1], b.build(), x=a), 0, atol=64 * ROUNDING * 128 * 65504)


@pytest.mark.parametrize(
    ("machine", "instruction"),
    [pytest.param(X86, r"vfmadd\w+ph\s", id="x86"), pytest.param(ARM, r"fmla\t.*\.h\[\d\]", id="arm", marks=slow)],
)
def test_products_are_one_instruction(machine: Machine, instruction: str) -> None:
    k = Emitter(machine)
    kernel = Gemm(Chain(Operand(F16)), F16, halves=True)
    kernel.emit(k)
    code = assembly_of(k.text(), machine, optimize=kernel.optimize)
    assert re.search(instruction, code)


@slow
def test_programs_are_restored_from_files() -> None:
    graph, arrays, machine = network(), {"x": normal(1, 3, 32, 32)}, MACHINES[-1]
    made = compiled(machine, graph, precision="float16")
    again = restored(machine, saved(made), graph, precision="float16")
    np.testing.assert_array_equal(run(again, graph, arrays)[0], run(made, graph, arrays)[0])


# **** sessions of float32 models that allow float16 ****


def network() -> Graph:
    """Return convolutions with a residual addition, a depthwise one and pooling between them, and a last product."""
    b = GraphBuilder("network")

    def layer(x: Value, channels: int, filters: int, window: int, seed: int, **attributes: Any) -> Value:
        depth = channels // attributes.get("group", 1) * window * window
        w = normal(filters, depth // window // window, window, window, seed=seed) * np.float32(np.sqrt(2 / depth))
        given = {"pads": (window // 2,) * 4, **attributes}
        return b.add("Conv", [x, b.constant(w), b.constant(normal(filters, seed=seed) / 10)], given)

    x = b.add("Relu", [layer(b.input("x", F32, (1, 3, 32, 32)), 3, 24, 3, 1, strides=(2, 2))])
    y = b.add("Relu", [b.add("Add", [layer(x, 24, 24, 1, 2), x])])
    y = b.add("HardSwish", [layer(y, 24, 24, 5, 3, group=24)])
    y = b.add("MaxPool", [y], {"kernel_shape": (2, 2), "strides": (2, 2)})
    y = b.add("Clip", [layer(y, 24, 40, 1, 4), b.constant(np.float32(0)), b.constant(np.float32(6))])
    y = b.add("GlobalAveragePool", [layer(y, 40, 31, 1, 5)])
    b.output(b.add("Gemm", [b.add("Flatten", [y]), b.constant(normal(31, 7))]), "y")
    return b.build()


def lower(machine: Machine, graph: Graph, precision: str = "float16") -> Any:
    return lower_graph(graph, Options(precision=precision), KernelLibrary(machine), WeightCache())


@slow
@every_machine
def test_network_computes_in_float16_if_the_session_allows_it(machine: Machine) -> None:
    graph, x = network(), normal(1, 3, 32, 32)
    expected = run_on(machine, graph, {"x": x})["y"]
    actual = run_on(machine, graph, {"x": x}, precision="float16")["y"]
    assert actual.dtype == np.float32
    # Each of five layers adds some 2^-11; without float16 there are no such errors.
    assert 2.0**-16 < np.sqrt(np.mean((actual - expected) ** 2) / np.mean(expected**2)) < 2.0**-9
    products = [step for step in lower(machine, graph).steps if step.label in ("gemm", "direct")]
    assert [step.kernel.halves for step in products] == [True] * 4 + [False]
    assert [step.kernel.epilogue.output for step in products] == [F16, F16, F16, F32, F32]


def test_session_says_what_it_computes_in() -> None:
    text = compiled(MACHINES[-1], network(), precision="float16").computes
    assert "4 of 6 products in float16 by AVX512-FP16 (not run on hardware yet)" in text


def types_of(graph: Graph, machine: Machine = MACHINES[-1]) -> dict[str, DType]:
    narrow = narrow_floats(graph, machine, F16)
    return {node.name: node.outputs[0].dtype for node in narrow.nodes if node.outputs[0] is not None}


def test_values_that_are_stored_between_products_become_float16() -> None:
    b = GraphBuilder("ends")
    x = b.add("Mul", [b.input("x", F32, (4, 16)), b.constant(np.float32(2))], name="before")
    x = b.add("MatMul", [x, b.constant(normal(16, 16))], name="fused")
    x = b.add("Sigmoid", [x], name="between")
    x = b.add("MatMul", [x, b.constant(normal(16, 16))], name="last")
    b.output(b.add("Softmax", [x], name="after"), "y")
    types = types_of(b.build())
    expected = {"before": F32, "fused": F32, "between": F16, "last": F32, "after": F32}
    assert {name: types[name] for name in expected} == expected


@pytest.mark.parametrize("op", ["Exp", "ReduceSum"])
def test_results_that_may_be_far_larger_stay_float32(op: str) -> None:
    b = GraphBuilder("large")
    x = b.add("MatMul", [b.input("x", F32, (4, 16)), b.constant(normal(16, 16))])
    x = b.add(op, [x, b.constant(np.array([0]))] if op == "ReduceSum" else [x], name="large")
    b.output(b.add("MatMul", [b.add("Expand", [x, b.constant(np.array([4, 16]))]), b.constant(normal(16, 16))]), "y")
    assert types_of(b.build())["large"] is F32


def test_numbers_beyond_the_range_are_clipped_where_they_are_stored() -> None:
    b = GraphBuilder("large")
    x = b.add("MatMul", [b.input("x", F32, (4, 16)), b.constant(np.full((16, 16), 1e4, np.float32))])
    b.output(b.add("MatMul", [x, b.constant(np.eye(16, dtype=np.float32))]), "y")
    actual = run_halves(MACHINES[-1], b.build(), x=np.full((4, 16), 10, np.float32))
    np.testing.assert_allclose(actual, 65504, rtol=2 * ROUNDING)


def test_products_that_are_no_faster_stay_float32() -> None:
    b = GraphBuilder("others")
    x = b.input("x", F32, (4, 8))
    x = b.add("MatMul", [x, b.constant(normal(8, 32))], name="shallow")
    x = b.add("MatMul", [x, b.input("w", F32, (32, 32))], name="computed")
    b.output(b.add("MatMul", [x, b.constant(normal(32, 1))], name="one column"), "y")
    graph = b.build()
    assert narrow_floats(graph, MACHINES[-1], F16) is graph
    images = convolution(normal(1, 64, 28, 28), normal(64, 64, 3, 3))
    assert narrow_floats(images, emulated(X86_64_V3), F16) is images, "Winograd's algorithm is faster"
    nothing = convolution(normal(0, 64, 28, 28), normal(64, 64, 3, 3), pads=(1,) * 4)
    assert narrow_floats(nothing, MACHINES[-1], F16) is nothing


def test_models_of_float16_compute_in_float32_unless_the_session_allows_float16() -> None:
    b = GraphBuilder("half")
    x, w = normal(9, 40).astype(np.float16), normal(40, 20, seed=1).astype(np.float16)
    b.output(b.add("MatMul", [b.input("x", F16, x.shape), b.constant(w, dtype=F16)]), "y")
    graph = b.build()
    steps = {p: [s for s in lower(MACHINES[-1], graph, p).steps if s.label == "gemm"] for p in ("float32", "float16")}
    assert [step.kernel.halves for step in (*steps["float32"], *steps["float16"])] == [False, True]
