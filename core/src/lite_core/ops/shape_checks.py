"""Shape checks shared by the inference functions of several families; unknown sizes always pass."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import Dim, Shape
from lite_core.ops.inference import Inference, fail

__all__ = ["check_rank", "check_vector", "differ", "format_shape", "merge_dims"]


def differ(a: Dim, b: Dim) -> bool:
    """Return True if two sizes are both known and different."""
    return isinstance(a, int) and isinstance(b, int) and a != b


def merge_dims(a: Dim, b: Dim) -> Dim:
    """Return one of two sizes that must be equal, the known one if any."""
    return a if isinstance(a, int) else b if isinstance(b, int) else a


def format_shape(shape: Sequence[Dim] | None) -> str:
    """Format a shape for messages: ``[batch, 3, 224]``, or ``[?]`` if the rank is unknown."""
    return "[?]" if shape is None else "[" + ", ".join(map(str, shape)) + "]"


def check_rank(shape: Shape | None, rank: int, what: str) -> None:
    """Raise GraphError if the shape is known and has another rank."""
    if shape is not None and len(shape) != rank:
        raise fail(f"{what} must have rank {rank}, has shape {format_shape(shape)}")


def check_vector(inference: Inference, index: int, length: Dim, what: str, per: str) -> None:
    """Raise GraphError unless an optional input is a vector of ``length`` elements, one for each ``per``."""
    if not inference.has(index):
        return
    shape = inference.shape(index)
    if shape is not None and (len(shape) != 1 or differ(shape[0], length)):
        raise fail(f"{what} must be a vector of one element per {per}, [{length}]; it is {format_shape(shape)}")
