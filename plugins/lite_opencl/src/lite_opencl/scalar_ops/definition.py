"""The definition of an element-wise operator: its expression, its cost and its restrictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lite_core.ir import DType
from lite_opencl.programs.element_types import c_type, literal

__all__ = ["Call", "Emit", "Operator", "Refuse"]


@dataclass(frozen=True, slots=True)
class Call:
    """An operator with its arguments.

    Attributes:
        arguments: for each input the name of the variable that holds it, and its element type; None if left out.
        attributes: all attributes of the operator, including defaults.
        output: element type of the result.
    """

    arguments: Sequence[tuple[str, DType] | None]
    attributes: Mapping[str, Any]
    output: DType

    def __getitem__(self, index: int) -> str:
        """Return the variable of a required input."""
        argument = self.arguments[index]
        if argument is None:
            raise ValueError(f"input {index} is required and was left out")
        return argument[0]

    @property
    def given(self) -> list[str]:
        """The variables of all inputs that are not left out."""
        return [a[0] for a in self.arguments if a is not None]

    def optional(self, index: int) -> str | None:
        argument = self.arguments[index] if index < len(self.arguments) else None
        return None if argument is None else argument[0]

    def dtype(self, index: int = 0) -> DType:
        argument = self.arguments[index]
        assert argument is not None
        return argument[1]

    @property
    def compute(self) -> str:
        """The type of the first input in registers, which is the suffix of helper functions."""
        return c_type(self.dtype()).compute

    def number(self, attribute: str) -> str:
        """Return a floating-point attribute as a literal of the first input's type."""
        return self.literal(float(self.attributes[attribute]))

    def literal(self, number: float) -> str:
        """Return a number as a literal of the first input's type."""
        return literal(number, self.compute)


Emit = Callable[[Call], str]
Refuse = Callable[[Mapping[str, Any], Sequence["DType | None"]], "str | None"]


@dataclass(frozen=True, slots=True)
class Operator:
    """An entry of the table of operators.

    Attributes:
        emit: returns the expression for a call.
        cost: approximate number of floating-point operations for one element.
        refuse: returns the reason if attributes or input types are not supported, else None.
    """

    emit: Emit
    cost: int = 1
    refuse: Refuse = lambda attributes, inputs: None
