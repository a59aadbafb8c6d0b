"""Removal of operators that change nothing in inference."""

from __future__ import annotations

from ...source import SourceOp
from ..draft import Draft, element_type

__all__ = ["remove_identities"]

# What Paddle-Lite inserts to bring values to other devices and element types; a file for other targets has others.
_MOVES = frozenset({"calib", "calib_once", "io_copy", "io_copy_once", "layout", "layout_once"})


def remove_identities(draft: Draft) -> None:
    """Remove copies, scales by one, casts to the same type and dropout; dropout that scales becomes a scale."""
    for block in list(draft.blocks()):
        kept = []
        for op in block.ops:
            _weaken_dropout(op)
            if _is_identity(op):
                (value,) = op.inputs.get("X") or op.inputs["Input"]
                draft.replace(op.outputs["Out"][0], value)
            else:
                kept.append(op)
        block.ops = kept


def _weaken_dropout(op: SourceOp) -> None:
    """Let dropout be the scale that it is in inference."""
    if op.type != "dropout" or "DropoutProbTensor" in op.inputs:
        return
    keeps = op.attrs.get("dropout_implementation") == "upscale_in_train"
    op.type, op.inputs, op.outputs = "scale", {"X": op.inputs["X"]}, {"Out": op.outputs["Out"]}
    factor = 1.0 if keeps else 1.0 - op.attrs["dropout_prob"]
    op.attrs = {"scale": factor, "bias": 0.0, "bias_after_scale": True}


def _is_identity(op: SourceOp) -> bool:
    if op.type in _MOVES:
        return "InputArray" not in op.inputs and not op.attrs.get("scale")
    if list(op.inputs) != ["X"] or len(op.inputs["X"]) != 1 or len(op.outputs.get("Out", [])) != 1:
        return False
    value, result = op.inputs["X"][0], op.outputs["Out"][0]
    if value.type is not None and value.type.is_array:
        return False
    if op.type == "scale":
        return bool(op.attrs.get("scale", 1.0) == 1 and op.attrs.get("bias", 0.0) == 0)
    if op.type == "cast":
        return value.type is not None and value.type.dtype == op.attrs.get("out_dtype") == element_type(result)
    return op.type in ("assign", "share_data")
