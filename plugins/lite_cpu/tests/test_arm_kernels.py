"""Code for 64-bit ARM, made on any processor: the loops of products, and the registers that are used."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lite_core.ir import DType
from lite_cpu.chains import Chain, Operand
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.depthwise import Axis, Depthwise, Edges
from lite_cpu.kernels.dot import Dot
from lite_cpu.kernels.gemm import Gemm
from lite_cpu.kernels.gemm_int8 import GemmInt8
from lite_cpu.kernels.int8_tiles import LeftSide
from lite_cpu.kernels.integer_dots import INT16_PAIRS, byte_form
from lite_cpu.kernels.tiles import gemm_tile
from lite_cpu.machine import ARM_V8, Machine
from lite_cpu.machine_code.objects import assembly_of

DOT_PRODUCT = replace(ARM_V8, features=(*ARM_V8.features, "+dotprod"), dot_product=True)
MATRIX_PRODUCT = replace(DOT_PRODUCT, features=(*DOT_PRODUCT.features, "+i8mm"), matrix_product=True)

BFLOAT16 = replace(ARM_V8, features=(*ARM_V8.features, "+bf16"), bf16_dot=True, bf16_matrix=True)

_LABEL = re.compile(r"^(\.L\w+):", re.MULTILINE)
_BRANCH = re.compile(r"^\t(?:b|b\.\w+|t?cb?n?z|tbn?z)\s.*?(\.L\w+)$", re.MULTILINE)


def code_of(kernel: Kernel, machine: Machine) -> str:
    k = Emitter(machine)
    kernel.emit(k)
    return assembly_of(k.text(), machine, optimize=kernel.optimize)


def loops_without_branches(code: str) -> list[str]:
    """Return the innermost loops that are a single block: from a label to the branch back to it."""
    pieces = _LABEL.split(code)
    blocks = zip(pieces[1::2], pieces[2::2])
    return [
        block[: branch.end()]
        for label, block in blocks
        if (branch := next((b for b in _BRANCH.finditer(block) if b[1] == label), None))
    ]


def product_of(machine: Machine, *, of_bytes: bool) -> Kernel:
    if not of_bytes:
        return Gemm(Chain(Operand(DType.FLOAT32)))
    form = byte_form(machine) or INT16_PAIRS
    return GemmInt8(LeftSide(DType.UINT8, form), Chain(Operand(DType.INT32)), in_place=False)


@pytest.mark.parametrize(
    ("machine", "of_bytes", "multiply"),
    [(ARM_V8, False, "fmla"), (ARM_V8, True, "smlal2?"), (DOT_PRODUCT, True, "sdot")],
    ids=["float32", "int16", "int8"],
)
def test_products_multiply_by_lane_in_registers(machine: Machine, of_bytes: bool, multiply: str) -> None:
    code = code_of(product_of(machine, of_bytes=of_bytes), machine)
    by_lane = re.compile(rf"\t{multiply}\t.*\.\w+\[\d\]$", re.MULTILINE)
    loop = max(loops_without_branches(code), key=lambda block: len(by_lane.findall(block)))
    rows, vectors = gemm_tile(machine)
    steps = machine.lanes() * (2 if multiply == "smlal2?" else 1)
    assert len(by_lane.findall(loop)) == rows * vectors * steps
    assert "[sp" not in loop
    assert not re.search(r"\b[xw]18\b", code)


def test_products_of_matrices_of_bytes_stay_in_registers() -> None:
    code = code_of(product_of(MATRIX_PRODUCT, of_bytes=True), MATRIX_PRODUCT)
    loop = max(loops_without_branches(code), key=lambda block: block.count("\tsmmla\t"))
    rows, vectors = gemm_tile(MATRIX_PRODUCT)
    # 32 products each, two groups of eight along the depth.
    assert loop.count("\tsmmla\t") == rows * vectors * MATRIX_PRODUCT.lanes() * 16 // 32
    assert "[sp" not in loop


def test_products_of_matrices_of_bfloat16_stay_in_registers() -> None:
    code = code_of(Gemm(Chain(Operand(DType.BFLOAT16)), pairs=True, matrices=True), BFLOAT16)
    loop = max(loops_without_branches(code), key=lambda block: block.count("\tbfmmla\t"))
    rows, vectors = gemm_tile(BFLOAT16)
    # 16 products each, two groups of four along the depth.
    assert loop.count("\tbfmmla\t") == rows * vectors * BFLOAT16.lanes() * 8 // 16
    assert "[sp" not in loop
    assert "\tbfcvtn\t" in code
    assert not re.search(r"\b[xw]18\b", code)


def test_depthwise_keeps_sums_and_weights_in_registers() -> None:
    across, down = Axis(3, 2, 1, 4), Axis(3, 2, 1, 2)
    edges = Edges.of(across, 1, 56, 2 * 56)
    code = code_of(Depthwise(across, down, False, Chain(Operand(DType.FLOAT32)), edges), ARM_V8)
    loop = max(loops_without_branches(code), key=lambda block: block.count("\tfmla\t"))
    assert loop.count("\tfmla\t") == 2 * 4 * 3 * 3
    assert not re.search(r"\tq\d+, .*\[sp", loop)
    assert not re.search(r"\b[xw]18\b", code)


def test_instructions_are_ordered_for_the_processor_that_the_machine_names() -> None:
    kernel = Dot(Chain(Operand(DType.FLOAT32)))
    assert code_of(kernel, ARM_V8) != code_of(kernel, replace(ARM_V8, order_for="neoverse-n1"))
