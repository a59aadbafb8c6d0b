"""Channel shuffles, which networks write as reshape, transpose and reshape."""

from __future__ import annotations

from ...source import SourceOp
from ..draft import Draft
from .patterns import Chains

__all__ = ["make_channel_shuffles"]


def make_channel_shuffles(draft: Draft) -> None:
    """Replace the reshape of [N, C, H, W] to groups, the exchange of groups and channels, and the way back."""
    for block in draft.blocks():
        chains = Chains(draft, block)
        for op in block.ops:
            groups = _groups(op)
            transpose = chains.next(op.outputs["Out"][0]) if groups else None
            back = chains.next(transpose.outputs["Out"][0]) if transpose is not None else None
            if transpose is None or back is None or not _fits(op, transpose, back):
                continue
            chains.absorb(transpose, "Out", op, "Out")
            chains.absorb(back, "Out", op, "Out")
            op.type, op.attrs = "shuffle_channel", {"group": groups}
            op.outputs = {"Out": op.outputs["Out"]}
        chains.finish()


def _groups(op: SourceOp) -> int:
    """Return the number of groups that a reshape of channels makes, 0 for any other operator."""
    if op.type not in ("reshape", "reshape2") or list(op.inputs) != ["X"]:
        return 0
    type_, shape = op.inputs["X"][0].type, op.attrs.get("shape", [])
    if type_ is None or type_.dtype != "float32" or type_.shape is None or len(type_.shape) != 4 or len(shape) != 5:
        return 0
    channels, groups = type_.shape[1], shape[1]
    fits = channels > 0 and groups > 1 and channels % groups == 0 and shape[2] in (channels // groups, -1)
    same = all(_is_same(type_.shape, shape, here, there) for here, there in ((0, 0), (2, 3), (3, 4)))
    return groups if fits and same else 0


def _fits(op: SourceOp, transpose: SourceOp, back: SourceOp) -> bool:
    type_, shape = op.inputs["X"][0].type, back.attrs.get("shape", [])
    if transpose.type not in ("transpose", "transpose2") or list(transpose.attrs.get("axis", [])) != [0, 2, 1, 3, 4]:
        return False
    if back.type not in ("reshape", "reshape2") or list(back.inputs) != ["X"] or len(shape) != 4:
        return False
    if type_ is None or type_.shape is None:
        return False
    known = type_.shape
    return shape[1] in (known[1], -1) and all(_is_same(known, shape, axis, axis) for axis in (0, 2, 3))


def _is_same(known: tuple[int, ...], shape: list[int], here: int, there: int) -> bool:
    """Return True if dimension ``there`` of a reshape surely has the size of dimension ``here`` of the images."""
    if shape[there] == 0:  # copies the dimension of the same number, and only the first one keeps its number
        return there == 0
    if shape[there] == -1:
        return shape.count(-1) == 1
    return shape[there] == known[here]
