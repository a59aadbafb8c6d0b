"""Operators that change the shape of a tensor: views if strides can express them, else copies."""

from __future__ import annotations

from lite_compiler.fusion import Group
from lite_compiler.tensors import dense_strides
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.registry import lowers

__all__ = ["reshape"]


@lowers("Flatten", "Reshape", "Squeeze", "Unsqueeze")
def reshape(lowering: Lowering, group: Group) -> None:
    """Lower Flatten, Reshape, Squeeze and Unsqueeze to a view with the inferred shape, or to a copy."""
    x, shape = lowering.tensor(group.input(0)), tuple(group.output.shape)
    view = x.reshape(shape)
    if view is not None:
        lowering.bind(group.output, view)
        return
    result = lowering.target(group.output)
    if result.dtype.itemsize < x.dtype.itemsize:  # the input stays wide since its elements might overflow float16
        lowering.bind(group.output, lowering.dense(x).view(shape, dense_strides(shape)))
    else:
        lowering.copy(x, result.view(x.shape, dense_strides(x.shape)))
