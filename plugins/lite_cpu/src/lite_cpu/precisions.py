"""The numbers that a session computes in if it allows 16 bits, in words for its user."""

from __future__ import annotations

from lite_cpu.machine import Machine

__all__ = ["MAX_ROWS", "precision_details"]

#: Maximum number of rows, by measurement, with which memory limits the speed of a product: weights are then stored in
#: 16 bits.
MAX_ROWS = 2


def precision_details(machine: Machine) -> dict[str, str]:
    """Return the details of a device that say what is computed in with each precision."""
    stored = f"float32; only the weights of large products of at most {MAX_ROWS} rows are stored in "
    no_half = "float32: the processor has no instruction that converts float16"
    return {"float16": f"{stored}float16" if machine.half else no_half, "bfloat16": f"{stored}bfloat16"}
