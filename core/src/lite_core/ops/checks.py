"""Checks that inference functions of several families share; sizes that are not known yet always pass."""

from __future__ import annotations

from lite_core.ir import Dim, Shape
from lite_core.ops.inference import Inference, fail
from lite_core.ops.shape_checks import differ, format_shape

__all__ = ["check_vector", "differ", "shape_text"]


def shape_text(shape: Shape | None) -> str:
    """A shape for messages, ``[1, 3, height]``; ``[?]`` where even the rank is unknown."""
    return "[?]" if shape is None else format_shape(shape)


def check_vector(inference: Inference, index: int, length: Dim, what: str, per: str) -> None:
    """An optional input must be a vector of ``length`` elements, one for each ``per``.

    Raises:
        GraphError: it has another rank or another length.
    """
    if not inference.has(index):
        return
    shape = inference.shape(index)
    if shape is not None and (len(shape) != 1 or differ(shape[0], length)):
        raise fail(f"{what} must be a vector of one element per {per}, [{length}]; it is {shape_text(shape)}")
