"""The registry of expansions, and the helper with which they add ONNX's operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Value

__all__ = ["Expansion", "Formula", "expands", "expansions"]

Operand = Value | float | Sequence[int] | None
Expansion = Callable[..., Sequence[Value]]

#: The expansions, by the operator's name.
expansions: dict[str, Expansion] = {}


def expands(op: str) -> Callable[[Expansion], Expansion]:
    """Register the decorated function as the expansion of an operator of the domain ``lite``.

    The function gets a :class:`Formula`, the inputs (None for an omitted one, half types as float32) and the attributes
    as keywords, and returns the outputs.
    """

    def register(expansion: Expansion) -> Expansion:
        expansions[op] = expansion
        return expansion

    return register


class Formula:
    """Short notation for adding nodes: ``f("Mul", x, 0.5)``.

    A float becomes a scalar of the element type of the first tensor among the inputs, a list becomes an int64 vector.
    """

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder

    def __call__(self, op: str, *inputs: Operand, **attributes: Any) -> Value:
        """Add a node and return its first output."""
        return self.several(op, 1, *inputs, **attributes)[0]

    def several(self, op: str, count: int, *inputs: Operand, **attributes: Any) -> list[Value]:
        """Add a node and return its outputs."""
        dtype = next((i.dtype for i in inputs if isinstance(i, Value)), DType.FLOAT32)
        values = [self._operand(i, dtype) for i in inputs]
        return self.builder.add_node(op, values, attributes, outputs=count)

    def widened(self, x: Value) -> Value:
        """Cast half types to float32, in which the references compute; return other tensors unchanged."""
        return self.cast(x, DType.FLOAT32) if x.dtype.is_half else x

    def cast(self, x: Value, dtype: DType) -> Value:
        """Cast a tensor to an element type, unless it already has it."""
        return x if x.dtype is dtype else self("Cast", x, to=dtype)

    def part(self, x: Value, start: int, end: int, axis: int = -1) -> Value:
        """Slice a tensor along one axis."""
        return self("Slice", x, [start], [end], [axis])

    def item(self, x: Value, index: int, axis: int = -1) -> Value:
        """Select one index along an axis and remove the axis."""
        return self("Gather", x, self.scalar(index), axis=axis)

    def scalar(self, number: int, dtype: DType = DType.INT64) -> Value:
        """Add a constant scalar."""
        return self.builder.constant(np.array(number, dtype.numpy))

    def size(self, x: Value, axis: int) -> Value:
        """Return the size of an axis as a vector of one element."""
        return self("Shape", x, start=axis, end=axis + 1)

    def count_up(self, length: Value, dtype: DType) -> Value:
        """Return the vector 0, 1, 2, ... of a length that is given as a vector of one element."""
        numbers = self("Range", self.scalar(0), self("Squeeze", length), self.scalar(1))
        return self.cast(numbers, dtype)

    def _operand(self, operand: Operand, dtype: DType) -> Value | None:
        if operand is None or isinstance(operand, Value):
            return operand
        if isinstance(operand, float):
            return self.builder.constant(np.array(operand, dtype.numpy))
        return self.builder.ints(*operand)
