"""Lowering of Softmax and LogSoftmax."""

from __future__ import annotations

from lite_compiler.fusion import Group
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.normalization import normalize
from lite_opencl.lowering.registry import lowers

__all__ = ["softmax"]

#: Approximate number of floating-point operations for an element, for profiles.
_OPERATIONS = 45


@lowers("Softmax", "LogSoftmax", epilogue=True)
def softmax(lowering: Lowering, group: Group) -> None:
    """Lower Softmax and LogSoftmax along an axis."""
    axes = [group.attributes["axis"] % len(group.output.shape)]
    normalize(lowering, group, group.head.op, axes, cost=_OPERATIONS)
