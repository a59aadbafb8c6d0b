"""Channels-last operators in a channels-first graph, and vectors with one number per channel."""

from __future__ import annotations

from collections.abc import Callable

from lite_core.ir import Value
from lite_paddle.lowering.context import Context

__all__ = ["channels_first", "channels_last", "in_channels_first", "is_channels_last", "per_channel"]


def is_channels_last(layout: str) -> bool:
    """Return True if a ``data_format`` or ``data_layout`` has the channels last (NHWC, NDHWC, NLC)."""
    return len(layout) > 2 and layout.startswith("N") and layout.endswith("C")


def channels_first(context: Context, value: Value) -> Value:
    """Transpose a tensor [N, ..., C] to [N, C, ...]."""
    rank = context.rank(value, "its channels are last and must be moved")
    return context.transpose(value, [0, rank - 1, *range(1, rank - 1)]) if rank > 2 else value


def channels_last(context: Context, value: Value) -> Value:
    """Transpose a tensor [N, C, ...] to [N, ..., C]."""
    rank = context.rank(value, "its channels must be moved to the end")
    return context.transpose(value, [0, *range(2, rank), 1]) if rank > 2 else value


def in_channels_first(context: Context, value: Value, layout: str, compute: Callable[[Value], Value]) -> Value:
    """Apply a channels-first computation to a tensor of either layout; the result has the same layout."""
    if not is_channels_last(layout):
        return compute(value)
    return channels_last(context, compute(channels_first(context, value)))


def per_channel(context: Context, vector: Value, rank: int) -> Value:
    """Reshape a vector [C] so that it broadcasts against [N, C, ...] of a rank."""
    return context.reshape(vector, [-1] + [1] * (rank - 2)) if rank > 2 else vector
