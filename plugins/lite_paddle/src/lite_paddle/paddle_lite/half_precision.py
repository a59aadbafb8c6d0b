"""Operators that ARM processors compute in float16. Weights stay float32 in the file: the device converts them."""

from __future__ import annotations

from ..source import SourceOp
from .draft import Draft, element_type
from .kernels import Precision, Target, kernels_of
from .locations import Choice, Location

__all__ = ["MARKED", "half_choice"]

_MARKED_TEXT = """
conv2d depthwise_conv2d conv2d_transpose fc mul matmul matmul_v2 gru sequence_conv elementwise_add elementwise_sub
elementwise_mul elementwise_div prelu
"""
#: Operators whose constants the device converts where the attribute ``NAME_fp16`` says so.
MARKED = frozenset(_MARKED_TEXT.split())


def half_choice(draft: Draft, op: SourceOp) -> Choice | None:
    """Return the float16 kernel of an operator on ARM, None if it has none that takes the operator's constants."""
    kernels = [k for k in kernels_of(op.type) if k.target is Target.ARM and k.precision is Precision.FP16]
    values = [value for group in [*op.inputs.values(), *op.outputs.values()] for value in group]
    if not kernels or any(element_type(value) != "float32" for value in values):
        return None
    has_constants = any(value in draft.constants for values in op.inputs.values() for value in values)
    if has_constants and op.type not in MARKED:
        return None
    return Choice(kernels[0], Location.HALF, Location.HALF, frozenset(op.inputs))
