"""Slots and attributes of Paddle-Lite's operators.

``operator_schemas.json`` has, for each operator, its slots and its attributes with their types; a question mark stands
after those that may be absent. Paddle-Lite compares the recorded type of an attribute with the type that it expects,
and ends the process where they differ.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from .program import Attribute, AttributeKind
from .type_numbers import NUMBERS

__all__ = ["OperatorSchema", "schema_of", "schemas", "typed"]


@dataclass(frozen=True, slots=True)
class OperatorSchema:
    """The slots and attributes of one operator.

    Attributes:
        inputs: input slot -> True if it must be there.
        outputs: output slot -> the same.
        attributes: name -> (type, True if it must be there).
        defaults: values of attributes that programs may leave out and Paddle-Lite needs.
    """

    inputs: Mapping[str, bool]
    outputs: Mapping[str, bool]
    attributes: Mapping[str, tuple[AttributeKind, bool]]
    defaults: Mapping[str, Any]


@cache
def schemas() -> Mapping[str, OperatorSchema]:
    """Return operator -> its schema."""
    text = pkgutil.get_data(__package__, "operator_schemas.json")
    assert text is not None, "the package was installed without its operator_schemas.json"
    return {operator: _parse(entry) for operator, entry in json.loads(text).items()}


def schema_of(operator: str) -> OperatorSchema | None:
    """Return the schema of an operator, None if Paddle-Lite does not have it."""
    return schemas().get(operator)


def typed(kind: AttributeKind, value: Any) -> Attribute:
    """Return a value as an attribute of a type; names of element types become their numbers.

    Raises:
        ValueError: the value cannot have this type.
        TypeError: the same.
        KeyError: the element type has no number.
    """
    if kind is AttributeKind.STRING:
        return Attribute(kind, str(value))
    if kind is AttributeKind.BOOLEAN:
        return Attribute(kind, bool(value))
    if kind in (AttributeKind.INT, AttributeKind.LONG):
        return Attribute(kind, _integer(value))
    if kind in (AttributeKind.FLOAT, AttributeKind.FLOAT64):
        return Attribute(kind, float(value))
    items = list(value) if isinstance(value, list | tuple) else [value]
    if kind in (AttributeKind.INTS, AttributeKind.LONGS):
        return Attribute(kind, tuple(_integer(item) for item in items))
    if kind in (AttributeKind.FLOATS, AttributeKind.FLOAT64S):
        return Attribute(kind, tuple(float(item) for item in items))
    return Attribute(kind, tuple(str(item) for item in items))


def _integer(value: Any) -> int:
    if isinstance(value, str):
        return NUMBERS[value]
    if value is None:
        return -1
    if int(value) != value:
        raise ValueError(f"{value!r} is no integer")
    return int(value)


def _slots(text: str) -> dict[str, bool]:
    return {slot.removesuffix("?"): not slot.endswith("?") for slot in text.split()}


def _parse(entry: Mapping[str, Any]) -> OperatorSchema:
    attributes = {}
    for item in entry["attributes"].split():
        name, kind = item.split(":")
        attributes[name] = (AttributeKind[kind.removesuffix("?")], not kind.endswith("?"))
    return OperatorSchema(_slots(entry["inputs"]), _slots(entry["outputs"]), attributes, entry.get("defaults", {}))
