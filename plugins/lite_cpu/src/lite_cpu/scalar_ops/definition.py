"""What an element-wise operator is: how it is emitted, what it costs, where it cannot be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Val

__all__ = ["Call", "Emit", "Operator", "compute_type"]


def compute_type(dtype: DType) -> DType:
    """The type in registers of an element stored as ``dtype``."""
    return DType.FLOAT32 if dtype.is_half else dtype


@dataclass(frozen=True, slots=True)
class Call:
    """An operator with its arguments, all of one number of lanes.

    Attributes:
        k: where the result is emitted.
        arguments: the inputs; None stands for one that is left out.
        attributes: all that the operator has, defaults included.
        output: the element type of the result as it will be stored.
    """

    k: Emitter
    arguments: Sequence[Val | None]
    attributes: Mapping[str, Any]
    output: DType

    def __getitem__(self, index: int) -> Val:
        """An argument that must be there."""
        argument = self.arguments[index]
        if argument is None:
            raise ValueError(f"input {index} is required and was left out")
        return argument

    @property
    def given(self) -> list[Val]:
        """All arguments that are there."""
        return [a for a in self.arguments if a is not None]

    def optional(self, index: int) -> Val | None:
        return self.arguments[index] if index < len(self.arguments) else None


Emit = Callable[[Call], Val]


@dataclass(frozen=True, slots=True)
class Operator:
    """An entry of the table.

    Attributes:
        emit: emits the result of a call.
        cost: floating-point operations for one element, roughly.
        wide: has float64 too. The functions that are approximated have not.
        refuse: says why attributes or input types cannot be, if so.
    """

    emit: Emit
    cost: int = 1
    wide: bool = False
    refuse: Callable[[Mapping[str, Any], Sequence[DType | None]], str | None] = lambda attributes, inputs: None
