"""Descriptions of processors for the kernels: registers, instructions and caches.

A :class:`Machine` is data. Kernels decide everything that differs between processors from it, so the same kernels can
be emitted for SSE4, AVX2, AVX-512, NEON or any other target of LLVM, on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lite_cpu.tuning import Tuning

__all__ = ["ARM_V8", "X86_64_V2", "X86_64_V3", "X86_64_V4", "Machine"]


@dataclass(frozen=True, slots=True)
class Machine:
    """Description of a processor.

    Attributes:
        name: readable name, for example ``x86-64-v3``; part of the key of every compiled kernel.
        triple: the LLVM target, always one whose objects are ELF files: Lite loads code images itself, so one object
            format serves every operating system.
        cpu: LLVM's name of the processor whose instructions are used, and for which they are ordered.
        order_for: LLVM's name of the processor for which instructions are ordered instead; empty for ``cpu``.
        features: LLVM features beyond those of ``cpu``, each with its sign, for example ``+avx512vnni``.
        vector_bytes: width of a vector register, in bytes.
        vector_registers: number of vector registers.
        fma: it has a fused multiply-add instruction.
        masks: it has instructions for masked loads and stores.
        memory_operands: arithmetic instructions read an operand from memory, so that a number that is used once needs
            neither a register nor an instruction that loads it.
        multiply_by_lane: multiply-adds take one element of a vector register for all elements of an operand, so that a
            single load serves several of them (NEON's multiplication by element).
        dot_product: one instruction multiplies and adds four 8-bit pairs (VNNI, SDOT).
        matrix_product: one instruction multiplies 2 x 8 by 8 x 2 bytes with sign (SMMLA).
        bf16_dot: one instruction multiplies two pairs of bfloat16 and adds both products to a float32 (VDPBF16PS,
            BFDOT).
        bf16_matrix: one instruction multiplies 2 x 4 by 4 x 2 bfloat16 and adds the products to float32 (BFMMLA).
        matrix_tiles: it multiplies matrices of bytes and of bfloat16 in registers of 16 rows of 64 bytes (AMX). Without
            ``+amx-tile`` among the features they are emulated, which is for tests.
        half: one instruction converts float16 to float32.
        half_products: one instruction multiplies and adds float16 (FMLA, VFMADDPH). Without ``+fullfp16`` or
            ``+avx512fp16`` among the features it is emulated, which is for tests.
        l1_bytes: size of one core's first-level data cache, in bytes.
        l2_bytes: size of one core's second-level cache, in bytes.
        tuning: numbers that choices between equally correct kernels and plans depend on. Not part of the
            representation, which is in the key of every kernel: see :attr:`~lite_cpu.tuning.Tuning.code_key`.
    """

    name: str
    triple: str
    cpu: str
    features: tuple[str, ...] = ()
    order_for: str = ""
    vector_bytes: int = 16
    vector_registers: int = 16
    fma: bool = False
    masks: bool = False
    memory_operands: bool = True
    multiply_by_lane: bool = False
    dot_product: bool = False
    matrix_product: bool = False
    bf16_dot: bool = False
    bf16_matrix: bool = False
    matrix_tiles: bool = False
    half: bool = False
    half_products: bool = False
    l1_bytes: int = 32 << 10
    l2_bytes: int = 512 << 10
    tuning: Tuning = field(default=Tuning(), repr=False)

    def lanes(self, itemsize: int = 4) -> int:
        """Return the number of elements of ``itemsize`` bytes in a vector register."""
        return self.vector_bytes // itemsize

    def with_caches(self, l1_bytes: int, l2_bytes: int) -> Machine:
        """Return the same processor with other cache sizes, for example those of the machine at hand."""
        return replace(self, l1_bytes=l1_bytes, l2_bytes=l2_bytes)

    def with_tuning(self, tuning: Tuning) -> Machine:
        """Return the same processor with other numbers for choices, for example those measured on it."""
        return replace(self, tuning=tuning)


_LINUX_X86 = "x86_64-unknown-linux-gnu"

#: SSE4.2: every x86-64 processor since 2009.
X86_64_V2 = Machine("x86-64-v2", _LINUX_X86, "x86-64-v2", vector_bytes=16, vector_registers=16)

#: AVX2 and FMA: since 2013 (Intel) and 2015 (AMD).
X86_64_V3 = Machine(
    "x86-64-v3", _LINUX_X86, "x86-64-v3", vector_bytes=32, vector_registers=16, fma=True, masks=True, half=True
)

#: AVX-512 F, BW, CD, DQ and VL.
X86_64_V4 = Machine(
    "x86-64-v4",
    _LINUX_X86,
    "x86-64-v4",
    ("-prefer-256-bit",),
    vector_bytes=64,
    vector_registers=32,
    fma=True,
    masks=True,
    half=True,
    l2_bytes=1 << 20,
)

#: ARMv8.0 with NEON: every 64-bit ARM processor that runs Linux. macOS, Windows and Android keep the register x18 for
#: themselves, so no code may use it. The order of instructions suits a Cortex-A55, which executes them in order; by
#: LLVM's models, other orders take up to 60 % longer there, and no order saves more than 3 % on a Neoverse N1.
ARM_V8 = Machine(
    "arm-v8",
    "aarch64-unknown-linux-gnu",
    "generic",
    ("+neon", "+reserve-x18"),
    order_for="cortex-a55",
    vector_bytes=16,
    vector_registers=32,
    fma=True,
    memory_operands=False,
    multiply_by_lane=True,
    half=True,
)
