"""Decoding of the FlatBuffers in a Paddle-Lite model file: the topology and the parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lite_core.errors import ModelFormatError

from .flat_schema import (
    ATTRIBUTE,
    ATTRIBUTE_VALUES,
    BLOCK,
    OPERATOR,
    PARAMETER,
    PARAMETER_TENSOR,
    PROGRAM,
    SLOT,
    TENSOR,
    TYPE,
    VARIABLE,
)
from .flat_tables import FlatBuffer, FlatTable
from .parameters import parameter_array
from .program import Array, Attribute, AttributeKind, Block, Operator, Variable, VariableKind
from .type_numbers import ELEMENT_TYPES, variable_kind

__all__ = ["read_combined_parameters", "read_parameter", "read_topology"]

_NUMPY_CODES = {"i": "<i4", "q": "<i8", "f": "<f4", "d": "<f8", "?": "?"}


def read_topology(data: memoryview) -> tuple[tuple[Block, ...], int]:
    """Return (blocks, version of Paddle) of the buffer with the topology.

    Raises:
        ModelFormatError: the buffer is damaged.
    """
    root = FlatBuffer(data, "the topology of the Paddle-Lite model").root()
    version = root.table(PROGRAM.VERSION)
    number = 0 if version is None else version.scalar(PROGRAM.VERSION_NUMBER, "q")
    return tuple(_block(table) for table in root.tables(PROGRAM.BLOCKS)), int(number)


def read_parameter(data: memoryview, position: int) -> tuple[str, Array]:
    """Return (name, elements) of the buffer with one parameter; ``position`` is its number, for messages."""
    return _parameter(FlatBuffer(data, f"parameter {position} of the Paddle-Lite model").root(), data)


def read_combined_parameters(data: memoryview) -> Iterator[tuple[str, Array]]:
    """Yield (name, elements) of each parameter of a file of the container version 1."""
    for table in FlatBuffer(data, "the parameters of the Paddle-Lite model").root().tables(PARAMETER.COMBINED_LIST):
        yield _parameter(table, data)


def _parameter(table: FlatTable, data: memoryview) -> tuple[str, Array]:
    name = table.name(PARAMETER.NAME, "the name of a parameter")
    tensor = table.table(PARAMETER.VALUE)
    kind = table.scalar(PARAMETER.KIND, "B")
    if tensor is None or kind != PARAMETER.KIND_TENSOR:
        raise ModelFormatError(f"the parameter {name!r} is of kind {kind}, expected {PARAMETER.KIND_TENSOR}: a tensor")
    shape = tuple(tensor.numbers(PARAMETER_TENSOR.SHAPE, "<i8").tolist())
    elements = tensor.numbers(PARAMETER_TENSOR.DATA, "u1")
    return name, parameter_array(name, tensor.scalar(PARAMETER_TENSOR.ELEMENT_TYPE, "i"), shape, elements)


def _block(table: FlatTable) -> Block:
    return Block(
        table.scalar(BLOCK.INDEX, "i"),
        table.scalar(BLOCK.PARENT, "i"),
        tuple(_variable(variable) for variable in table.tables(BLOCK.VARIABLES)),
        tuple(_operator(operator) for operator in table.tables(BLOCK.OPERATORS)),
        table.scalar(BLOCK.FORWARD_INDEX, "i", -1),
    )


def _variable(table: FlatTable) -> Variable:
    name = table.name(VARIABLE.NAME, "the name of a variable")
    type_ = table.table(VARIABLE.TYPE)
    if type_ is None:
        raise ModelFormatError(f"the variable {name!r} has no type; the file is damaged")
    kind = variable_kind(type_.scalar(TYPE.KIND, "i"), name)
    tensor, level = _tensor(type_, kind)
    shape = None if tensor is None else tuple(tensor.numbers(TENSOR.SHAPE, "<i8").tolist())
    element_type = None if tensor is None else ELEMENT_TYPES.get(tensor.scalar(TENSOR.ELEMENT_TYPE, "i"))
    persistable = bool(table.scalar(VARIABLE.PERSISTABLE, "?", False))
    check = bool(table.scalar(VARIABLE.NEED_CHECK_FEED, "?", False))
    return Variable(name, kind, element_type, shape or None, persistable, level, check)


def _tensor(type_: FlatTable, kind: VariableKind) -> tuple[FlatTable | None, int]:
    """Return the description of a variable's elements and the number of its levels of sequence offsets."""
    if kind is VariableKind.SELECTED_ROWS:
        return type_.table(TYPE.SELECTED_ROWS), 0
    described = None
    if kind in (VariableKind.LOD_TENSOR, VariableKind.LOD_TENSOR_ARRAY):
        # Paddle-Lite's converter describes tensor arrays in the slot of tensors, too.
        described = type_.table(TYPE.TENSOR) or type_.table(TYPE.ARRAY)
    if described is None:
        return None, 0
    return described.table(TYPE.TENSOR_TENSOR), max(0, described.scalar(TYPE.TENSOR_LOD_LEVEL, "i"))


def _operator(table: FlatTable) -> Operator:
    type_ = table.name(OPERATOR.TYPE, "the type of an operator")
    return Operator(
        type_,
        dict(_slots(table.tables(OPERATOR.INPUTS), type_)),
        dict(_slots(table.tables(OPERATOR.OUTPUTS), type_)),
        dict(_attribute(attribute, type_) for attribute in table.tables(OPERATOR.ATTRIBUTES)),
        bool(table.scalar(OPERATOR.IS_TARGET, "?", False)),
    )


def _slots(tables: list[FlatTable], type_: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for table in tables:
        name = table.name(SLOT.NAME, f"the name of a slot of {type_}")
        yield name, table.names(SLOT.ARGUMENTS, f"a variable in the slot {name} of {type_}")


def _attribute(table: FlatTable, type_: str) -> tuple[str, Attribute]:
    name = table.name(ATTRIBUTE.NAME, f"the name of an attribute of {type_}")
    number = table.scalar(ATTRIBUTE.TYPE, "i")
    try:
        kind = AttributeKind(number)
        stored = ATTRIBUTE_VALUES[kind]
    except (KeyError, ValueError):
        known = ", ".join(f"{int(k)} {k.name}" for k in ATTRIBUTE_VALUES)
        raise ModelFormatError(f"{type_}: its attribute {name!r} has the type {number}, expected {known}") from None
    if stored.is_list:
        value: Any = table.texts(stored.slot) if stored.code == "s" else _numbers(table, stored.slot, stored.code)
    elif stored.code == "s":
        value = table.text(stored.slot)
    else:
        value = table.scalar(stored.slot, stored.code, {"?": False, "f": 0.0, "d": 0.0}.get(stored.code, 0))
    return name, Attribute(kind, value)


def _numbers(table: FlatTable, slot: int, code: str) -> tuple[Any, ...]:
    found = table.numbers(slot, _NUMPY_CODES[code] if code != "?" else "u1")
    return tuple((found != 0).tolist() if code == "?" else np.asarray(found).tolist())
