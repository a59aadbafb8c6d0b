"""Comparing shapes with symbols: what inference functions check of inputs that must fit each other."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import Dim, Shape
from lite_core.ops.inference import fail

__all__ = ["check_rank", "differ", "format_shape", "merge_dims"]


def differ(a: Dim, b: Dim) -> bool:
    """Whether two sizes are both known and not the same."""
    return isinstance(a, int) and isinstance(b, int) and a != b


def merge_dims(a: Dim, b: Dim) -> Dim:
    """One size for two that must be equal: the known one, if any."""
    return a if isinstance(a, int) else b if isinstance(b, int) else a


def format_shape(shape: Sequence[Dim]) -> str:
    """``[batch, 3, 224]``."""
    return "[" + ", ".join(map(str, shape)) + "]"


def check_rank(shape: Shape | None, rank: int, what: str) -> None:
    """Raise GraphError when the shape is known and has another rank."""
    if shape is not None and len(shape) != rank:
        raise fail(f"{what} must have rank {rank}, has shape {format_shape(shape)}")
