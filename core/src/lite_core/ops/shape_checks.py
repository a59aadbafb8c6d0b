"""What inference functions of several families check of shapes; sizes that are not known yet always pass."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import Dim, Shape
from lite_core.ops.inference import Inference, fail

__all__ = ["check_rank", "check_vector", "differ", "format_shape", "merge_dims"]


def differ(a: Dim, b: Dim) -> bool:
    """Whether two sizes are both known and not the same."""
    return isinstance(a, int) and isinstance(b, int) and a != b


def merge_dims(a: Dim, b: Dim) -> Dim:
    """One size for two that must be equal: the known one, if any."""
    return a if isinstance(a, int) else b if isinstance(b, int) else a


def format_shape(shape: Sequence[Dim] | None) -> str:
    """A shape for messages, ``[batch, 3, 224]``; ``[?]`` where even the rank is unknown."""
    return "[?]" if shape is None else "[" + ", ".join(map(str, shape)) + "]"


def check_rank(shape: Shape | None, rank: int, what: str) -> None:
    """Raise GraphError when the shape is known and has another rank."""
    if shape is not None and len(shape) != rank:
        raise fail(f"{what} must have rank {rank}, has shape {format_shape(shape)}")


def check_vector(inference: Inference, index: int, length: Dim, what: str, per: str) -> None:
    """An optional input must be a vector of ``length`` elements, one for each ``per``.

    Raises:
        GraphError: it has another rank or another length.
    """
    if not inference.has(index):
        return
    shape = inference.shape(index)
    if shape is not None and (len(shape) != 1 or differ(shape[0], length)):
        raise fail(f"{what} must be a vector of one element per {per}, [{length}]; it is {format_shape(shape)}")
