"""Dot products of small integers in vector registers: the arithmetic of 8-bit matrix products.

Each lane of a vector of int32 sums accumulates the products of a group of adjacent elements at once. A group has 32
bits of either operand: four bytes if the machine has an instruction for that, otherwise two int16. Both are exact.
Machines that multiply matrices of bytes have groups of eight (:mod:`.small_matrices`).
On x86 processors without such an instruction, ``pmaddubsw`` multiplies bytes, but saturates the sums of two products at
16 bits. It is exact for weights of 7 bits, as quantization tools make for these processors, and used only for them: a
Zen 4, held to AVX2, then multiplies 1.7 times as fast as in pairs of int16. With weights of 8 bits, split into two
parts, it would be 0.9 times as fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core.ir import DType
from lite_cpu.emitter import I32 as INT32_TYPE
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.machine import Machine
from lite_cpu.machine_code.ir_module import ir

__all__ = [
    "INT16_PAIRS",
    "DotForm",
    "broadcast_group",
    "byte_form",
    "emit_dots",
    "emit_lane_dots",
    "is_x86",
    "packed_size",
    "vector_form",
]

Array = np.ndarray[Any, Any]
I32 = DType.INT32


@dataclass(frozen=True, slots=True)
class DotForm:
    """The element types that a dot product multiplies: of the left matrix and of the packed right matrix.

    ``matrices``: one instruction computes the products of two rows and two columns (:mod:`.small_matrices`).
    ``tiles``: one instruction computes those of 16 rows and 16 columns (:mod:`.matrix_tiles`).
    """

    left: DType
    right: DType
    matrices: bool = False
    tiles: bool = False

    @property
    def group(self) -> int:
        """Number of products that are summed in one lane."""
        return 8 if self.matrices else 4 // self.left.itemsize

    def steps(self, depth: int) -> int:
        """Return the number of groups that cover ``depth`` elements."""
        return -(-depth // self.group)


#: The form that every machine supports, also for differences of bytes and their zero points.
INT16_PAIRS = DotForm(DType.INT16, DType.INT16)


def byte_form(machine: Machine, stored: DType = DType.UINT8) -> DotForm | None:
    """Return the form of the machine's dot product of bytes, or None; ``stored`` is the type of the left matrix.

    VNNI needs an unsigned left side, SDOT and SMMLA a signed one. AMX multiplies either.
    """
    if machine.matrix_tiles:
        return DotForm(stored, DType.INT8, tiles=True)
    if not machine.dot_product:
        return None
    return DotForm(DType.UINT8 if is_x86(machine) else DType.INT8, DType.INT8, machine.matrix_product)


def vector_form(machine: Machine, form: DotForm) -> DotForm:
    """Return the form that multiplies the panels of ``form`` in vector registers, if there is one, instead of tiles."""
    return DotForm(DType.UINT8, DType.INT8) if form.tiles and machine.dot_product else form


def is_x86(machine: Machine) -> bool:
    """Return True for an x86-64 processor."""
    return machine.triple.startswith("x86")


def emit_dots(k: Emitter, form: DotForm, sums: Val, left: Val, right: Val) -> Val:
    """Add the products of one group to every lane of ``sums`` and return the result.

    Args:
        k: the emitter.
        form: the element types.
        sums: a vector of int32.
        left: a group in the 32 bits of every lane.
        right: as many lanes of ``form.group`` elements each, as one vector of elements.
    """
    count = right.lanes
    a = Val(k, k.b.bitcast(left.ir, right.ir.type), form.left, count)
    if form == INT16_PAIRS:
        return sums + _dot_pairs(k, a, right)
    if form.left is DType.UINT8 and not k.machine.dot_product:
        return sums + _dot_pairs(k, _saturated_pairs(k, a, right), k.constant(1, DType.INT16, 2 * sums.lanes))
    if form.left is DType.UINT8:
        # LLVM 20 takes the bytes as int32. LLVM 22 takes them as bytes, and rewrites calls of the older form.
        name, groups = f"llvm.x86.avx512.vpdpbusd.{32 * sums.lanes}", k.b.bitcast(right.ir, sums.ir.type)
        return Val(k, k.intrinsic(name, sums.ir.type, [sums.ir, left.ir, groups]), I32, sums.lanes)
    name = f"llvm.aarch64.neon.sdot.v{sums.lanes}i32.v{count}i8"
    # The left group is the last operand, which may be a lane.
    return Val(k, k.intrinsic(name, sums.ir.type, [sums.ir, right.ir, a.ir]), I32, sums.lanes)


def emit_lane_dots(k: Emitter, form: DotForm, sums: Val, left: Val, number: int, right: Val) -> Val:
    """Add the products of one group, chosen from several, to every lane of ``sums``, on machines that multiply by lane.

    Args:
        k: the emitter.
        form: the element types.
        sums: a vector of int32.
        left: adjacent groups, as int32; or a single one.
        number: the lane of the group in ``left``.
        right: see :func:`emit_dots`.
    """
    lanes = sums.lanes
    if form != INT16_PAIRS:
        return emit_dots(k, form, sums, left.repeat_lane(number, lanes), right)
    pairs = left.splat(lanes).bits(DType.INT16)
    for i in range(form.group):
        elements = right.shuffle(right, range(i, right.lanes, form.group))
        sums = sums + pairs.repeat_lane(number * form.group + i, lanes).to(I32) * elements.to(I32)
    return sums


def _dot_pairs(k: Emitter, a: Val, b: Val) -> Val:
    """Return the products of int16, summed in pairs, as int32."""
    count, sums = a.lanes, a.lanes // 2
    if is_x86(k.machine):
        name = {4: "sse2.pmadd.wd", 8: "avx2.pmadd.wd", 16: "avx512.pmaddw.d.512"}[sums]
        result = ir.VectorType(INT32_TYPE, sums)
        return Val(k, k.intrinsic(f"llvm.x86.{name}", result, [a.ir, b.ir]), I32, sums)
    even, odd = range(0, count, 2), range(1, count, 2)
    low = a.shuffle(a, even).to(I32) * b.shuffle(b, even).to(I32)
    return low + a.shuffle(a, odd).to(I32) * b.shuffle(b, odd).to(I32)


def _saturated_pairs(k: Emitter, a: Val, b: Val) -> Val:
    """Return the products of uint8 and int8, summed in pairs, as int16."""
    pairs = a.lanes // 2
    name = {8: "ssse3.pmadd.ub.sw.128", 16: "avx2.pmadd.ub.sw", 32: "avx512.pmaddubs.w.512"}[pairs]
    result = ir.VectorType(ir.IntType(16), pairs)
    return Val(k, k.intrinsic(f"llvm.x86.{name}", result, [a.ir, b.ir]), DType.INT16, pairs)


def broadcast_group(pointer: Pointer, form: DotForm, lanes: int) -> Val:
    """Load the group at an address into the 32 bits of every lane."""
    k, group = pointer.k, pointer.load(form.group)
    return Val(k, k.b.bitcast(group.ir, INT32_TYPE), I32).splat(lanes)


def packed_size(form: DotForm, runs: int, depth: int, columns: int, lanes: int) -> int:
    """Return the number of elements of one matrix packed by :func:`~lite_cpu.dot_panels.pack_dots`."""
    return runs * form.steps(depth) * form.group * -(-columns // lanes) * lanes
