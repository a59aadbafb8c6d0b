"""Conversion between element types, with the same results as the reference of Cast."""

from __future__ import annotations

from lite_core.ir import DType
from lite_cpu.emitter import Val
from lite_cpu.scalar_ops.definition import Call

__all__ = ["convert", "convert_to_output"]


def convert(x: Val, to: DType) -> Val:
    """Convert an element; bool is ``x != 0``, floats become integers by truncation to int64 and then to ``to``.

    From 2**63 on, floats are converted directly to uint64.
    """
    if x.dtype.is_floating and to.is_integer:
        # NOTE: a direct conversion to a smaller type would give machine-dependent results out of range.
        wide = x.to(DType.FLOAT32) if x.dtype.is_half else x
        wrapped = wide.to(DType.INT64).to(to)
        return (wide >= 2.0**63).select(wide.to(to), wrapped) if to is DType.UINT64 else wrapped
    return x.to(to)


def convert_to_output(call: Call) -> Val:
    """Convert the first argument to the output's type; 16-bit floats are rounded to it and returned as float32."""
    x = call[0]
    if not call.output.is_half:
        return convert(x, call.output)
    return x.to(DType.FLOAT32).to(call.output).to(DType.FLOAT32)
