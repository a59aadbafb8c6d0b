"""Lowering of Shape and Size to known values."""

from __future__ import annotations

from lite_compiler.fusion import Group
from lite_compiler.known_values import evaluate_known
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.registry import lowers

__all__ = ["shape"]


@lowers("Shape", "Size")
def shape(lowering: Lowering, group: Group) -> None:
    """Lower Shape and Size to known elements, which are uploaded like a constant if a kernel reads them."""
    (array,) = evaluate_known(group.head, {})
    lowering.set_known(group.output, array)
