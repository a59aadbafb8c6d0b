"""Assignment of a PIR operator's operands to legacy slots, or to attributes when they are constant."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lite_core.errors import ModelFormatError

from ..source import SourceOp, SourceValue
from .attributes import REDUCTIONS
from .pir_names import Operand, PirName

# A vector of tensors is a list.
Value = SourceValue | list[SourceValue]

# Larger constants are not turned into attributes.
_LARGEST_CONSTANT = 1024


class PirConstants:
    """The elements of the values that the operators full and full_int_array produce."""

    def __init__(self) -> None:
        """Start without constants."""
        self._elements: dict[SourceValue, list[Any]] = {}

    def remember(self, short: str, op: SourceOp) -> None:
        """Store the result of an operator if it is constant; convert elements of integer types to integers.

        Raises:
            ModelFormatError: A constant operator has impossible attributes.
        """
        if short == "full":
            value, shape = op.attrs.get("value"), op.attrs.get("shape", [])
            if not isinstance(value, bool | int | float) or not _is_shape(shape):
                raise ModelFormatError(f"operator {op.index} (full): value {value!r}, shape {shape!r}")
            integral = str(op.attrs.get("dtype")).lstrip("u").startswith("int")
            if integral and isinstance(value, float) and value.is_integer():
                op.attrs["value"] = int(value)
            if math.prod(shape) <= _LARGEST_CONSTANT:
                self._elements[op.outputs["Out"][0]] = [op.attrs["value"]] * math.prod(shape)
        elif short == "full_int_array":
            values = op.attrs["values"]
            if not all(isinstance(value, int) for value in values):
                raise ModelFormatError(f"operator {op.index} (full_int_array): the values are not integers")
            self._elements[op.outputs["Out"][0]] = values

    def fold(self, operand: Operand, value: Value) -> Any:
        """Return the attribute for a constant operand, or None if it is not constant or has no attribute."""
        if operand.attribute is None:
            return None
        numbers: list[Any] = []
        for item in as_list(value):
            if item not in self._elements:
                return None
            numbers.extend(self._elements[item])
        if operand.kind != "float" and not all(math.isfinite(number) for number in numbers):
            return None
        if operand.kind == "ints":
            return [int(number) for number in numbers]
        if len(numbers) != 1:
            return None
        return float(numbers[0]) if operand.kind == "float" else int(numbers[0])


def legacy_inputs(
    entry: PirName,
    operands: Sequence[Value | None],
    raw: Mapping[str, Any],
    constants: PirConstants,
    where: str,
) -> tuple[dict[str, list[SourceValue]], dict[str, Any]]:
    """Sort the operands of a PIR operator into legacy slots and attributes.

    Args:
        entry: The operator's entry in the table of names.
        operands: Its operands in order; None for an absent one.
        raw: Its attributes with PIR names.
        constants: The constants among earlier values.
        where: The operator, for messages.

    Returns:
        (slot -> values, attributes with legacy names)

    Raises:
        ModelFormatError: There are more operands than the operator can have.
    """
    if len(operands) > len(entry.operands):
        raise ModelFormatError(f"{where}: {len(operands)} operands, expected at most {len(entry.operands)}")
    attrs = {entry.renamed.get(name, name): value for name, value in raw.items()}
    attrs.update(entry.fixed)
    inputs: dict[str, list[SourceValue]] = {}
    for operand, value in zip(entry.operands, operands):
        if value is None or operand.slot is None:
            continue
        folded = constants.fold(operand, value)
        if folded is not None:
            attrs[str(operand.attribute)] = folded
        elif isinstance(value, list) and value:
            inputs[operand.list_slot or operand.slot] = value
        elif isinstance(value, SourceValue):
            inputs[operand.slot] = [value]
    if entry.legacy in REDUCTIONS:
        axes = REDUCTIONS[entry.legacy][0]
        # Absent axes mean all axes, unlike in legacy files.
        if axes not in attrs:
            attrs[axes] = []
        if "AxisTensor" in inputs or "AxisTensorList" in inputs:
            attrs[axes] = [0]  # not used, but an empty list would say reduce_all
    return inputs, attrs


def as_list(value: Value) -> list[SourceValue]:
    """Return a vector unchanged, and a tensor as a list of one element."""
    return value if isinstance(value, list) else [value]


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, list) and all(isinstance(dim, int) and dim >= 0 for dim in shape)
