"""How expansions are written and found: small formulas of ONNX's operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Value

__all__ = ["Expansion", "Formula", "expands", "expansions"]

Operand = Value | float | Sequence[int] | None
Expansion = Callable[..., Sequence[Value]]

#: By the operator's name.
expansions: dict[str, Expansion] = {}


def expands(op: str) -> Callable[[Expansion], Expansion]:
    """Register how an operator of the domain ``lite`` is made of ONNX's; decorates a function.

    It gets a :class:`Formula`, the inputs (None for one left out, halves as float32) and the attributes as keywords,
    and returns the outputs.
    """

    def register(expansion: Expansion) -> Expansion:
        expansions[op] = expansion
        return expansion

    return register


class Formula:
    """Adds nodes: ``f("Mul", x, 0.5)``.

    A float is a scalar of the type of the first tensor among the inputs, a list is a vector of int64.
    """

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder

    def __call__(self, op: str, *inputs: Operand, **attributes: Any) -> Value:
        """The first output of a new node."""
        return self.several(op, 1, *inputs, **attributes)[0]

    def several(self, op: str, count: int, *inputs: Operand, **attributes: Any) -> list[Value]:
        """The outputs of a new node."""
        dtype = next((i.dtype for i in inputs if isinstance(i, Value)), DType.FLOAT32)
        values = [self._operand(i, dtype) for i in inputs]
        return self.builder.add_node(op, values, attributes, outputs=count)

    def widened(self, x: Value) -> Value:
        """A half as float32, as the references compute; anything else as it is."""
        return self.cast(x, DType.FLOAT32) if x.dtype.is_half else x

    def cast(self, x: Value, dtype: DType) -> Value:
        """A tensor of another element type."""
        return x if x.dtype is dtype else self("Cast", x, to=dtype)

    def part(self, x: Value, start: int, end: int, axis: int = -1) -> Value:
        """A slice along one axis."""
        return self("Slice", x, [start], [end], [axis])

    def item(self, x: Value, index: int, axis: int = -1) -> Value:
        """One place along an axis, which is gone then."""
        return self("Gather", x, self.scalar(index), axis=axis)

    def scalar(self, number: int, dtype: DType = DType.INT64) -> Value:
        """A constant without dimensions."""
        return self.builder.constant(np.array(number, dtype.numpy))

    def size(self, x: Value, axis: int) -> Value:
        """The length of one axis, a vector of one element."""
        return self("Shape", x, start=axis, end=axis + 1)

    def count_up(self, length: Value, dtype: DType) -> Value:
        """0, 1, 2, ... as many as a vector of one element says."""
        numbers = self("Range", self.scalar(0), self("Squeeze", length), self.scalar(1))
        return self.cast(numbers, dtype)

    def _operand(self, given: Operand, dtype: DType) -> Value | None:
        if given is None or isinstance(given, Value):
            return given
        if isinstance(given, float):
            return self.builder.constant(np.array(given, dtype.numpy))
        return self.builder.ints(*given)
