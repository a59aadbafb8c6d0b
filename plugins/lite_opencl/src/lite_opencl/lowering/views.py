"""Operators that give a tensor another shape: no kernel runs where its elements lie densely."""

from __future__ import annotations

from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.fusion import Group
from lite_opencl.lowering.registry import lowers
from lite_opencl.tensors import dense_strides

__all__ = ["reshape"]


@lowers("Flatten", "Reshape", "Squeeze", "Unsqueeze")
def reshape(lowering: Lowering, group: Group) -> None:
    """The input as the shape that was inferred for the output."""
    x = lowering.dense(lowering.tensor(group.input(0)))
    shape = tuple(group.output.shape)
    lowering.bind(group.output, x.view(shape, dense_strides(shape)))
