"""Encoding of the FlatBuffers in a Paddle-Lite model file: the topology and the parameters.

Paddle-Lite searches slots and attributes by bisection, so they are sorted by the bytes of their names. It reads the
lists of a block and of an operator without looking whether they are there, so these are written even if they are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import flatbuffers
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
    Stored,
)
from .program import Array, Attribute, Block, Operator, Program, Variable, VariableKind
from .type_numbers import NUMBERS, parameter_dtype

__all__ = ["write_parameter", "write_topology"]

_NUMPY_CODES = {"i": "<i4", "q": "<i8", "f": "<f4", "d": "<f8", "?": "u1"}
_LARGEST = 2**31 - 1024  # a FlatBuffer has at most 2 GiB


def write_topology(program: Program) -> bytes:
    """Return the buffer with blocks, variables and operators.

    Raises:
        ModelFormatError: an attribute has a type, or a value out of the range, that the format cannot hold.
    """
    builder = flatbuffers.Builder(1 << 16)
    blocks = _offsets(builder, [_block(builder, block) for block in program.blocks])
    builder.StartObject(1)
    builder.PrependInt64Slot(PROGRAM.VERSION_NUMBER, program.version, 0)
    version = builder.EndObject()
    builder.StartObject(3)
    builder.PrependUOffsetTRelativeSlot(PROGRAM.BLOCKS, blocks, 0)
    builder.PrependUOffsetTRelativeSlot(PROGRAM.VERSION, version, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def write_parameter(name: str, array: Array) -> bytes:
    """Return the buffer with one parameter.

    Raises:
        ModelFormatError: the format has no number for its element type, or it is larger than 2 GiB.
    """
    number = NUMBERS.get(array.dtype.name, -1)
    dtype = parameter_dtype(number, name)
    if array.nbytes > _LARGEST:
        raise ModelFormatError(f"the parameter {name!r} has {array.nbytes} bytes; a .nb file can hold {_LARGEST}")
    builder = flatbuffers.Builder(array.nbytes + len(name) + 256)
    # NOTE: the bytes are copied at once; CreateNumpyVector would copy them twice more.
    content = builder.CreateByteVector(np.ascontiguousarray(array, dtype).tobytes())
    shape = _numbers(builder, array.shape, "q")
    lod = _numbers(builder, (), "q")
    text = builder.CreateString(name)
    builder.StartObject(5)
    builder.PrependUOffsetTRelativeSlot(PARAMETER_TENSOR.LOD, lod, 0)
    builder.PrependUOffsetTRelativeSlot(PARAMETER_TENSOR.SHAPE, shape, 0)
    builder.PrependInt32Slot(PARAMETER_TENSOR.ELEMENT_TYPE, number, 0)
    builder.PrependUOffsetTRelativeSlot(PARAMETER_TENSOR.DATA, content, 0)
    tensor = builder.EndObject()
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(PARAMETER.NAME, text, 0)
    builder.PrependUint8Slot(PARAMETER.KIND, PARAMETER.KIND_TENSOR, 0)
    builder.PrependUOffsetTRelativeSlot(PARAMETER.VALUE, tensor, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def _block(builder: Any, block: Block) -> int:
    operators = _offsets(builder, [_operator(builder, operator) for operator in block.operators])
    variables = _offsets(builder, [_variable(builder, variable) for variable in block.variables])
    builder.StartObject(5)
    builder.PrependInt32Slot(BLOCK.INDEX, block.index, 0)
    builder.PrependInt32Slot(BLOCK.PARENT, block.parent, 0)
    builder.PrependUOffsetTRelativeSlot(BLOCK.VARIABLES, variables, 0)
    builder.PrependUOffsetTRelativeSlot(BLOCK.OPERATORS, operators, 0)
    builder.PrependInt32Slot(BLOCK.FORWARD_INDEX, block.forward_index, -1)
    return int(builder.EndObject())


def _variable(builder: Any, variable: Variable) -> int:
    name = builder.CreateString(variable.name)
    described = _described(builder, variable)
    builder.StartObject(6)
    builder.PrependInt32Slot(TYPE.KIND, int(variable.kind), 0)
    if described:
        builder.PrependUOffsetTRelativeSlot(*described, 0)
    type_ = builder.EndObject()
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(VARIABLE.NAME, name, 0)
    builder.PrependUOffsetTRelativeSlot(VARIABLE.TYPE, type_, 0)
    builder.PrependBoolSlot(VARIABLE.PERSISTABLE, variable.persistable, False)
    builder.PrependBoolSlot(VARIABLE.NEED_CHECK_FEED, variable.need_check_feed, False)
    return int(builder.EndObject())


def _described(builder: Any, variable: Variable) -> tuple[int, int] | None:
    """Write the description of a tensor; return (slot, table), or None if the variable is none."""
    # Paddle-Lite reads the description of every variable of tensors or arrays without looking whether it is there, and
    # of arrays in the slot of tensors.
    is_array = variable.kind is VariableKind.LOD_TENSOR_ARRAY
    element_type = variable.element_type or ("float32" if is_array else None)
    if element_type is None:
        return None
    number = NUMBERS.get(element_type)
    if number is None:
        raise ModelFormatError(
            f"the variable {variable.name!r} has the element type {variable.element_type}; a .nb file can hold "
            f"{', '.join(NUMBERS)}"
        )
    shape = _numbers(builder, variable.shape or (), "q")
    builder.StartObject(2)
    builder.PrependInt32Slot(TENSOR.ELEMENT_TYPE, number, 0)
    builder.PrependUOffsetTRelativeSlot(TENSOR.SHAPE, shape, 0)
    tensor = int(builder.EndObject())
    if variable.kind is VariableKind.SELECTED_ROWS:
        return TYPE.SELECTED_ROWS, tensor
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(TYPE.TENSOR_TENSOR, tensor, 0)
    builder.PrependInt32Slot(TYPE.TENSOR_LOD_LEVEL, variable.lod_level, 0)
    return TYPE.TENSOR, int(builder.EndObject())


def _operator(builder: Any, operator: Operator) -> int:
    type_ = builder.CreateString(operator.type)
    inputs, outputs = (_slots(builder, slots) for slots in (operator.inputs, operator.outputs))
    names = sorted(operator.attributes, key=str.encode)
    attributes = _offsets(builder, [_attribute(builder, operator, n, operator.attributes[n]) for n in names])
    builder.StartObject(5)
    builder.PrependUOffsetTRelativeSlot(OPERATOR.TYPE, type_, 0)
    builder.PrependUOffsetTRelativeSlot(OPERATOR.INPUTS, inputs, 0)
    builder.PrependUOffsetTRelativeSlot(OPERATOR.OUTPUTS, outputs, 0)
    builder.PrependUOffsetTRelativeSlot(OPERATOR.ATTRIBUTES, attributes, 0)
    builder.PrependBoolSlot(OPERATOR.IS_TARGET, operator.is_target, False)
    return int(builder.EndObject())


def _slots(builder: Any, slots: Mapping[str, Sequence[str]]) -> int:
    tables = []
    for slot in sorted(slots, key=str.encode):
        arguments = _offsets(builder, [builder.CreateString(name) for name in slots[slot]])
        name = builder.CreateString(slot)
        builder.StartObject(2)
        builder.PrependUOffsetTRelativeSlot(SLOT.NAME, name, 0)
        builder.PrependUOffsetTRelativeSlot(SLOT.ARGUMENTS, arguments, 0)
        tables.append(int(builder.EndObject()))
    return _offsets(builder, tables)


def _attribute(builder: Any, operator: Operator, name: str, attribute: Attribute) -> int:
    stored = ATTRIBUTE_VALUES.get(attribute.kind)
    if stored is None:
        raise ModelFormatError(
            f"{operator.type}: its attribute {name!r} has the type {attribute.kind.name}, which a .nb file cannot hold"
        )
    try:
        add = _value(builder, stored, attribute.value)
    except (OverflowError, TypeError, ValueError) as error:
        raise ModelFormatError(
            f"{operator.type}: its attribute {name!r} is no {attribute.kind.name}: {str(attribute.value)[:80]}: {error}"
        ) from error
    text = builder.CreateString(name)
    builder.StartObject(16)
    builder.PrependUOffsetTRelativeSlot(ATTRIBUTE.NAME, text, 0)
    builder.PrependInt32Slot(ATTRIBUTE.TYPE, int(attribute.kind), 0)
    add()
    return int(builder.EndObject())


def _value(builder: Any, stored: Stored, value: Any) -> Callable[[], None]:
    """Write what a table refers to; return a function that adds the field to the table."""
    if stored.is_list:
        items: Iterable[Any] = value
        if stored.code == "s":
            offset = _offsets(builder, [builder.CreateString(_bytes(item)) for item in items])
        else:
            offset = _numbers(builder, items, stored.code)
    elif stored.code == "s":
        offset = builder.CreateString(_bytes(value))
    else:
        kind = np.dtype(_NUMPY_CODES[stored.code])
        if kind.kind == "i" and not np.iinfo(kind).min <= value <= np.iinfo(kind).max:
            raise OverflowError(f"it is not between {np.iinfo(kind).min} and {np.iinfo(kind).max}")
        method = {"i": "Int32", "q": "Int64", "f": "Float32", "d": "Float64", "?": "Bool"}[stored.code]
        number = bool(value) if stored.code == "?" else float(value) if stored.code in "fd" else int(value)
        # NOTE: a value equal to the default is left out; readers fill it in.
        return lambda: getattr(builder, f"Prepend{method}Slot")(stored.slot, number, type(number)())
    return lambda: builder.PrependUOffsetTRelativeSlot(stored.slot, offset, 0)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _numbers(builder: Any, items: Iterable[Any], code: str) -> int:
    numbers = list(items)
    kind = np.dtype(_NUMPY_CODES[code])
    if kind.kind == "i" and any(not np.iinfo(kind).min <= item <= np.iinfo(kind).max for item in numbers):
        raise OverflowError(f"an item is not between {np.iinfo(kind).min} and {np.iinfo(kind).max}")
    content = np.asarray(numbers, kind).tobytes()
    builder.StartVector(kind.itemsize, len(numbers), kind.itemsize)
    builder.head -= len(content)
    builder.Bytes[builder.head : builder.head + len(content)] = content
    return int(builder.EndVector())


def _offsets(builder: Any, tables: Sequence[int]) -> int:
    """Write a vector of offsets of strings or tables."""
    builder.StartVector(4, len(tables), 4)
    for table in reversed(tables):
        builder.PrependUOffsetTRelative(table)
    return int(builder.EndVector())
