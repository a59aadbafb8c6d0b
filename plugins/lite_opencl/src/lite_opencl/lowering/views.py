"""Operators that give a tensor another shape: no kernel runs where strides can say it."""

from __future__ import annotations

from lite_compiler.fusion import Group
from lite_compiler.tensors import dense_strides
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.registry import lowers

__all__ = ["reshape"]


@lowers("Flatten", "Reshape", "Squeeze", "Unsqueeze")
def reshape(lowering: Lowering, group: Group) -> None:
    """The input as the shape that was inferred for the output."""
    x, shape = lowering.tensor(group.input(0)), tuple(group.output.shape)
    view = x.reshape(shape)
    if view is not None:
        lowering.bind(group.output, view)
        return
    result = lowering.target(group.output)
    if result.dtype.itemsize < x.dtype.itemsize:  # made of wide elements since narrow ones might overflow
        lowering.bind(group.output, lowering.dense(x).view(shape, dense_strides(shape)))
    else:
        lowering.copy(x, result.view(x.shape, dense_strides(x.shape)))
