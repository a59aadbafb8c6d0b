"""Products of bfloat16 in pairs: one instruction multiplies two pairs and adds both products to a float32 sum.

A pair has the 32 bits of a float32, so every kernel of float32 products multiplies pairs if it is given other products:
rows of A, panels of B and windows then have half as many elements, each of them a pair of neighbours along the depth.

Intel's VDPBF16PS takes denormal numbers as zeros and rounds after each of the two additions; the sums have the
precision of float32. So do ARM's BFDOT, and BFMMLA, which multiplies two rows by two columns of groups of two pairs;
these round to odd, which is off by up to twice as much (Arm Architecture Reference Manual, BFDotAdd).
"""

from __future__ import annotations

from lite_core.ir import DType
from lite_cpu.emitter import Val, bfloats
from lite_cpu.kernels.integer_dots import is_x86
from lite_cpu.machine import Machine

__all__ = ["PAIR", "add_pair_matrices", "add_pairs", "group_of_pairs", "join_pairs"]

#: The type of a pair in memory and in registers; the first element of a pair is in its low half.
PAIR = DType.UINT32


def add_pairs(x: Val, weights: Val, total: Val) -> Val:
    """Return ``total`` plus both products of every lane, as float32; ``x`` and ``weights`` are vectors of pairs."""
    k, lanes = total.k, total.lanes
    arguments = [total.ir, *(k.b.bitcast(operand.ir, bfloats(2 * lanes)) for operand in (x, weights))]
    if is_x86(k.machine):
        name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}"
    else:
        name = f"llvm.aarch64.neon.bfdot.v{lanes}f32.v{2 * lanes}bf16"
        # The left pair is the last operand, which may be a lane.
        arguments[1:] = arguments[:0:-1]
    return Val(k, k.intrinsic(name, total.ir.type, arguments), DType.FLOAT32, lanes)


def add_pair_matrices(x: Val, weights: Val, block: Val) -> Val:
    """Return a block of float32 sums plus the products of groups of two pairs, see :mod:`.small_matrices`."""
    k, operands = block.k, (x, weights)
    arguments = [block.ir, *(k.b.bitcast(operand.ir, bfloats(2 * operand.lanes)) for operand in operands)]
    products = k.intrinsic("llvm.aarch64.neon.bfmmla", block.ir.type, arguments)
    return Val(k, products, DType.FLOAT32, block.lanes)


def group_of_pairs(machine: Machine, depth: int) -> int:
    """Return how many elements along the depth, 4 or 2, the instruction takes that multiplies rows of ``depth``."""
    return 4 if machine.bf16_matrix and -(-depth // 2) % 2 == 0 else 2


def join_pairs(first: Val, second: Val | None = None) -> Val:
    """Return pairs of the elements of two vectors of bfloat16, or of one vector and zeros."""
    low = _bits(first)
    return low if second is None else low | _bits(second) << 16


def _bits(x: Val) -> Val:
    """Return the bits of bfloat16 in the low halves of pairs."""
    return Val(x.k, x.ir, DType.UINT16, x.lanes).to(PAIR)
