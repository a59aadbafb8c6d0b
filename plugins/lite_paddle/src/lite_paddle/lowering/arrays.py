"""Tensor arrays, Paddle's lists of tensors, which lowering resolves before the model runs.

Lite has no lists. Where every index is known, an array is the tuple of the values written to it. In a loop an
array may grow by one element in each iteration: these elements become an output of the Loop, stacked along a new
first axis. No other use can be lowered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lite_core.ir import Value
from lite_paddle.source import SourceValue

__all__ = ["AnyArray", "LoopArray", "TensorArray"]


@dataclass(frozen=True)
class TensorArray:
    """An array outside the loop that appends to it.

    Attributes:
        elements: the first elements.
        appended: elements that a loop appended, along axis 0; None without such a loop.
    """

    elements: tuple[Value, ...] = ()
    appended: Value | None = None


@dataclass(frozen=True)
class LoopArray:
    """An array inside the body of a loop that appends to it.

    Attributes:
        argument: the body's argument for this array.
        before: the elements written before the loop.
        iteration: index of this iteration, from 0.
        positions: for integers that count iterations, their values in the first iteration.
        last: the last element before this iteration, if the body reads it.
        written: the element that this iteration appended.
    """

    argument: SourceValue
    before: tuple[Value, ...]
    iteration: Value
    positions: Mapping[SourceValue, int]
    last: Value | None = None
    written: Value | None = None


AnyArray = TensorArray | LoopArray
