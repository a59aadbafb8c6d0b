"""The numbers that a session computes in if it allows 16 bits, in words for its user."""

from __future__ import annotations

from lite_cpu.machine import Machine

__all__ = ["MAX_ROWS", "bfloat16_unit", "float16_unit", "precision_details"]

#: Maximum number of rows, by measurement, with which memory limits the speed of a product: weights are then stored in
#: 16 bits.
MAX_ROWS = 2
#: Said of kernels that were tested under emulation only.
_NOT_RUN = "not run on hardware yet"


def precision_details(machine: Machine) -> dict[str, str]:
    """Return the details of a device that say what is computed in with each precision."""
    stored = f"float32; only the weights of large products of at most {MAX_ROWS} rows are stored in "
    no_half = "float32: the processor has no instruction that converts float16"
    products = f"bfloat16 products by {bfloat16_unit(machine)} with sums in float32, everything else in float32"
    halves = f"float16 products with constants by {float16_unit(machine)}, everything else in float32"
    return {
        "float16": halves if machine.half_products else f"{stored}float16" if machine.half else no_half,
        "bfloat16": products if machine.bf16_dot or machine.matrix_tiles else f"{stored}bfloat16",
        "int8": f"products of quantized models by {_int8_unit(machine)} with sums in int32",
    }


def bfloat16_unit(machine: Machine) -> str:
    """Return the name of the instructions by which a machine multiplies bfloat16, for users."""
    if machine.triple.startswith("aarch64"):
        return f"{'BFMMLA and BFDOT' if machine.bf16_matrix else 'BFDOT'} ({_NOT_RUN})"
    return f"AMX ({_NOT_RUN})" if machine.matrix_tiles else "AVX512-BF16"


def float16_unit(machine: Machine) -> str:
    """Return the name of the instructions by which a machine multiplies float16, for users."""
    return f"{'FMLA' if machine.triple.startswith('aarch64') else 'AVX512-FP16'} ({_NOT_RUN})"


def _int8_unit(machine: Machine) -> str:
    """Return the name of the instructions by which a machine multiplies bytes, for users."""
    if machine.triple.startswith("aarch64"):
        dots = "SMMLA" if machine.matrix_product else "SDOT" if machine.dot_product else "multiplication of int16"
        return f"{dots} ({_NOT_RUN})"
    if machine.matrix_tiles:
        return f"AMX ({_NOT_RUN})"
    if not machine.dot_product:
        return "multiplication of int16"
    return "AVX512-VNNI" if machine.vector_bytes == 64 else "AVX-VNNI"
