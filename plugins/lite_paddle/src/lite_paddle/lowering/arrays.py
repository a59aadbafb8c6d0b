"""Tensor arrays, Paddle's lists of tensors, as lowerings see them: resolved before the model runs.

Lite has no lists. Where every index is known, an array is the tuple of the values written to it. In a loop an
array may grow by one element in each iteration: these become an output of the Loop, stacked along a new
first axis. Everything else cannot be lowered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lite_core.ir import Value
from lite_paddle.source import SourceValue

__all__ = ["AnyArray", "LoopArray", "TensorArray"]


@dataclass(frozen=True)
class TensorArray:
    """An array outside the loop that fills it.

    Attributes:
        elements: the first elements.
        appended: those that a loop appended, along axis 0; None when there was no loop.
    """

    elements: tuple[Value, ...] = ()
    appended: Value | None = None


@dataclass(frozen=True)
class LoopArray:
    """An array as the body of a loop that appends to it sees it.

    Attributes:
        argument: the body's argument that it is.
        before: the elements from before the loop.
        iteration: the number of this iteration, from 0.
        positions: for integers that count iterations, what they are in the first one.
        last: the last element before this iteration, where the body reads it.
        written: what this iteration appended.
    """

    argument: SourceValue
    before: tuple[Value, ...]
    iteration: Value
    positions: Mapping[SourceValue, int]
    last: Value | None = None
    written: Value | None = None


AnyArray = TensorArray | LoopArray
