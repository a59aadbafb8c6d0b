"""Slots of the tables in Paddle-Lite's FlatBuffers: the numbers of fields in their order of declaration.

Source: the schemas ``framework.fbs`` and ``param.fbs`` of Paddle-Lite (Apache-2.0).
"""

from __future__ import annotations

from typing import NamedTuple

from .program import AttributeKind

__all__ = [
    "ATTRIBUTE",
    "ATTRIBUTE_VALUES",
    "BLOCK",
    "OPERATOR",
    "PARAMETER",
    "PARAMETER_TENSOR",
    "PROGRAM",
    "SLOT",
    "TENSOR",
    "TYPE",
    "VARIABLE",
    "Stored",
]


class PROGRAM:
    """ProgramDesc, and the only field of its Version."""

    BLOCKS, VERSION = 0, 1
    VERSION_NUMBER = 0


class BLOCK:
    """BlockDesc."""

    INDEX, PARENT, VARIABLES, OPERATORS, FORWARD_INDEX = range(5)


class OPERATOR:
    """OpDesc."""

    TYPE, INPUTS, OUTPUTS, ATTRIBUTES, IS_TARGET = range(5)


class SLOT:
    """OpDesc.Var: an input or output slot."""

    NAME, ARGUMENTS = 0, 1


class ATTRIBUTE:
    """OpDesc.Attr, without the fields of values, which are in :data:`ATTRIBUTE_VALUES`."""

    NAME, TYPE = 0, 1


class VARIABLE:
    """VarDesc."""

    NAME, TYPE, PERSISTABLE, NEED_CHECK_FEED = range(4)


class TYPE:
    """VarType, and the fields that LoDTensorDesc and LoDTensorArrayDesc share."""

    KIND, SELECTED_ROWS, TENSOR, ARRAY = range(4)
    TENSOR_TENSOR, TENSOR_LOD_LEVEL = 0, 1


class TENSOR:
    """TensorDesc."""

    ELEMENT_TYPE, SHAPE = 0, 1


class PARAMETER:
    """ParamDesc; KIND_TENSOR is the number of the only kind in the union. CombinedParamsDesc has one field, a list."""

    NAME, KIND, VALUE = 1, 2, 3
    KIND_TENSOR = 1
    COMBINED_LIST = 0


class PARAMETER_TENSOR:
    """ParamDesc.LoDTensorDesc."""

    LOD, SHAPE, ELEMENT_TYPE, DATA = 1, 2, 3, 4


class Stored(NamedTuple):
    """The field of an attribute's value.

    Attributes:
        slot: its slot.
        code: character of the number's type in :mod:`struct`, ``s`` for a string.
        is_list: whether there are several.
    """

    slot: int
    code: str
    is_list: bool = False


#: The field of each type of attribute. Paddle-Lite has none for VAR and VARS.
ATTRIBUTE_VALUES = {
    AttributeKind.INT: Stored(2, "i"),
    AttributeKind.FLOAT: Stored(3, "f"),
    AttributeKind.STRING: Stored(4, "s"),
    AttributeKind.INTS: Stored(5, "i", is_list=True),
    AttributeKind.FLOATS: Stored(6, "f", is_list=True),
    AttributeKind.STRINGS: Stored(7, "s", is_list=True),
    AttributeKind.BOOLEAN: Stored(8, "?"),
    AttributeKind.BOOLEANS: Stored(9, "?", is_list=True),
    AttributeKind.BLOCK: Stored(10, "i"),
    AttributeKind.LONG: Stored(11, "q"),
    AttributeKind.BLOCKS: Stored(12, "i", is_list=True),
    AttributeKind.LONGS: Stored(13, "q", is_list=True),
    AttributeKind.FLOAT64: Stored(14, "d"),
    AttributeKind.FLOAT64S: Stored(15, "d", is_list=True),
}
