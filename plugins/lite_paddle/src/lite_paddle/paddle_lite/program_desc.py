"""Conversion between Paddle-Lite programs and Paddle's ProgramDesc messages, which have the same structure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..reader.program_proto import ATTRIBUTE_FIELDS, message_class
from .program import Array, Attribute, AttributeKind, Block, Operator, Program, Variable, VariableKind
from .type_numbers import ELEMENT_TYPES, NUMBERS, variable_kind

__all__ = ["from_message", "to_message"]

# The attribute with the number of the block that an operator runs. Paddle-Lite stores it as a plain INT.
_SUB_BLOCK = "sub_block"
#: Attributes about the export, which Paddle-Lite does not store.
_LEFT_OUT = frozenset({"op_callstack", "op_namescope", "op_role", "op_role_var", "workspace_size_MB"})


def to_message(program: Program) -> Any:
    """Return the ProgramDesc message of a program, without its parameters.

    Strings that are not UTF-8 are kept in attributes. A variable without dimensions has none in the message either.
    """
    message = message_class("ProgramDesc")()
    message.version.version = program.version
    for block in program.blocks:
        described = message.blocks.add(idx=block.index, parent_idx=block.parent)
        for variable in block.variables:
            _add_variable(described, variable)
        for operator in block.operators:
            _add_operator(described, operator)
    return message


def from_message(message: Any, parameters: Mapping[str, Array]) -> Program:
    """Return the program of a ProgramDesc message and its parameters.

    Attributes about the export, which Paddle-Lite does not store, are left out. The number of a sub-block becomes INT.

    Raises:
        ModelFormatError: a variable has an unknown kind.
    """
    blocks = tuple(_block(block) for block in message.blocks)
    return Program(blocks, dict(parameters), int(message.version.version))


def _add_variable(block: Any, variable: Variable) -> None:
    described = block.vars.add(name=variable.name, persistable=variable.persistable)
    described.type.type = int(variable.kind)
    if variable.need_check_feed:
        described.need_check_feed = True
    if variable.element_type is None:
        return
    if variable.kind is VariableKind.SELECTED_ROWS:
        tensor = described.type.selected_rows
    else:
        is_array = variable.kind is VariableKind.LOD_TENSOR_ARRAY
        holder = described.type.tensor_array if is_array else described.type.dense_tensor
        holder.lod_level = variable.lod_level
        tensor = holder.tensor
    tensor.data_type = NUMBERS[variable.element_type]
    tensor.dims.extend(variable.shape or ())


def _add_operator(block: Any, operator: Operator) -> None:
    described = block.ops.add(type=operator.type)
    for slots, target in ((operator.inputs, described.inputs), (operator.outputs, described.outputs)):
        for slot, names in slots.items():
            target.add(parameter=slot, arguments=names)
    for name, attribute in operator.attributes.items():
        kind, value = attribute.kind, attribute.value
        if name == _SUB_BLOCK and kind in (AttributeKind.INT, AttributeKind.LONG):
            kind = AttributeKind.BLOCK
        added = described.attrs.add(name=name, type=int(kind))
        if kind is AttributeKind.STRING:
            value = _bytes(value)
        elif kind is AttributeKind.STRINGS:
            value = [_bytes(item) for item in value]
        field = ATTRIBUTE_FIELDS[kind]
        if isinstance(value, tuple | list):
            getattr(added, field).extend(value)
        else:
            setattr(added, field, value)


def _block(block: Any) -> Block:
    operators = tuple(_operator(op) for op in block.ops)
    return Block(block.idx, block.parent_idx, tuple(_variable(v) for v in block.vars), operators)


def _variable(variable: Any) -> Variable:
    kind = variable_kind(variable.type.type, variable.name)
    level = 0
    if kind is VariableKind.LOD_TENSOR:
        tensor, level = variable.type.dense_tensor.tensor, variable.type.dense_tensor.lod_level
    elif kind is VariableKind.LOD_TENSOR_ARRAY:
        tensor, level = variable.type.tensor_array.tensor, variable.type.tensor_array.lod_level
    elif kind is VariableKind.SELECTED_ROWS:
        tensor = variable.type.selected_rows
    else:
        return Variable(variable.name, kind, persistable=variable.persistable)
    return Variable(
        variable.name,
        kind,
        ELEMENT_TYPES.get(tensor.data_type),
        tuple(tensor.dims) or None,
        variable.persistable,
        level,
        variable.need_check_feed,
    )


def _operator(op: Any) -> Operator:
    inputs, outputs = ({s.parameter: tuple(s.arguments) for s in slots} for slots in (op.inputs, op.outputs))
    attributes = {a.name: _attribute(a) for a in op.attrs if a.name not in _LEFT_OUT and a.type < len(AttributeKind)}
    return Operator(op.type, inputs, outputs, attributes)


def _attribute(attribute: Any) -> Attribute:
    kind = AttributeKind(attribute.type)
    value = getattr(attribute, ATTRIBUTE_FIELDS[kind])
    if kind is AttributeKind.STRING:
        return Attribute(kind, _text(value))
    if kind is AttributeKind.BLOCK:
        return Attribute(AttributeKind.INT, int(value))
    if isinstance(value, bool | int | float | str):
        return Attribute(kind, value)
    return Attribute(kind, tuple(_text(item) if isinstance(item, bytes) else item for item in value))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")
