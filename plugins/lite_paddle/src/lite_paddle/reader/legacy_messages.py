"""Decoding of the messages of a ProgramDesc: variable types, operator slots, attributes."""

from __future__ import annotations

from typing import Any

from lite_core.errors import ModelFormatError

from ..source import SourceType
from .element_types import LEGACY_ELEMENT_TYPES, optional_legacy_element_type
from .program_proto import ATTRIBUTE_FIELDS

# VarType.Type of variables, as opposed to elements.
_DENSE_TENSOR = 7
_SELECTED_ROWS = 8
_FEED_MINIBATCH = 9
_FETCH_LIST = 10
_TENSOR_ARRAY = 13
_RAW = 17

NOT_STORED = frozenset({_FEED_MINIBATCH, _FETCH_LIST, _RAW})

# AttrType
_BLOCK = 8
_BLOCKS = 10
_VARIABLE = 13
_VARIABLES = 14
_SCALAR = 16
_SCALARS = 17

_ELEMENT_TYPE_ATTRIBUTES = frozenset({"dtype", "in_dtype", "out_dtype"})
_SCALAR_FIELDS = {1: "b", 2: "i", 3: "r"}
_EMPTY_NAME = "@EMPTY@"
# Python source lines that created an operator: most of the text of a model, and unused.
_CALL_STACK = "op_callstack"


def variable_type(variable: Any) -> SourceType | None:
    """Return the type of a VarDesc, or None for step scopes, readers and other non-tensors."""
    kind = variable.type.type
    if kind == _TENSOR_ARRAY:
        tensor, lod_level = variable.type.tensor_array.tensor, 0
    elif kind == _DENSE_TENSOR:
        tensor, lod_level = variable.type.dense_tensor.tensor, variable.type.dense_tensor.lod_level
    elif kind == _SELECTED_ROWS:
        tensor, lod_level = variable.type.selected_rows, 0
    else:
        return None
    dtype = LEGACY_ELEMENT_TYPES.get(tensor.data_type, "undefined")
    return SourceType(dtype, tuple(tensor.dims), kind == _TENSOR_ARRAY, lod_level)


def is_stored_parameter(variable: Any) -> bool:
    """Return True if the variable's tensor is in the parameter file."""
    return bool(variable.persistable) and variable.type.type not in NOT_STORED


def slots(variables: Any) -> dict[str, list[str]]:
    """Return slot -> variable names, without unused slots."""
    result: dict[str, list[str]] = {}
    for variable in variables:
        names = [name for name in variable.arguments if name != _EMPTY_NAME]
        if names:
            result[variable.parameter] = names
    return result


def sub_block_index(op: Any) -> int | None:
    """Return the index of the block that a control-flow operator runs, or None."""
    for attribute in op.attrs:
        if attribute.name == "sub_block" and attribute.type == _BLOCK:
            return int(attribute.block_idx)
    return None


def op_role(op: Any) -> int:
    """Return the bits of the pass that an operator belongs to (0: forward), see training.py."""
    return next((int(attribute.i) for attribute in op.attrs if attribute.name == "op_role"), 0)


def attributes(op: Any) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Decode an operator's attributes.

    Returns:
        (attributes, slots): the second holds the attributes whose value is a variable computed at run time,
        attribute name -> variable names.

    Raises:
        ModelFormatError: An attribute has a type that no Paddle version writes.
    """
    values: dict[str, Any] = {}
    variables: dict[str, list[str]] = {}
    for attribute in op.attrs:
        name, kind = attribute.name, attribute.type
        if not 0 <= kind < len(ATTRIBUTE_FIELDS):
            raise ModelFormatError(f"operator {op.type}: attribute {name!r} has the unknown type {kind}")
        if kind in (_BLOCK, _BLOCKS) or name == _CALL_STACK:
            continue
        value = getattr(attribute, ATTRIBUTE_FIELDS[kind])
        if kind == _VARIABLE:
            variables[name] = [value]
        elif kind == _VARIABLES:
            variables[name] = list(value)
        elif kind == _SCALAR:
            values[name] = _scalar(value)
        elif kind == _SCALARS:
            values[name] = [_scalar(item) for item in value]
        elif name in _ELEMENT_TYPE_ATTRIBUTES and isinstance(value, int):
            values[name] = optional_legacy_element_type(value)
        else:
            values[name] = _plain(value)
    return values, variables


def _scalar(scalar: Any) -> Any:
    if scalar.type in _SCALAR_FIELDS:
        return getattr(scalar, _SCALAR_FIELDS[scalar.type])
    return complex(scalar.c.r, scalar.c.i)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, bool | int | float | str):
        return value
    return [_plain(item) for item in value]
