"""Helpers of the passes: who reads a value alone, and constants along one axis."""

from __future__ import annotations

import numpy as np

from ...source import SourceBlock, SourceOp, SourceValue
from ..draft import Draft
from ..program import Array

__all__ = ["Chains", "along_axis", "single_number"]


class Chains:
    """The operators of one block whose result only one other operator of it reads.

    Args:
        draft: the program.
        block: one of its blocks. The passes that use this remove operators by :meth:`absorb` only.
    """

    def __init__(self, draft: Draft, block: SourceBlock) -> None:
        self._block = block
        self._users = draft.users()
        self._inside = set(block.ops)
        self._absorbed: set[SourceOp] = set()

    def next(self, value: SourceValue) -> SourceOp | None:
        """Return the only reader of a value if it is in this block and reads the value once."""
        users = self._users.get(value, [])
        if len(users) != 1 or users[0] is None or users[0] not in self._inside or users[0] in self._absorbed:
            return None
        return users[0]

    def is_absorbed(self, op: SourceOp) -> bool:
        """Return True if another operator does the work of this one already."""
        return op in self._absorbed

    def absorb(self, op: SourceOp, slot: str, by: SourceOp, by_slot: str) -> None:
        """Let ``by`` write the result of ``op``, which is removed by :meth:`finish`."""
        by.outputs[by_slot] = op.outputs[slot]
        self._absorbed.add(op)

    def finish(self) -> None:
        """Remove the absorbed operators from the block."""
        self._block.ops = [op for op in self._block.ops if op not in self._absorbed]


def along_axis(array: Array, axis: int, rank: int, where: int, size: int) -> Array | None:
    """Return the elements of a broadcast constant along one dimension, as float64.

    Args:
        array: the constant, an operand of an elementwise operator.
        axis: the operator's attribute: dimension of the other operand where the constant's first one is; -1 aligns the
            last dimensions.
        rank: rank of the other operand.
        where: the dimension along which the constant may vary.
        size: its size.

    Returns:
        ``size`` elements; None if the constant varies along another dimension, or is larger than the other operand.
    """
    first = rank - array.ndim if axis < 0 else axis
    shape = [1] * first + list(array.shape) if first >= 0 else []
    shape += [1] * (rank - len(shape))
    if len(shape) != rank or any(n != 1 for i, n in enumerate(shape) if i != where) or shape[where] not in (1, size):
        return None
    return np.broadcast_to(array.astype(np.float64).reshape(-1), (size,))


def single_number(array: Array | None) -> float | None:
    """Return the number of a constant with one floating-point element, None for any other constant."""
    return float(array.reshape(-1)[0]) if array is not None and array.size == 1 and array.dtype.kind == "f" else None
