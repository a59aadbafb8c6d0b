"""Conversion between element types, as the references of Cast do it."""

from __future__ import annotations

from lite_core.ir import DType
from lite_cpu.emitter import Val
from lite_cpu.scalar_ops.definition import Call

__all__ = ["convert", "convert_to_output"]


def convert(x: Val, to: DType) -> Val:
    """To bool is ``x != 0``; a float is cut off to an int64, whose lower bits a smaller integer keeps."""
    if x.dtype.is_floating and to.is_integer:
        # NOTE: straight to a smaller type, what is out of range would differ between machines.
        return x.to(DType.INT64).to(to)
    return x.to(to)


def convert_to_output(call: Call) -> Val:
    """The first argument as the output's type; 16-bit floats as float32, rounded to what they can hold."""
    x = call[0]
    if not call.output.is_half:
        return convert(x, call.output)
    return x.to(DType.FLOAT32).to(call.output).to(DType.FLOAT32)
