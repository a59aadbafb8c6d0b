"""Products with constant weights of 4 and 8 bits, compared with float64, on each level of this processor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from levels import Array, backend_for, machine_params, run_on, runnable_machines
from llvmlite import binding
from random_graphs import Example
from saving import assert_same, compiled, saved, split

from lite_core import load
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Value
from lite_core.plugins.backends import plugins_with
from lite_cpu.chains import Chain, Operand
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.narrow_product import NarrowProduct, middle_of
from lite_cpu.kernels.split_rows import SplitRows
from lite_cpu.kernels.widened_product import WidenedProduct
from lite_cpu.lowering.narrow_products import keep_narrow
from lite_cpu.machine import ARM_V8, X86_64_V3, X86_64_V4, Machine
from lite_cpu.machine_code.objects import compile_ir
from lite_cpu.narrow_panels import NarrowPanels

pytestmark = pytest.mark.skipif(not runnable_machines(), reason="this is not an x86-64 processor")

F32 = DType.FLOAT32
VNNI = replace(X86_64_V4, name="x86-64-v4+vnni", features=(*X86_64_V4.features, "+avx512vnni"), dot_product=True)
SDOT = replace(ARM_V8, features=(*ARM_V8.features, "+dotprod"), dot_product=True)
_RANGES = {"int4": (-8, 8), "uint4": (0, 16), "int8": (-128, 128), "uint8": (0, 256)}


def machines() -> list[Machine]:
    """Return the runnable levels, and the highest with VNNI if the processor has it."""
    return [*runnable_machines(), *([VNNI] if binding.get_host_cpu_features().get("avx512vnni") else [])]


every_machine = pytest.mark.parametrize("machine", machine_params(machines()))


@dataclass(frozen=True)
class Product:
    """A product with narrow weights; ``block`` 0 stands for a scale for each column, ``single`` for one in all."""

    dtype: str
    block: int
    rows: tuple[int, ...] = (1,)
    depth: int = 320
    columns: int = 210
    zeros: bool = False
    transposed: bool = False
    op: str = "MatMul"
    single: bool = False

    def numbers(self, seed: int, *shape: int) -> Array:
        low, high = _RANGES[self.dtype]
        return np.random.default_rng(seed).integers(low, high, shape)

    def parameters(self) -> tuple[Array, Array, Array]:
        """Return weights [columns, depth], scales and zero points [columns, blocks]."""
        blocks = -(-self.depth // self.block) if self.block else 1
        shape = (1, 1) if self.single else (self.columns, blocks)
        scales = np.random.default_rng(2).uniform(0.01, 0.1, shape).astype(np.float32)
        zeros = self.numbers(3, *shape) if self.zeros else np.zeros(shape, np.int64)
        return self.numbers(1, self.columns, self.depth), scales, zeros

    def graph(self, epilogue: Sequence[str] = ()) -> Graph:
        b = GraphBuilder("product")
        x = b.input("x", "float32", [*self.rows, self.depth])
        y = self.add_to(b, x)
        for op in epilogue:
            operands = [b.constant(np.linspace(-1, 1, self.columns).astype(np.float32))] if op == "Add" else []
            y = b.add(op, [y, *operands])
        b.output(y, "y")
        return b.build()

    def add_to(self, b: GraphBuilder, x: Value) -> Value:
        w, scales, zeros = self.parameters()
        axis, dtype = (1 if self.block else 0), DType(self.dtype).numpy
        if not self.transposed:
            w, scales, zeros, axis = w.T, scales.T, zeros.T, 1 - axis
        if not self.block:
            scales, zeros = scales.reshape(-1), zeros.reshape(-1)
        inputs = [b.constant(w.astype(np.int16).astype(dtype)), b.constant(np.ascontiguousarray(scales))]
        inputs += [b.constant(np.ascontiguousarray(zeros).astype(np.int16).astype(dtype))] if self.zeros else []
        wide = b.add("DequantizeLinear", inputs, {"axis": axis, "block_size": self.block})
        if self.op == "Gemm":
            bias = b.constant(np.linspace(-1, 1, self.columns).astype(np.float32))
            return b.add("Gemm", [x, wide, bias], {"transB": int(self.transposed)})
        return b.add("MatMul", [x, b.add("Transpose", [wide], {"perm": (1, 0)}) if self.transposed else wide])

    def x(self) -> Array:
        return np.random.default_rng(4).standard_normal((*self.rows, self.depth)).astype(np.float32)

    def expected(self, x: Array) -> Array:
        """Return the product in float64."""
        w, scales, zeros = self.parameters()
        of_block = np.arange(self.depth) // (self.block or self.depth)
        if self.single:
            scales, zeros = scales[0, 0], zeros[0, 0]
        else:
            scales, zeros = scales[:, of_block], zeros[:, of_block]
        result: Array = x.astype(np.float64) @ ((w - zeros) * scales.astype(np.float64)).T
        return result + np.linspace(-1, 1, self.columns) if self.op == "Gemm" else result


def check(machine: Machine, product: Product, **options: Any) -> None:
    """Assert that results are as exact as sums of float32."""
    graph, x = product.graph(), product.x()
    assert any(node.op == "NarrowMatMul" for node in keep_narrow(graph).nodes)
    actual, expected = run_on(machine, graph, {"x": x}, **options)["y"], product.expected(x)
    w, scales, zeros = product.parameters()
    largest = np.abs(w - zeros.reshape(-1)[0]).max() * scales.max() * np.abs(x).sum(-1).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=2.0**-21 * largest)


#: The tests of the contributors' tier use the kernel of this product, which takes a second to compile.
USUAL = Product("uint4", 32, (5,), zeros=True, transposed=True)
MORE = [
    Product("int4", 32),
    Product("int8", 0, (2, 3), transposed=True, op="MatMul"),
    Product("uint4", 16, (7,), zeros=True),
    Product("int4", 256, (4,), depth=520, transposed=True),
    Product("uint4", 0, (3,), zeros=True),
    Product("uint4", 64, (2,)),
    Product("int4", 512, (2,)),
    Product("int8", 128, (9,), depth=330, zeros=True),
    Product("uint8", 48, (4,), zeros=True, transposed=True, op="Gemm"),
    Product("uint8", 0, (33,), zeros=True, single=True),
    Product("int8", 0, (1,), single=True),
    Product("int4", 32, (2, 1, 3), columns=256),
    Product("int4", 32, (), columns=224),
]


@every_machine
def test_product(machine: Machine) -> None:
    check(machine, USUAL)


@pytest.mark.full("cpu")
@every_machine
@pytest.mark.parametrize("product", MORE, ids=str)
def test_more_products(machine: Machine, product: Product) -> None:
    check(machine, product)


@pytest.mark.full("cpu")
@every_machine
@pytest.mark.parametrize("rows", [*range(1, 9), 40])
def test_every_height_of_a_tile_in_several_threads(machine: Machine, rows: int) -> None:
    check(machine, Product("int4", 32, (rows,), depth=160, columns=420), threads=2)


def labels_of(machine: Machine, graph: Graph, x: Array) -> tuple[list[str], Array]:
    """Return the kernels that run, and the first output."""
    plugins = plugins_with(backend_for(machine))
    session = load(graph, backend="level", plugins=plugins, threads=1, fallback="never")
    outputs = session.run({"x": x}, profile=True)
    assert session.last_profile is not None
    return [kernel.kernel for kernel in session.last_profile.kernels], next(iter(outputs.values()))


@pytest.mark.full("cpu")
@every_machine
def test_operators_after_the_product_run_in_its_step(machine: Machine) -> None:
    product = Product("int8", 0, (3,))
    x = product.x()
    labels, y = labels_of(machine, product.graph(["Add", "Relu"]), x)
    assert labels == ["splitrows", "narrowproduct"]
    expected = np.maximum(product.expected(x) + np.linspace(-1, 1, product.columns), 0)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-4)


def test_products_of_one_operand_split_it_once() -> None:
    b = GraphBuilder("two products")
    x = b.input("x", "float32", [2, 320])
    for columns in (210, 224):
        b.output(replace(USUAL, columns=columns).add_to(b, x), f"y{columns}")
    labels, _ = labels_of(machines()[-1], b.build(), replace(USUAL, rows=(2,)).x())
    assert labels == ["splitrows", "narrowproduct", "narrowproduct"]


def test_elements_of_all_magnitudes_keep_the_accuracy_of_their_block() -> None:
    product = replace(USUAL, rows=(4,))
    x = product.x() * np.repeat(np.float32(10) ** np.arange(-20, 20, 4, np.float32), 32)
    x[1], x[2, :64] = 0, 0
    actual = run_on(machines()[-1], product.graph(), {"x": x})["y"]
    np.testing.assert_allclose(actual, product.expected(x), rtol=1e-4)
    assert not actual[1].any()


def test_numbers_that_are_not_finite_give_nan_in_their_row_only() -> None:
    product = replace(USUAL, rows=(3,))
    x = product.x()
    x[0, 5], x[2, 7] = np.nan, np.inf
    actual = run_on(machines()[-1], product.graph(), {"x": x})["y"]
    assert np.isnan(actual[0]).all()
    assert not np.isfinite(actual[2]).any()
    np.testing.assert_allclose(actual[1], product.expected(x[1]), rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(machines()[-1] is not VNNI, reason="this processor has no VNNI")
def test_16_bits_of_precision_take_two_thirds_of_the_products() -> None:
    product = Product("int4", 32, (3,))
    x, expected = product.x(), product.expected(product.x())
    full, half = (run_on(VNNI, product.graph(), {"x": x}, precision=p)["y"] for p in ("float32", "float16"))
    errors = [np.abs(y - expected).max() / np.abs(expected).max() for y in (full, half)]
    assert errors[0] < 1e-6 < errors[1] < 2.0**-12  # half of float16's rounding of a factor


def test_small_weights_are_dequantized() -> None:
    assert keep_narrow(graph := Product("int4", 32, columns=40).graph()) is graph


def test_integers_on_both_sides_stay_an_integer_product() -> None:
    b = GraphBuilder("integers")
    x = b.add("DequantizeLinear", [b.input("x", "uint8", [2, 320]), b.constant(np.float32(0.5))])
    b.output(Product("int8", 0).add_to(b, x), "y")
    assert keep_narrow(graph := b.build()) is graph


def test_restored_program_makes_its_panels_of_the_weights_again() -> None:
    example = Example((graph := USUAL.graph()), {"x": USUAL.x()})
    assert_same(machines()[-1], example)
    pieces = saved(compiled(machines()[-1], graph))
    assert sum(map(len, split(pieces)[1])) < USUAL.depth * USUAL.columns // 8, "panels are saved"


def test_panels_of_nibbles_hold_every_element_once() -> None:
    w = np.arange(40 * 24).reshape(40, 24) % 16
    panels = NarrowPanels(False, 40, 24, 4, 16, 16, 8, DType.UINT8)
    packed = panels.pack(w.astype(np.uint8).astype(DType.UINT4.numpy)).reshape(2, 6, 16, 4)
    codes = np.stack([packed & 15, packed >> 4], axis=2)  # [panels, steps, halves, columns, bytes]
    unpacked = codes.transpose(1, 2, 4, 0, 3).reshape(48, 32)
    np.testing.assert_array_equal(unpacked[:40, :24], w)


def kernels(machine: Machine) -> list[Kernel]:
    chain = Chain(Operand(F32))
    forms = [(bits, pieces) for bits in (4, 8) for pieces in ([3, 2] if machine.dot_product else [0])]
    found: list[Kernel] = [NarrowProduct(chain, bits, 64, pieces, F32, True, True) for bits, pieces in forms]
    found += [SplitRows(64, pieces, middle_of(machine, bits)) for bits, pieces in forms]
    return found + [WidenedProduct(chain, bits, 64, DType.FLOAT16, True, True) for bits in (4, 8)]


@pytest.mark.full("cpu")
@pytest.mark.parametrize("machine", [ARM_V8, SDOT, X86_64_V3, VNNI], ids=lambda machine: machine.name)
def test_every_kernel_compiles(machine: Machine) -> None:
    for kernel in kernels(machine):
        k = Emitter(machine)
        kernel.emit(k)
        compile_ir(k.text(), machine)
