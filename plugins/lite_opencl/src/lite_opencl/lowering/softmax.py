"""Softmax and LogSoftmax."""

from __future__ import annotations

from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.fusion import Group
from lite_opencl.lowering.normalization import normalize
from lite_opencl.lowering.registry import lowers

__all__ = ["softmax"]

#: Floating-point operations for an element, roughly, for profiles.
_OPERATIONS = 45


@lowers("Softmax", "LogSoftmax")
def softmax(lowering: Lowering, group: Group) -> None:
    """Shares of one along an axis, or their logarithms."""
    source, target = lowering.tensor(group.input(0)), lowering.target(group.output)
    axes = [group.attributes["axis"] % source.rank]
    normalize(lowering, group.head.op, source, target, axes, cost=_OPERATIONS)
