"""Construction of chains from operators of the opset that are not nodes of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lite_compiler.chains import Apply
from lite_core.ir import Attribute, DType
from lite_opencl.chains import Chain, Operand
from lite_opencl.programs.element_types import scalar
from lite_opencl.tensors import Tensor

__all__ = ["ChainBuilder", "Ref"]


class Ref(NamedTuple):
    """A value of a chain under construction: its start, an operand or the result of a step."""

    kind: str
    number: int
    dtype: DType


class ChainBuilder:
    """A chain under construction.

    Attributes:
        start: the value that it starts from.
        last: its result so far.
    """

    def __init__(self, start: DType) -> None:
        self.start = self.last = Ref("start", 0, start)
        self._operands: list[Operand] = []
        self._given: list[Tensor | np.generic] = []
        self._steps: list[tuple[str, tuple[Ref | None, ...], DType, tuple[tuple[str, Attribute], ...]]] = []

    def operand(self, given: Tensor | np.generic, dtype: DType) -> Ref:
        """Add an operand of type ``dtype``; a tensor is broadcast to the result's shape."""
        operand_type = given.dtype if isinstance(given, Tensor) else dtype
        self._operands.append(Operand(operand_type, None))
        self._given.append(given)
        return Ref("operand", len(self._operands) - 1, operand_type)

    def number(self, number: float, dtype: DType) -> Ref:
        """Add a number that is passed by value."""
        return self.operand(scalar(number, dtype), dtype)

    def apply(self, op: str, inputs: Sequence[Ref | None], output: DType | None = None, **attributes: Attribute) -> Ref:
        """Apply an operator. Its result has the type of the first input unless ``output`` is given."""
        dtype = output or next(r.dtype for r in inputs if r is not None)
        self._steps.append((op, tuple(inputs), dtype, tuple(sorted(attributes.items()))))
        self.last = Ref("step", len(self._steps) - 1, dtype)
        return self.last

    def cast(self, ref: Ref, dtype: DType) -> Ref:
        """Convert a value to an element type; return the same value if it has that type."""
        return ref if ref.dtype is dtype else self.apply("Cast", [ref], dtype)

    def follow(self, chain: Chain, operands: Sequence[Tensor | np.generic]) -> None:
        """Append a chain that starts from the last result, with its operands from :meth:`Lowering.chain`."""
        refs = [self.last, *(self.operand(given, o.dtype) for given, o in zip(operands, chain.operands))]
        for step in chain.steps:
            inputs = [None if n is None else refs[n] for n in step.inputs]
            refs.append(self.apply(step.op, inputs, step.output, **dict(step.attributes)))

    def built(self) -> tuple[Chain, list[Tensor | np.generic]]:
        """Return the chain and its operands, as :meth:`Lowering.elementwise` takes them."""
        first = {"start": 0, "operand": 1, "step": 1 + len(self._operands)}
        steps = tuple(
            Apply(op, tuple(None if r is None else first[r.kind] + r.number for r in inputs), dtype, attributes)
            for op, inputs, dtype, attributes in self._steps
        )
        return Chain(self.start.dtype, tuple(self._operands), steps), self._given
