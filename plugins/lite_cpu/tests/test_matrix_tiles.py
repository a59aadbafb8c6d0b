"""Products in matrix tiles, emulated: against NumPy, and whole models against the machine without tiles."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from guard_page import before_a_guard_page
from levels import run_on
from tile_machines import AMX, emulated, without_tiles

from lite_core import load
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Value
from lite_cpu.aligned import aligned_empty
from lite_cpu.chains import Chain, Operand
from lite_cpu.dot_panels import pack_dots, pack_pairs
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.conv_int8 import ConvInt8
from lite_cpu.kernels.emulated_tiles import EmulatedTiles
from lite_cpu.kernels.gemm import GemmShape
from lite_cpu.kernels.gemm_int8 import GemmInt8, GemmInt8Shape
from lite_cpu.kernels.int8_tiles import LeftSide
from lite_cpu.kernels.integer_dots import DotForm
from lite_cpu.kernels.matrix_tiles import COUNT
from lite_cpu.kernels.tile_direct import TileDirect
from lite_cpu.kernels.tile_gemm import TileGemm
from lite_cpu.kernels.tile_setup import configuration
from lite_cpu.machine import Machine
from lite_cpu.machine_code.cache import KernelCache
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.machine_code.objects import assembly_of
from lite_cpu.runtime import Program, Step

Array = np.ndarray[Any, Any]

INT32, FLOAT32, BFLOAT16 = DType.INT32, DType.FLOAT32, DType.BFLOAT16
TYPES = [(DType.UINT8, DType.INT8), (DType.INT8, DType.INT8), (BFLOAT16, BFLOAT16)]
linux = pytest.mark.skipif(sys.platform != "linux", reason="protects memory by Linux' mprotect")


# **** running kernels ****


def run_kernel(
    machine: Machine, kernel: Kernel, arrays: Sequence[Array], params: Sequence[int], items: int, scratch: int
) -> None:
    """Run a kernel with two threads on arrays."""
    library = _libraries.setdefault(machine, KernelLibrary(machine, KernelCache(None)))
    pointers = [(number + 1, 0) for number in range(len(arrays))]
    step = Step(library.addresses([kernel])[kernel], pointers, list(params), tasks=items)
    program = Program([step], arena_bytes=0, thread_scratch_bytes=scratch)
    memory = aligned_empty((max(64, program.scratch_bytes(2)),), np.uint8)
    program.run([memory.ctypes.data, *(array.ctypes.data for array in arrays)], threads=2)


_libraries: dict[Machine, KernelLibrary] = {}


def numbers(random: np.random.Generator, dtype: DType, *shape: int) -> Array:
    """Return integers from the whole range of a type, or bfloat16 of a few orders of magnitude."""
    if dtype is BFLOAT16:
        return (random.standard_normal(shape) * 2.0 ** random.integers(-3, 3, shape)).astype(ml_dtypes.bfloat16)
    info = np.iinfo(dtype.numpy)
    return random.integers(info.min, info.max, shape, dtype=dtype.numpy, endpoint=True)


# **** the emulation ****


@dataclass(frozen=True)
class OneProduct(Kernel):
    """One product of tiles with other sizes than whole ones. Pointers: sums, A, B, in rows of 64 bytes."""

    types: tuple[DType, DType]
    rows: int
    columns: int
    groups: int

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, _, _begin, _end, _scratch):
            tiles = EmulatedTiles(k)
            sums, left, right = (pointers.tensor(i, DType.UINT8) for i in range(3))
            sizes = [(self.rows, 4 * self.columns), (self.rows, 4 * self.groups), (self.groups, 4 * self.columns)]
            tiles.configure(configuration(k, sizes + [(16, 64)] * (COUNT - 3)))
            for tile, start in enumerate((sums, left, right)):
                tiles.load(tile, start, 64)
            tiles.dot(self.types, 0, 1, 2)
            tiles.store(0, sums, 64)
            tiles.release()


@pytest.mark.parametrize("types", TYPES, ids=lambda types: f"{types[0]}-{types[1]}")
def test_emulated_product_of_a_part_of_a_tile(types: tuple[DType, DType]) -> None:
    """Nothing outside of the configured rows and columns is multiplied or stored."""
    random, (rows, columns, groups) = np.random.default_rng(0), (5, 7, 3)
    left, right = types
    size = 64 // left.itemsize
    a, b = numbers(random, left, 16, size), numbers(random, right, 16, size)
    if left is BFLOAT16:
        a[1, 1], b[0, 2] = 1e-40, 2e-39  # denormal numbers are multiplied as zeros
    sums = random.integers(-99, 99, (16, 16)).astype(FLOAT32.numpy if left is BFLOAT16 else INT32.numpy)
    sums[4] = 2**31 - 1 if left is not BFLOAT16 else 1e-39  # integers wrap around, denormal sums count as zeros
    found, group = sums.copy(), 4 // left.itemsize
    run_kernel(emulated(), OneProduct(types, rows, columns, groups), [found, a, b], [], 1, 0)
    expected = sums.copy()
    for m in range(rows):
        for n in range(columns):
            x = a[m, : groups * group].astype(np.float64)
            w = b[:groups].reshape(groups, 16, group)[:, n].reshape(-1).astype(np.float64)
            if left is not BFLOAT16:
                expected[m, n] = np.int64(sums[m, n] + x @ w).astype(np.int32)
                continue
            x, w = (np.where(np.abs(each) < 2.0**-126, 0, each) for each in (x, w))
            halves = [np.float32(0), np.float32(0)]
            for i in range(groups * group):
                halves[i % 2] = np.float32(halves[i % 2] + x[i] * w[i])
            start = np.float32(0) if abs(sums[m, n]) < 2.0**-126 else sums[m, n]
            expected[m, n] = start + (halves[0] + halves[1])
    np.testing.assert_array_equal(found, expected)


# **** products ****


def check_bytes(rows: int, depth: int, columns: int, left: DType, *, row_points: bool, seed: int = 0) -> None:
    """Assert that a product is exact, of arrays that end at guard pages."""
    random, machine = np.random.default_rng(seed), emulated()
    form = DotForm(left, DType.INT8, tiles=True)
    a, b = numbers(random, left, rows, depth), numbers(random, DType.INT8, depth, columns)
    zero = numbers(random, left, rows if row_points else 1)
    kernel = GemmInt8(LeftSide(left, form), Chain(Operand(INT32)), rows >= 16 and depth % 64 == 0, row_points)
    shape = GemmInt8Shape(rows, depth, columns, a_row=depth, c_row=columns, zero_row=int(row_points))
    row_block, column_block = (-(-n // 32) * 32 if n > 32 else 32 for n in (rows // 2, columns // 2))
    panels = pack_dots(b[None, None], np.zeros((), np.int8), DType.INT8, form.group, machine.lanes(), 2)
    sums = b.sum(0, dtype=np.int32)
    c = before_a_guard_page(np.zeros((rows, columns), np.int32))
    arrays = [before_a_guard_page(array) for array in (a, zero, panels, sums)]
    params, items = shape.params(row_block, column_block, []), shape.items(row_block, column_block)
    run_kernel(machine, kernel, [*arrays, c], params, items, kernel.scratch_bytes(row_block, depth))
    expected = (a.astype(np.int64) - zero[:, None].astype(np.int64)) @ b.astype(np.int64)
    np.testing.assert_array_equal(c, expected)


def check_halves(rows: int, depth: int, columns: int, *, blocked: bool, seed: int = 0) -> None:
    """Assert that a product of bfloat16 is within its rounding, of arrays that end at guard pages."""
    random, machine, pairs = np.random.default_rng(seed), emulated(), depth // 2
    a, b = numbers(random, BFLOAT16, rows, depth), numbers(random, BFLOAT16, depth, columns)
    bias = random.standard_normal(columns).astype(np.float32)
    kernel = TileGemm(Chain(Operand(FLOAT32)), pairs=True, blocked=blocked)
    shape = GemmShape(rows, pairs, columns, a_row=pairs, c_row=columns)
    row_block, column_block = (-(-n // 32) * 32 if n > 32 else 32 for n in (rows // 2, columns // 2))
    panels = pack_pairs(b[None, None], machine.lanes(), 2)
    c = before_a_guard_page(np.zeros((rows, columns), np.float32))
    arrays = [before_a_guard_page(array) for array in (a.view(np.uint16), panels, bias)]
    params, items = shape.params(row_block, column_block, []), shape.items(row_block, column_block)
    run_kernel(machine, kernel, [*arrays, c], params, items, kernel.scratch_bytes(row_block, shape))
    x, w = a.astype(np.float64), b.astype(np.float64)
    # Each of the sums of a tile is rounded once for each of its numbers.
    bound = (depth + 2) * 2.0**-24 * (np.abs(x) @ np.abs(w) + np.abs(bias))
    assert np.all(np.abs(c - (x @ w + bias)) <= bound)


@linux
@pytest.mark.parametrize(("rows", "depth", "columns"), [(3, 5, 17), (40, 130, 70), (37, 64, 33), (16, 128, 16)])
def test_products_of_bytes(rows: int, depth: int, columns: int) -> None:
    check_bytes(rows, depth, columns, DType.UINT8, row_points=False)
    check_bytes(rows, depth, columns, DType.INT8, row_points=True)


@linux
@pytest.mark.parametrize(("rows", "depth", "columns"), [(3, 6, 17), (40, 130, 70), (37, 64, 33)])
def test_products_of_halves(rows: int, depth: int, columns: int) -> None:
    check_halves(rows, depth, columns, blocked=depth % 32 != 0 or rows < 16)


@linux
@pytest.mark.full("cpu")
def test_products_of_every_number_of_rows_and_many_other_sizes() -> None:
    random = np.random.default_rng(1)
    for rows in range(1, 41):
        for seed, depth in enumerate((64, 128, *random.integers(1, 131, 6))):
            columns, left = int(random.integers(1, 71)), (DType.UINT8, DType.INT8)[seed % 2]
            check_bytes(rows, int(depth), columns, left, row_points=seed % 3 == 0, seed=seed)
            even = int(depth) // 2 * 2 or 2
            check_halves(rows, even, columns, blocked=even % 32 != 0 or rows < 16 or seed % 3 == 0, seed=seed)


@pytest.mark.full("cpu")
def test_infinite_and_undefined_numbers_reach_their_own_rows_only() -> None:
    """Zeros behind the depth of a copy are multiplied by zeros."""
    b = GraphBuilder("halves")
    w = b.constant(np.random.default_rng(1).standard_normal((70, 33)).astype(np.float32))
    b.output(b.add("MatMul", [b.input("x", "float32", (40, 70)), w]), "y")
    x = np.ones((40, 70), np.float32)
    x[3, 5], x[17, 69] = np.inf, np.nan
    y = run_on(emulated(), b.build(), {"x": x}, precision="bfloat16")["y"]
    assert list(np.flatnonzero(~np.isfinite(y).all(1))) == [3, 17]
    assert np.isnan(y[17]).all()


# **** models ****


class Layers:
    """A residual network under construction, in float32 or quantized to bytes; all scales differ."""

    def __init__(self, *, quantized: bool) -> None:
        self.b = GraphBuilder("residual")
        self._random = np.random.default_rng(0)
        self._quantized = quantized

    def input(self, *shape: int) -> Value:
        return self._rounded(self.b.input("x", "float32", shape), 0.02, 120)

    def conv(self, x: Value, outputs: int, size: int, stride: int = 1, *, relu: bool = True) -> Value:
        y = self.b.add("Conv", [x, self._weights(outputs, x.shape[1], size, size), self._bias(outputs)],
                       {"strides": (stride,) * 2, "pads": (size // 2,) * 4})  # fmt: skip
        return self._rounded(self.b.add("Relu", [y]) if relu else y, 0.03, 10 if relu else 128)

    def block(self, x: Value, middle: int, outputs: int, stride: int) -> Value:
        y = self.conv(self.conv(self.conv(x, middle, 1), middle, 3, stride), outputs, 1, relu=False)
        if stride != 1 or x.shape[1] != outputs:
            x = self.conv(x, outputs, 1, stride, relu=False)
        return self._rounded(self.b.add("Relu", [self.b.add("Add", [y, x])]), 0.04, 5)

    def classify(self, x: Value, classes: int) -> Graph:
        pooled = self.b.add("Flatten", [self._rounded(self.b.add("GlobalAveragePool", [x]), 0.02, 3)])
        y = self.b.add("Gemm", [pooled, self._weights(classes, x.shape[1]), self._bias(classes)], {"transB": 1})
        self.b.output(y, "y")
        return self.b.build()

    def _weights(self, outputs: int, *shape: int) -> Value:
        scales = self._random.uniform(0.5, 2, outputs).astype(np.float32) * np.float32(0.012 / np.prod(shape) ** 0.5)
        w = self._random.integers(-127, 128, (outputs, *shape)).astype(np.int8)
        if not self._quantized:
            return self.b.constant(w.astype(np.float32) * scales.reshape(-1, *(1 for _ in shape)))
        return self.b.add("DequantizeLinear", [self.b.constant(w), self.b.constant(scales)], {"axis": 0})

    def _bias(self, count: int) -> Value:
        return self.b.constant(self._random.standard_normal(count).astype(np.float32) * np.float32(0.1))

    def _rounded(self, x: Value, scale: float, zero: int) -> Value:
        if not self._quantized:
            return x
        parameters = [self.b.constant(np.float32(scale)), self.b.constant(np.uint8(zero))]
        return self.b.add("DequantizeLinear", [self.b.add("QuantizeLinear", [x, *parameters]), *parameters])


def residual_network(*, quantized: bool) -> Graph:
    """Return a small network with the layers of a ResNet: 7x7 of stride 2, bottlenecks, a classifier."""
    layers = Layers(quantized=quantized)
    x = layers.conv(layers.input(2, 3, 70, 66), 32, 7, 2)
    x = layers.b.add("MaxPool", [x], {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1,) * 4})
    for middle, outputs, stride in ((32, 64, 1), (32, 64, 1), (64, 128, 2), (72, 144, 2)):
        x = layers.block(x, middle, outputs, stride)
    return layers.classify(x, 37)


def outputs_of(machine: Machine, graph: Graph, **options: Any) -> Array:
    x = np.random.default_rng(5).standard_normal((2, 3, 70, 66)).astype(np.float32)
    return run_on(machine, graph, {"x": x}, **options)["y"]


@pytest.mark.full("cpu")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_quantized_model_has_the_same_outputs_in_tiles(threads: int) -> None:
    graph, machine = residual_network(quantized=True), emulated()
    expected = outputs_of(without_tiles(machine), graph, threads=threads)
    np.testing.assert_array_equal(outputs_of(machine, graph, threads=threads), expected)
    assert np.unique(expected).size > 50


@pytest.mark.full("cpu")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_model_in_bfloat16_loses_no_more_in_tiles(threads: int) -> None:
    graph, machine = residual_network(quantized=False), emulated()
    if not machine.bf16_dot:
        pytest.skip("this processor has no AVX512-BF16")
    exact = load(graph, backend="host").run({"x": np.random.default_rng(5).standard_normal((2, 3, 70, 66)).astype("f")})
    found, vectors = (
        outputs_of(each, graph, precision="bfloat16", threads=threads) for each in (machine, without_tiles(machine))
    )
    errors = [np.linalg.norm(each - exact["y"]) for each in (found, vectors)]
    # Both round the same operands; sums differ by roundings of float32, which move few activations to a neighbour.
    assert errors[0] < 1.2 * errors[1]
    assert not np.array_equal(found, vectors)


# **** the code for AMX ****

_LEFT = LeftSide(DType.UINT8, DotForm(DType.UINT8, DType.INT8, tiles=True))
_OF_BYTES, _OF_HALVES = Chain(Operand(INT32)), Chain(Operand(FLOAT32))
KERNELS: dict[str, Kernel] = {
    "bytes": GemmInt8(_LEFT, _OF_BYTES, in_place=True),
    "bytes-copied": GemmInt8(_LEFT, _OF_BYTES, in_place=False),
    "bytes-conv": ConvInt8(_LEFT, _OF_BYTES),
    "halves": TileGemm(_OF_HALVES, pairs=True),
    "halves-conv": TileDirect(_OF_HALVES, pairs=True, blocked=True),
}
_FULL = pytest.mark.full("cpu")


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n == "bytes" else _FULL) for n in KERNELS])
def test_code_for_amx_has_four_products_and_four_loads_in_a_step(name: str) -> None:
    k = Emitter(AMX)
    KERNELS[name].emit(k)
    code = assembly_of(k.text(), AMX)
    assert (code.count("\tldtilecfg\t"), code.count("\ttilerelease")) == (1, 1)
    assert "call" not in code
    blocks = re.split(r"^\.L\w+:", code, flags=re.MULTILINE)
    step = max(blocks, key=lambda block: len(re.findall(r"\ttdp\w+\t", block)))
    multiply = "tdpbf16ps" if name.startswith("halves") else "tdpbusd"
    assert re.findall(rf"\t{multiply}\t(%tmm\d), (%tmm\d), (%tmm\d)", step) == [
        ("%tmm6", "%tmm4", "%tmm0"),
        ("%tmm7", "%tmm4", "%tmm1"),
        ("%tmm6", "%tmm5", "%tmm2"),
        ("%tmm7", "%tmm5", "%tmm3"),
    ]
    assert (step.count("\ttileloadd\t"), step.count("\ttilestored\t")) == (4, 0)
    assert "%zmm" not in step
