"""Kernels that read and write 16-bit floats themselves: no conversions around them, float32 inside, results rounded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from graph_agreement import SeededGraph
from levels import Array, machine_params, run_on, runnable_machines
from llvmlite import binding
from operator_case import run_kernel
from test_attention import attention
from test_recurrent import layer

from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Value
from lite_core.ops.evaluate import evaluate_graph
from lite_cpu.emitter import Emitter, Val
from lite_cpu.lowering.compile import lower_graph, simplified
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine import ARM_V8, X86_64_V3, X86_64_V4, Machine
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.machine_code.objects import assembly_of, compile_ir, load

Build = Callable[[SeededGraph], tuple[Value, ...]]

F16, BF16, F32 = DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32

#: Half the distance between 1 and the next number.
ROUNDING = {F16: 2.0**-11, BF16: 2.0**-8}

#: Processors that round to bfloat16 by one instruction.
WITH_BFLOAT16 = replace(
    X86_64_V4, name="x86-64-v4+bf16", features=(*X86_64_V4.features, "+avx512bf16"), bf16_dot=True
)  # fmt: skip
ARM_WITH_BFLOAT16 = replace(ARM_V8, name="arm-v8+bf16", features=(*ARM_V8.features, "+bf16"), bf16_dot=True)


def machines() -> list[Machine]:
    """Return the machines that run here, the best last."""
    return [*runnable_machines(), *([WITH_BFLOAT16] if binding.get_host_cpu_features().get("avx512bf16") else [])]


every_machine = pytest.mark.parametrize("machine", machine_params(machines()))
halves = pytest.mark.parametrize("dtype", [pytest.param(F16, marks=pytest.mark.full("cpu")), BF16], ids=str)


def built(build: Build, dtype: DType) -> tuple[Graph, dict[str, Array]]:
    g = SeededGraph(str(dtype))
    return g.built(*build(g)), g.inputs


def in_float64(graph: Graph) -> Graph:
    """Return the graph with float64 instead of 16-bit floats, with the same constants."""
    wide = graph.copy()
    for value in wide.defined():
        if value.dtype.is_half:
            value.type = value.type.with_dtype(DType.FLOAT64)
    wide.constants = {v: a.astype(v.dtype.numpy) for v, a in wide.constants.items()}
    return wide


def check(machine: Machine, build: Build, dtype: DType, *, half_steps: float, threads: int = 1) -> None:
    """Assert that results differ from the reference by some half steps of the largest expected number."""
    _skip_unless_converted(machine, dtype)
    graph, inputs = built(build, dtype)
    wide = in_float64(graph)
    expected = evaluate_graph(wide, [inputs[v.name].astype(v.dtype.numpy) for v in wide.inputs])
    actual = run_on(machine, graph, inputs, threads=threads)
    for number, array in enumerate(expected):
        found = actual[f"y{number}"]
        assert found.dtype == dtype.numpy
        atol = half_steps * ROUNDING[dtype] * np.abs(array).max(initial=0)
        np.testing.assert_allclose(found.astype(np.float64), array, rtol=0, atol=atol)


def _skip_unless_converted(machine: Machine, dtype: DType) -> None:
    if dtype is F16 and not machine.half:
        pytest.skip("the processor has no instruction that converts float16, and refuses it")


# **** graphs of one operator ****


def convolution(channels: int, size: tuple[int, ...], kernel: tuple[int, ...], stride: int = 1) -> Build:
    """Return a builder of a depthwise convolution with a bias, an addition and Relu; channels are contiguous."""

    def build(g: SeededGraph) -> tuple[Value, ...]:
        rank = len(size)
        x = g.add("Transpose", g.input(1, *size, channels), perm=(0, rank + 1, *range(1, rank + 1)))
        pads = (*(k // 2 for k in kernel),) * 2
        attributes: dict[str, Any] = {"group": channels, "pads": pads, "strides": (stride,) * rank}
        y = g.add("Conv", x, g.constant(channels, 1, *kernel), g.constant(channels), **attributes)
        y = g.add("Relu", g.add("Add", y, x)) if stride == 1 else y
        return (g.add("Transpose", y, perm=(0, *range(2, rank + 2), 1)),)

    return build


def normalization(op: str, rows: int = 0, **attributes: Any) -> Build:
    """Return a builder of an operator on [2, 20, 7, 11], or on some long rows, with its factors."""

    def build(g: SeededGraph) -> tuple[Value, ...]:
        x = g.input(rows, 3000) if rows else g.input(2, 20, 7, 11)
        factors = {"LayerNormalization": 3000 if rows else 11, "GroupNormalization": 20, "InstanceNormalization": 20}
        vectors = [g.constant(factors[op]), g.input(factors[op])] if op in factors else []
        return (g.add(op, x, *vectors, **attributes),)

    return build


def batch_normalization(constant: bool) -> Build:
    def build(g: SeededGraph) -> tuple[Value, ...]:
        scale, bias, mean, variance = (g.tensor(constant, 20) for _ in range(4))
        variance = variance if constant else g.add("Abs", variance)
        variance = g.b.constant(np.abs(g.b.graph.constants[variance])) if constant else variance
        return (g.add("Relu", g.add("BatchNormalization", g.input(2, 20, 7, 11), scale, bias, mean, variance)),)

    return build


def recurrent(op: str, **more: Any) -> Build:
    return lambda g: layer(g, op, **more)


CASES: dict[str, tuple[Build, float]] = {
    "depthwise 3x3": (convolution(36, (9, 11), (3, 3)), 2),
    "depthwise 3x3, stride 2": (convolution(48, (9, 21), (3, 3), 2), 2),
    "depthwise 5x5, few channels": (convolution(5, (6, 7), (5, 5)), 2),
    "depthwise 3": (convolution(33, (25,), (3,)), 2),
    "Softmax along rows": (normalization("Softmax"), 2),
    "Softmax across rows": (normalization("Softmax", axis=1), 2),
    "LogSoftmax": (normalization("LogSoftmax", axis=1), 2),
    "LayerNormalization": (normalization("LayerNormalization"), 2),
    "GroupNormalization": (normalization("GroupNormalization", num_groups=4), 2),
    "InstanceNormalization": (normalization("InstanceNormalization"), 2),
    "LpNormalization": (normalization("LpNormalization", axis=1), 2),
    "MeanVarianceNormalization": (normalization("MeanVarianceNormalization"), 2),
    "BatchNormalization": (batch_normalization(constant=True), 2),
    "AveragePool": (normalization("AveragePool", kernel_shape=(3, 3)), 2),
    "ReduceMean": (normalization("ReduceMean"), 2),
    "LSTM": (recurrent("LSTM", peepholes=True), 4),
    "GRU of lengths, computed weights": (recurrent("GRU", constant=False, lengths=(1, 0, 4)), 4),
    "RNN in both directions": (recurrent("RNN", direction="bidirectional", layout=1, hidden=17), 16),
}


@every_machine
@halves
@pytest.mark.parametrize("name", CASES)
def test_results_are_rounded_once(machine: Machine, dtype: DType, name: str) -> None:
    build, half_steps = CASES[name]
    check(machine, build, dtype, half_steps=half_steps)


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_no_conversions_surround_the_kernel(dtype: DType, name: str) -> None:
    graph, _ = built(CASES[name][0], dtype)
    assert not [n for n in simplified(graph, WeightCache(), X86_64_V3, Options()).nodes if n.op == "Cast"]


@every_machine
@pytest.mark.parametrize("op", ["Softmax", pytest.param("LayerNormalization", marks=pytest.mark.full("cpu"))])
def test_rows_that_exceed_the_caches_are_read_again(machine: Machine, op: str) -> None:
    small, build = machine.with_caches(32 << 10, 8 << 10), normalization(op, rows=3)
    for each, scratch in ((machine, True), (small, False)):
        steps = lower_graph(built(build, BF16)[0], Options(), KernelLibrary(each), WeightCache()).steps
        assert bool(steps[-1].scratch_bytes) is scratch
        check(each, build, BF16, half_steps=2)


@every_machine
def test_normalizations_convert_between_types(machine: Machine) -> None:
    """The sum stays float32 where products are of bfloat16."""

    def build(g: SeededGraph) -> tuple[Value, ...]:
        x = g.add("Add", g.add("MatMul", g.input(9, 64), g.constant(64, 32)), g.input(9, 32))
        y = g.add("LayerNormalization", x, g.constant(32), g.constant(32))
        return (g.add("MatMul", y, g.constant(32, 32)), g.add("Softmax", x))

    graph, inputs = built(build, F32)
    steps = lower_graph(graph, Options(precision="bfloat16"), KernelLibrary(machine), WeightCache()).steps
    written = [step.tensors[1].dtype for step in steps if step.kernel.symbol == "normalization"]
    assert written == [BF16 if machine.bf16_dot else F32]
    assert len([step for step in steps if step.kernel.symbol == "elementwise"]) <= 1  # of the input
    truth, wide = built(build, DType.FLOAT64)
    expected = evaluate_graph(truth, [wide[v.name] for v in truth.inputs])
    actual = run_on(machine, graph, inputs, precision="bfloat16")
    for number, array in enumerate(expected):
        limit = 8 * ROUNDING[BF16] * np.abs(array).max()
        np.testing.assert_allclose(actual[f"y{number}"].astype(np.float64), array, rtol=0, atol=limit)


@halves
@pytest.mark.full("cpu")
def test_a_pointwise_convolution_of_float32_absorbs_the_depthwise_one(dtype: DType) -> None:
    def build(g: SeededGraph) -> tuple[Value, ...]:
        x = g.add("Transpose", g.input(1, 60, 60, 72), perm=(0, 3, 1, 2))
        y = g.add("Relu", g.add("Conv", x, g.constant(72, 1, 3, 3), g.constant(72), group=72, pads=(1, 1, 1, 1)))
        y = g.add("Relu", g.add("Conv", y, g.constant(24, 72, 1, 1), g.constant(24)))
        return (g.add("Transpose", y, perm=(0, 2, 3, 1)),)

    steps = lower_graph(built(build, dtype)[0], Options(), KernelLibrary(X86_64_V3), WeightCache()).steps
    assert [step.kernel.symbol for step in steps] == ["depthwisepointwise"]
    check(machines()[1], build, dtype, half_steps=2)


# **** maxima ****


@every_machine
@halves
@pytest.mark.parametrize("channels", [13, 205])
def test_maxima_keep_the_bits_and_what_is_not_a_number(machine: Machine, dtype: DType, channels: int) -> None:
    _skip_unless_converted(machine, dtype)
    bits = np.random.default_rng(0).integers(0, 1 << 16, (1, 8, 9, channels), np.uint16)
    x = bits.view(dtype.numpy)
    x[:, :4] = np.random.default_rng(1).standard_normal((1, 4, 9, channels)).astype(dtype.numpy)
    x[0, 5:8, 3:6] = -np.inf
    b = GraphBuilder("maxima")
    image = b.add("Transpose", [b.input("x", str(dtype), x.shape)], {"perm": (0, 3, 1, 2)})
    y = b.add("MaxPool", [image], {"kernel_shape": (3, 3)})
    b.output(b.add("Transpose", [y], {"perm": (0, 2, 3, 1)}), "y")
    actual = run_on(machine, b.build(), {"x": x})["y"]
    with np.errstate(invalid="ignore"):  # NaN may signal
        windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), (1, 2))
        np.testing.assert_array_equal(actual.astype(np.float64), windows.max(axis=(-1, -2)))


# **** attention ****


@every_machine
@halves
def test_attention_is_one_step_that_reads_16_bits(machine: Machine, dtype: DType) -> None:
    build = attention(2, 3, 50, 33, 15, 20, (2, 1, 1, 33), relu=True)
    steps = lower_graph(built(build, dtype)[0], Options(), KernelLibrary(machine), WeightCache()).steps
    assert [step.kernel.symbol for step in steps] == ["attention"]
    assert {tensor.dtype for tensor in steps[0].tensors} == {dtype}
    check(machine, build, dtype, half_steps=6, threads=2)


def test_conversions_that_others_read_stay() -> None:
    g = SeededGraph("float16")
    q, k, v = (g.input(2, 9, 15), g.input(2, 15, 9), g.input(2, 9, 15))
    wide = [g.add("Cast", x, to=F32) for x in (q, k, v)]
    y = g.add("MatMul", g.add("Softmax", g.add("MatMul", wide[0], wide[1])), wide[2])
    graph = g.built(y, g.add("Exp", wide[2]))
    steps = lower_graph(graph, Options(), KernelLibrary(X86_64_V3), WeightCache()).steps
    assert [str(t.dtype) for s in steps if s.kernel.symbol == "attention" for t in s.tensors] == [
        "float16", "float16", "float32", "float32",
    ]  # fmt: skip


# **** rounding to bfloat16 ****


@every_machine
def test_rounding_is_to_nearest_even(machine: Machine) -> None:
    k = Emitter(machine)
    with k.kernel("narrow") as (pointers, _params, begin, end, _scratch):
        source, target = pointers.tensor(1, F32), pointers.tensor(0, BF16)

        def body(index: Val, lanes: int) -> None:
            target[index].store(source[index].load(lanes))

        k.span(end - begin, machine.lanes(), body)
    upper, lower = np.arange(0, 1 << 16, 5, dtype=np.uint32) << 16, np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
    x = (upper[:, None] | lower.astype(np.uint32)).reshape(-1).view(np.float32)
    actual = np.empty(x.size, BF16.numpy)
    code = load([compile_ir(k.text(), machine)])
    run_kernel(code.address(0, "narrow"), [x], actual)
    with np.errstate(invalid="ignore"):
        expected = x.astype(BF16.numpy).astype(np.float64)
    is_zero = machine.bf16_dot & (np.abs(x) < 2.0**-126)  # the instruction of x86 flushes them
    np.testing.assert_array_equal(actual.astype(np.float64), np.where(is_zero, 0, expected))


@pytest.mark.parametrize(
    ("machine", "instruction"), [(WITH_BFLOAT16, "vcvtneps2bf16"), (ARM_WITH_BFLOAT16, "bfcvtn")], ids=["x86", "arm"]
)
def test_processors_with_bfloat16_round_by_one_instruction(machine: Machine, instruction: str) -> None:
    k = Emitter(machine)
    with k.kernel("narrow") as (pointers, _params, _begin, _end, _scratch):
        pointers.tensor(0, BF16).store(pointers.tensor(1, F32).load(machine.lanes()))
    text = assembly_of(k.text(), machine)
    assert instruction in text
    assert "cmp" not in text
