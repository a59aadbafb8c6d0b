"""Sizes, positions and axes that are tensors: Paddle-Lite reads them as int32 without looking at their type."""

from __future__ import annotations

import numpy as np

from ...source import SourceOp, SourceType, SourceValue
from ..draft import Draft, element_type

__all__ = ["narrow_sizes"]

_SLOTS_TEXT = """
Shape ShapeTensor ShapeTensorList StartsTensor StartsTensorList EndsTensor EndsTensorList StridesTensor
StridesTensorList StepsTensorList OutSize SizeTensor AxisTensor SectionsTensorList RepeatTimes repeat_times_tensor
expand_shapes_tensor ExpandTimes expand_times_tensor AxesTensor AxesTensorList Offsets OffsetsTensor ShiftsTensor K
depth_tensor OutputShape Paddings
"""
_SLOTS = frozenset(_SLOTS_TEXT.split())


def narrow_sizes(draft: Draft) -> None:
    """Convert int64 values in the slots of sizes to int32."""
    known: dict[SourceValue, SourceValue] = {}
    for block in draft.blocks():
        ops: list[SourceOp] = []
        for op in block.ops:
            for slot in _SLOTS.intersection(op.inputs):
                op.inputs[slot] = [_narrow(draft, value, known, ops, op) for value in op.inputs[slot]]
            ops.append(op)
        block.ops = ops
        known = {value: narrow for value, narrow in known.items() if value in draft.constants}


def _narrow(
    draft: Draft, value: SourceValue, known: dict[SourceValue, SourceValue], ops: list[SourceOp], near: SourceOp
) -> SourceValue:
    if element_type(value) != "int64":
        return value
    if value in known:
        return known[value]
    if value in draft.constants:
        limits = np.iinfo(np.int32)
        array = np.clip(draft.constants[value], limits.min, limits.max).astype(np.int32)
        known[value] = draft.add_constant(f"{value.name}/int32", array)
        return known[value]
    narrow = SourceValue(f"{value.name}/int32", SourceType("int32", value.type.shape if value.type else None))
    attrs = {"in_dtype": "int64", "out_dtype": "int32"}
    ops.append(SourceOp("cast", {"X": [value]}, {"Out": [narrow]}, attrs, [], near.index, near.original_type))
    known[value] = narrow
    return narrow
