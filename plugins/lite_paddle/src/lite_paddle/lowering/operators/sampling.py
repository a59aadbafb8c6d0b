"""Sampling at given coordinates: grid_sampler, and affine_grid, which computes such coordinates."""

from __future__ import annotations

from lite_core.ir import DType
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import integer_vector
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp


@lowers("grid_sampler")
def grid_sampler(op: SourceOp, context: Context) -> None:
    mode = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}.get(op.attrs["mode"])
    if mode is None:
        raise Unlowerable(f"its mode is {op.attrs['mode']!r}, expected bilinear, nearest or bicubic")
    attributes: dict[str, str | int] = {
        "mode": mode,
        "padding_mode": str(op.attrs["padding_mode"]),
        "align_corners": int(bool(op.attrs["align_corners"])),
    }
    x = context.input(op, "X")
    context.emit(op, "GridSample", [x, context.cast(context.input(op, "Grid"), x.dtype)], attributes, slot="Output")


@lowers("affine_grid")
def affine_grid(op: SourceOp, context: Context) -> None:
    theta, shape = context.input(op, "Theta"), context.optional(op, "OutputShape")
    if shape is None:
        sizes = context.attribute(op, "output_shape")
        if not sizes:
            raise Unlowerable("it has no output shape")
        size = context.builder.ints(*(int(s) for s in sizes))
    else:
        size = integer_vector(context, shape)
    if theta.dtype is DType.FLOAT16:
        theta = context.cast(theta, DType.FLOAT32)
    attributes = {"align_corners": int(bool(op.attrs["align_corners"]))}
    context.emit(op, "AffineGrid", [theta, size], attributes, slot="Output")
