"""Conversion between element types, with the same results as the reference of Cast."""

from __future__ import annotations

from lite_core.ir import DType
from lite_cpu.emitter import Val
from lite_cpu.scalar_ops.definition import Call

__all__ = ["convert", "convert_to_output"]


def convert(x: Val, to: DType) -> Val:
    """Convert an element; bool is ``x != 0``, floats become integers by truncation to int64 and then to ``to``."""
    if x.dtype.is_floating and to.is_integer:
        # NOTE: a direct conversion to a smaller type would give machine-dependent results out of range.
        return x.to(DType.INT64).to(to)
    return x.to(to)


def convert_to_output(call: Call) -> Val:
    """Convert the first argument to the output's type; 16-bit floats are rounded to it and returned as float32."""
    x = call[0]
    if not call.output.is_half:
        return convert(x, call.output)
    return x.to(DType.FLOAT32).to(call.output).to(DType.FLOAT32)
