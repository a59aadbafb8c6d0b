"""Tensor arrays: lists of tensors that a Paddle program builds with write_to_array.

Lite has no values of this kind. Lowering keeps a Python tuple of the values written to it. In a loop an
array may grow by one element in each iteration: these elements become an output of the Loop, stacked along a new
first axis; elements of different shapes become a list that the Loop carries. No other use can be lowered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lite_core.ir import Value
from lite_paddle.lowering.lod import Sequences
from lite_paddle.source import SourceValue

__all__ = ["AnyArray", "Element", "LoopArray", "TensorArray", "TensorList"]


@dataclass(frozen=True)
class Element:
    """An element of an array: a tensor, and the sequences that its rows consist of if they are known."""

    value: Value
    sequences: Sequences | None = None


@dataclass(frozen=True)
class TensorList:
    """Tensors of different shapes: the two tensors of a list, see the operator ListOf of the domain ``lite``.

    Attributes:
        elements: the elements of all tensors.
        shapes: the shape of each tensor.
        levels: if the tensors consist of sequences, such a list of their offsets for each level, the outermost first.
    """

    elements: Value
    shapes: Value
    levels: tuple[TensorList, ...] = ()

    @property
    def values(self) -> list[Value]:
        """All tensors that the list consists of."""
        return [self.elements, self.shapes, *(value for level in self.levels for value in level.values)]


@dataclass(frozen=True)
class TensorArray:
    """An array outside the loop that appends to it.

    Attributes:
        elements: the first elements.
        appended: elements that a loop appended, along axis 0; None without such a loop.
        listed: all elements, if a loop appended elements of different shapes; then there are no others.
    """

    elements: tuple[Element, ...] = ()
    appended: Value | None = None
    listed: TensorList | None = None

    @property
    def has_grown(self) -> bool:
        """True if a loop appended elements."""
        return self.appended is not None or self.listed is not None


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
    before: tuple[Element, ...]
    iteration: Value
    positions: Mapping[SourceValue, int]
    last: Element | None = None
    written: Element | None = None


AnyArray = TensorArray | LoopArray
