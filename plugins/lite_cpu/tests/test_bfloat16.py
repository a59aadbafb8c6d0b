"""Products of bfloat16 with float32 sums, and sessions that allow them, on processors that multiply bfloat16."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from levels import Array, run_on
from llvmlite import binding

from lite_core import load
from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Value
from lite_cpu.chains import Chain, Operand
from lite_cpu.dot_panels import bfloat16_bits, pack_dots, pack_pairs
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.gemm import Gemm
from lite_cpu.lowering.compile import lower_graph
from lite_cpu.lowering.narrow_floats import narrow_floats
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine import ARM_V8, X86_64_V4, Machine
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.machine_code.objects import assembly_of

F32, BF16 = DType.FLOAT32, DType.BFLOAT16
MACHINE = replace(X86_64_V4, name="x86-64-v4+bf16", features=(*X86_64_V4.features, "+avx512bf16"), bf16_dot=True)
ARM = replace(ARM_V8, name="arm-v8+bf16", features=(*ARM_V8.features, "+bf16"), bf16_dot=True)
here = pytest.mark.skipif(
    not binding.get_host_cpu_features().get("avx512bf16"), reason="this processor has no AVX512-BF16"
)

#: Half the distance between 1 and the next bfloat16, and the same of float32.
ROUNDING, ROUNDING_OF_SUMS = 2.0**-8, 2.0**-24


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def rounded(x: Array) -> Array:
    """Return floats rounded to bfloat16, as float64."""
    bits: Array = bfloat16_bits(x.astype(np.float32)).astype(np.uint32) << 16
    return bits.view(np.float32).astype(np.float64)


def test_rounding_is_to_nearest_even_and_keeps_what_is_not_a_number() -> None:
    x = np.concatenate([normal(4096), [0.0, -0.0, np.inf, -np.inf, np.nan, 3.3e38, 1.0 + ROUNDING, 1.0 + 3 * ROUNDING]])
    expected = x.astype(np.float32).astype(BF16.numpy)
    np.testing.assert_array_equal(rounded(x), expected.astype(np.float64))
    every_nan = np.arange(0x7F800001, 0x7F800001 + 0x10000, dtype=np.uint32).view(np.float32)
    assert np.isnan(rounded(every_nan)).all()


@pytest.mark.parametrize(("depth", "columns"), [(8, 12), (12, 31), (6, 5)])
def test_groups_of_four_are_packed_like_those_of_integers(depth: int, columns: int) -> None:
    b = normal(2, 3, depth, columns)
    bits = bfloat16_bits(b)
    expected = pack_dots(bits, np.zeros((), np.uint16), DType.UINT16, 4, 4, 3)
    np.testing.assert_array_equal(pack_pairs(b, 4, 3, group=4).view(np.uint16), expected)


# **** products: exact operands, float32 sums ****


def assert_exact_but_for_sums(actual: Array, expected: Array, magnitudes: Array, depth: int) -> None:
    """Compare a result of rounded operands: an error may come from the sums, and from storing the result."""
    stored = ROUNDING if actual.dtype == BF16.numpy else ROUNDING_OF_SUMS
    bound = 2 * depth * ROUNDING_OF_SUMS * magnitudes + stored * np.abs(expected)
    assert np.all(np.abs(actual.astype(np.float64) - expected) <= bound)


@here
@pytest.mark.parametrize("rows", [1, 3, 7, 20])
@pytest.mark.parametrize("columns", [1, 5, 16, 33, 70])
@pytest.mark.parametrize("depth", [2, 38, 130])
def test_matmul_of_a_bfloat16_model(rows: int, columns: int, depth: int) -> None:
    a, w = normal(rows, depth).astype(BF16.numpy), normal(depth, columns, seed=1).astype(BF16.numpy)
    b = GraphBuilder("product")
    b.output(b.add("MatMul", [b.input("x", BF16, a.shape), b.constant(w, dtype=BF16)]), "y")
    wide_a, wide_w = a.astype(np.float64), w.astype(np.float64)
    actual = run_on(MACHINE, b.build(), {"x": a})["y"]
    assert_exact_but_for_sums(actual, wide_a @ wide_w, np.abs(wide_a) @ np.abs(wide_w), depth)


@here
@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "columns"])
def test_product_of_two_computed_matrices(transposed: bool) -> None:
    shape = (2, 3, 20, 38) if transposed else (2, 3, 38, 20)
    x, w = normal(2, 3, 9, 38).astype(BF16.numpy), normal(*shape, seed=1).astype(BF16.numpy)
    b = GraphBuilder("product")
    right = b.input("w", BF16, w.shape)
    right = b.add("Transpose", [right], {"perm": (0, 1, 3, 2)}) if transposed else right
    b.output(b.add("MatMul", [b.input("x", BF16, x.shape), right]), "y")
    wide, matrix = x.astype(np.float64), w.astype(np.float64)
    matrix = matrix.swapaxes(-1, -2) if transposed else matrix
    actual = run_on(MACHINE, b.build(), {"x": x, "w": w})["y"]
    assert_exact_but_for_sums(actual, wide @ matrix, np.abs(wide) @ np.abs(matrix), 38)


@here
@pytest.mark.parametrize("addend", [(), (20,), (6, 1), (6, 20)], ids=str)
@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_gemm_of_a_bfloat16_model(addend: tuple[int, ...], alpha: float) -> None:
    a, w, c = (x.astype(BF16.numpy) for x in (normal(38, 6), normal(20, 38, seed=1), normal(*addend, seed=2)))
    b = GraphBuilder("gemm")
    inputs = [b.input("x", BF16, a.shape), b.constant(w, dtype=BF16), b.constant(c, dtype=BF16)]
    attributes = {"alpha": alpha, "beta": 2.0, "transA": 1, "transB": 1}
    b.output(b.add("Gemm", inputs, attributes), "y")
    wide_a, wide_w, wide_c = (x.astype(np.float64) for x in (a, w, c))
    magnitudes = np.abs(wide_a.T) @ np.abs(wide_w.T) + 2 * np.abs(wide_c)
    actual = run_on(MACHINE, b.build(), {"x": a})["y"]
    assert_exact_but_for_sums(actual, alpha * (wide_a.T @ wide_w.T) + 2 * wide_c, magnitudes, 40)


CONVOLUTIONS: list[tuple[Any, ...]] = [
    # channels, filters, window, stride, pads, dilation, groups
    (8, 20, 1, 1, 0, 1, 1),
    (8, 20, 1, 2, 0, 1, 1),
    (3, 16, 7, 2, 3, 1, 1),
    (1, 16, 3, 1, 1, 1, 1),
    (4, 9, 3, 1, 1, 1, 1),
    (6, 33, 3, 1, 1, 1, 1),
    (6, 33, 3, 2, 1, 2, 1),
    (16, 32, 3, 1, 1, 1, 4),
    (16, 32, 1, 1, 0, 1, 4),
    (64, 48, 5, 1, 2, 1, 1),
]


@here
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("threads", [1, 2])
def test_convolution_of_a_bfloat16_model(case: tuple[int, ...], threads: int) -> None:
    channels, filters, window, stride, pads, dilation, groups = case
    x, w = normal(2, channels, 13, 11), normal(filters, channels // groups, window, window, seed=1)
    attributes = {
        "strides": (stride,) * 2, "pads": (pads,) * 4, "dilations": (dilation,) * 2, "group": groups,
    }  # fmt: skip
    arrays = [array.astype(BF16.numpy) for array in (x, w, normal(filters, seed=2))]

    def graph(arrays: list[Array]) -> Graph:
        b, dtype = GraphBuilder("convolution"), DType.of(arrays[0])
        constants = [b.constant(array, dtype=dtype) for array in arrays[1:]]
        b.output(b.add("Conv", [b.input("x", dtype, x.shape), *constants], attributes), "y")
        return b.build()

    def exact(arrays: list[Array]) -> Array:
        return load(graph(arrays), backend="host").run(x=arrays[0])["y"]

    wide = [array.astype(np.float64) for array in arrays]
    actual = run_on(MACHINE, graph(arrays), {"x": arrays[0]}, threads=threads)["y"]
    magnitudes = exact([np.abs(array) for array in wide])
    assert_exact_but_for_sums(actual, exact(wide), magnitudes, channels // groups * window * window + 1)


@pytest.mark.parametrize(("machine", "instruction"), [(MACHINE, "vdpbf16ps"), (ARM, "bfdot")], ids=["x86", "arm"])
def test_products_of_pairs_are_one_instruction(machine: Machine, instruction: str) -> None:
    k = Emitter(machine)
    kernel = Gemm(Chain(Operand(BF16)), pairs=True)
    kernel.emit(k)
    assert instruction in assembly_of(k.text(), machine, optimize=kernel.optimize)


# **** sessions of float32 models that allow bfloat16 ****


def network() -> Graph:
    """Return convolutions with a residual addition, a depthwise one and pooling between them, and a last product."""
    b = GraphBuilder("network")

    def convolution(x: Value, channels: int, filters: int, window: int, seed: int, **attributes: Any) -> Value:
        depth = channels // attributes.get("group", 1) * window * window
        w = normal(filters, depth // window // window, window, window, seed=seed) * np.float32(np.sqrt(2 / depth))
        given = {"pads": (window // 2,) * 4, **attributes}
        return b.add("Conv", [x, b.constant(w), b.constant(normal(filters, seed=seed) / 10)], given)

    x = b.add("Relu", [convolution(b.input("x", F32, (1, 3, 32, 32)), 3, 24, 3, 1, strides=(2, 2))])
    y = b.add("Relu", [b.add("Add", [convolution(x, 24, 24, 3, 2), x])])
    y = b.add("HardSwish", [convolution(y, 24, 24, 5, 3, group=24)])
    y = b.add("MaxPool", [y], {"kernel_shape": (2, 2), "strides": (2, 2)})
    y = b.add("Clip", [convolution(y, 24, 40, 1, 4), b.constant(np.float32(0)), b.constant(np.float32(6))])
    y = b.add("GlobalAveragePool", [convolution(y, 40, 31, 1, 5)])
    b.output(b.add("Gemm", [b.add("Flatten", [y]), b.constant(normal(31, 7))]), "y")
    return b.build()


@here
@pytest.mark.parametrize("threads", [1, 2])
def test_network_computes_in_bfloat16_if_the_session_allows_it(threads: int) -> None:
    graph, x = network(), normal(1, 3, 32, 32)
    expected = run_on(MACHINE, graph, {"x": x}, threads=threads)["y"]
    actual = run_on(MACHINE, graph, {"x": x}, threads=threads, precision="bfloat16")["y"]
    error = np.sqrt(np.mean((actual - expected) ** 2) / np.mean(expected**2))
    assert actual.dtype == np.float32
    # Each of five layers rounds its operands, so the errors add to some 2^-8; without bfloat16 there are none.
    assert 2.0**-14 < error < 2.0**-6


@here
def test_steps_between_products_read_and_write_bfloat16() -> None:
    lowering = lower_graph(network(), Options(precision="bfloat16"), KernelLibrary(MACHINE), WeightCache())
    products = [step for step in lowering.steps if step.label in ("gemm", "direct")]
    assert [getattr(step.kernel, "pairs", None) for step in products] == [True] * 4 + [False]
    assert [step.kernel.epilogue.output for step in products] == [BF16, BF16, BF16, F32, F32]


def types_of(graph: Graph) -> dict[str, str]:
    narrow = narrow_floats(graph, MACHINE)
    return {node.name: str(node.outputs[0].dtype) for node in narrow.nodes if node.outputs[0] is not None}


def test_values_before_the_first_and_after_the_last_product_stay_float32() -> None:
    b = GraphBuilder("ends")
    x = b.add("Mul", [b.input("x", F32, (4, 8)), b.constant(np.float32(2))], name="before")
    x = b.add("MatMul", [x, b.constant(normal(8, 8))], name="first")
    x = b.add("Relu", [x], name="between")
    x = b.add("MatMul", [x, b.constant(normal(8, 8))], name="last")
    b.output(b.add("Softmax", [x], name="after"), "y")
    types = types_of(b.build())
    expected = {"before": F32, "first": BF16, "between": BF16, "last": F32, "after": F32}
    assert {name: types[name] for name in expected} == expected


def test_residual_streams_stay_float32() -> None:
    b = GraphBuilder("residual")
    x = b.add("MatMul", [b.input("x", F32, (4, 8)), b.constant(normal(8, 8))], name="stream")
    scale = b.constant(np.ones(8, np.float32))
    y = b.add("LayerNormalization", [x, scale], name="norm")
    y = b.add("MatMul", [y, b.constant(normal(8, 8))], name="product")
    x = b.add("Add", [x, y], name="sum")
    y = b.add("LayerNormalization", [x, scale], name="norm2")
    b.output(b.add("MatMul", [y, b.constant(normal(8, 8))], name="head"), "y")
    types = types_of(b.build())
    expected = {"stream": F32, "product": F32, "sum": F32, "head": F32}
    assert {name: types[name] for name in expected} == expected


def test_graph_without_products_is_not_changed() -> None:
    b = GraphBuilder("plain")
    b.output(b.add("Relu", [b.input("x", F32, (4, 8))]), "y")
    graph = b.build()
    assert narrow_floats(graph, MACHINE) is graph


def test_products_of_few_rows_round_only_their_weights() -> None:
    b = GraphBuilder("row")
    b.output(b.add("MatMul", [b.input("x", F32, (1, 8)), b.constant(normal(8, 8))]), "y")
    graph = b.build()
    assert narrow_floats(graph, MACHINE) is graph


# **** attention and recurrent layers ****


def attention(tokens: int, depth: int, columns: int, layout: str) -> Graph:
    """Return attention of 9 queries in 2 x 3 heads; ``layout`` says whether K' or V has contiguous columns or depth."""
    b = GraphBuilder("attention")
    q = b.input("q", BF16, (2, 3, 9, depth))
    k = b.input("k", BF16, (2, 3, depth, tokens) if layout == "keys by depth" else (2, 3, tokens, depth))
    v = b.input("v", BF16, (2, 3, columns, tokens) if layout == "values by column" else (2, 3, tokens, columns))
    k = k if layout == "keys by depth" else b.add("Transpose", [k], {"perm": (0, 1, 3, 2)})
    v = b.add("Transpose", [v], {"perm": (0, 1, 3, 2)}) if layout == "values by column" else v
    scores = b.add("Mul", [b.add("MatMul", [q, k]), b.constant(np.asarray(0.25, BF16.numpy), dtype=BF16)])
    b.output(b.add("MatMul", [b.add("Softmax", [scores], {"axis": -1}), v]), "y")
    return b.build()


@here
@pytest.mark.parametrize("layout", ["plain", "keys by depth", "values by column"])
@pytest.mark.parametrize(("tokens", "depth", "columns"), [(1, 2, 1), (5, 8, 20), (33, 38, 8), (130, 32, 32)])
def test_attention_multiplies_pairs(tokens: int, depth: int, columns: int, layout: str) -> None:
    q, k, v = (normal(2, 3, *n, seed=i) for i, n in enumerate([(9, depth), (tokens, depth), (tokens, columns)]))
    scores = rounded(q) @ rounded(k).swapaxes(-1, -2) / 4
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    graph = attention(tokens, depth, columns, layout)
    arrays = {"q": q, "k": k, "v": v}
    turned = {"keys by depth": "k", "values by column": "v"}.get(layout)
    arrays = {name: array.swapaxes(-1, -2) if name == turned else array for name, array in arrays.items()}
    actual = run_on(MACHINE, graph, {name: array.astype(BF16.numpy) for name, array in arrays.items()})["y"]
    # Each share and the result are rounded once; scores have the precision of float32.
    bound = 2 * ROUNDING * (shares @ np.abs(rounded(v))) + 1e-5
    assert np.all(np.abs(actual.astype(np.float64) - shares @ rounded(v)) <= bound)
    steps = lower_graph(graph, Options(), KernelLibrary(MACHINE), WeightCache()).steps
    assert [getattr(step.kernel, "pairs", None) for step in steps if step.label == "attention"] == [True]


@here
@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("hidden", [16, 38])
@pytest.mark.parametrize("op", ["GRU", "LSTM", "RNN"])
def test_recurrent_layers_multiply_pairs(op: str, hidden: int, batch: int) -> None:
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[op]
    b = GraphBuilder(op)
    w, r = normal(2, gates * hidden, 12, seed=1) / 4, normal(2, gates * hidden, hidden, seed=2) / 8
    x = b.add("MatMul", [b.input("x", F32, (7, batch, 12)), b.constant(normal(12, 12, seed=3) / 4)])
    inputs = [x, b.constant(w), b.constant(r), b.constant(normal(2, 2 * gates * hidden, seed=4) / 4)]
    y = b.add(op, inputs, {"hidden_size": hidden, "direction": "bidirectional"})
    b.output(b.add("ReduceMean", [y, b.constant(np.array([1]))]), "y")
    graph, x_array = b.build(), normal(7, batch, 12)
    expected = run_on(MACHINE, graph, {"x": x_array})["y"]
    actual = run_on(MACHINE, graph, {"x": x_array}, precision="bfloat16")["y"]
    assert 1e-5 < np.abs(actual - expected).max() < 0.02
    options = Options(precision="bfloat16")
    steps = lower_graph(graph, options, KernelLibrary(MACHINE), WeightCache()).steps
    assert [getattr(step.kernel, "pairs", None) for step in steps if step.label == op.lower()] == [True]
