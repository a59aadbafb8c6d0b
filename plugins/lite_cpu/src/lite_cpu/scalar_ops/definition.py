"""Definition of an element-wise operator: how it is emitted, its cost and its restrictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Val

__all__ = ["Call", "Emit", "Operator", "compute_type"]


def compute_type(dtype: DType) -> DType:
    """Return the type in registers of an element stored as ``dtype``."""
    return DType.FLOAT32 if dtype.is_half else dtype


@dataclass(frozen=True, slots=True)
class Call:
    """Arguments and attributes of an operator to be emitted.

    Attributes:
        k: the emitter.
        arguments: the inputs, all with the same number of lanes; None for an omitted one.
        attributes: all attributes of the operator, including defaults.
        output: the element type of the stored result.
    """

    k: Emitter
    arguments: Sequence[Val | None]
    attributes: Mapping[str, Any]
    output: DType

    def __getitem__(self, index: int) -> Val:
        """A required argument."""
        argument = self.arguments[index]
        if argument is None:
            raise ValueError(f"input {index} is required and was left out")
        return argument

    @property
    def given(self) -> list[Val]:
        """All arguments that are not omitted."""
        return [a for a in self.arguments if a is not None]

    def optional(self, index: int) -> Val | None:
        """Return an argument, or None if it is omitted."""
        return self.arguments[index] if index < len(self.arguments) else None


Emit = Callable[[Call], Val]


@dataclass(frozen=True, slots=True)
class Operator:
    """An entry of the table of operators.

    Attributes:
        emit: emits a call and returns its result.
        cost: approximate number of floating-point operations per element.
        wide: it also supports float64, unlike functions that are approximated.
        refuse: returns why attributes or input types are not supported, or None.
    """

    emit: Emit
    cost: int = 1
    wide: bool = False
    refuse: Callable[[Mapping[str, Any], Sequence[DType | None]], str | None] = lambda attributes, inputs: None
