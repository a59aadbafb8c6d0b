"""Paddle's rules for strides and paddings, shared by convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import Dim
from lite_core.ir.dims import maximum
from lite_paddle.lowering.unlowerable import Unlowerable

__all__ = ["Pads", "explicit_pads", "onnx_pads", "per_axis", "same_pads"]

#: Elements before and after, for each spatial axis.
Pads = list[tuple[int, int]]


def per_axis(values: Sequence[int] | int, axes: int, what: str) -> list[int]:
    """Return one integer for each spatial axis; a single integer counts for all."""
    listed = [int(v) for v in values] if isinstance(values, (list, tuple)) else [int(values)]  # type: ignore[arg-type]
    if len(listed) == 1:
        listed *= axes
    if len(listed) != axes:
        raise Unlowerable(f"its {what} are {listed}, expected {axes} numbers")
    return listed


def explicit_pads(paddings: Sequence[int], axes: int) -> Pads:
    """Return the pads of the attribute ``paddings``: one number for each axis, or a pair for each.

    NOTE: pairs are adjacent (top, bottom, left, right); ONNX lists all beginnings before all ends.
    """
    numbers = [int(p) for p in paddings]
    if len(numbers) == 2 * axes:
        return list(zip(numbers[::2], numbers[1::2]))
    return [(p, p) for p in per_axis(numbers, axes, "paddings")]


def same_pads(sizes: Sequence[Dim], kernel: Sequence[int], strides: Sequence[int]) -> Pads | None:
    """Return the pads of ``padding_algorithm`` SAME, the odd element at the end; None if a size they need is unknown.

    ``before + after = max((ceil(size / stride) - 1) * stride + kernel - size, 0)``
    """
    pads: Pads = []
    for size, k, stride in zip(sizes, kernel, strides):
        total = maximum(((size + stride - 1) // stride - 1) * stride + k - size, 0)
        if not isinstance(total, int):
            return None
        pads.append((total // 2, total - total // 2))
    return pads


def onnx_pads(pads: Pads) -> tuple[int, ...]:
    """Return all beginnings, then all ends."""
    return tuple(b for b, _ in pads) + tuple(e for _, e in pads)
