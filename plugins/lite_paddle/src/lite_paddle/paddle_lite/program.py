"""The content of a Paddle-Lite model file, as immutable objects that follow the file closely.

Nothing is interpreted here: operators are in the file's order and vocabulary, variables may be written several times,
and attributes keep the type that the file records, because Paddle-Lite compares it when it reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

__all__ = [
    "KERNEL_ATTRIBUTE",
    "Array",
    "Attribute",
    "AttributeKind",
    "Block",
    "Operator",
    "Program",
    "Variable",
    "VariableKind",
]

Array = np.ndarray[Any, Any]

#: The attribute with the kernel chosen for an operator: ``TYPE/ALIAS/TARGET/PRECISION/LAYOUT``.
KERNEL_ATTRIBUTE = "__@kernel_type_attr@__"


class AttributeKind(IntEnum):
    """The type of an attribute, with the numbers of Paddle and Paddle-Lite."""

    INT = 0
    FLOAT = 1
    STRING = 2
    INTS = 3
    FLOATS = 4
    STRINGS = 5
    BOOLEAN = 6
    BOOLEANS = 7
    BLOCK = 8
    LONG = 9
    BLOCKS = 10
    LONGS = 11
    FLOAT64S = 12
    VAR = 13
    VARS = 14
    FLOAT64 = 15


class VariableKind(IntEnum):
    """The kind of a variable, with the numbers of Paddle's ``VarType.Type``; the other numbers are element types."""

    LOD_TENSOR = 7
    SELECTED_ROWS = 8
    FEED_MINIBATCH = 9
    FETCH_LIST = 10
    STEP_SCOPES = 11
    LOD_RANK_TABLE = 12
    LOD_TENSOR_ARRAY = 13
    PLACE_LIST = 14
    READER = 15
    RAW = 17
    TUPLE = 18


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute's value with its recorded type.

    Attributes:
        kind: the type.
        value: an int (also for BLOCK, the index), a float, a str, a bool, or a tuple of one of them. Bytes of a string
            that are not UTF-8 are surrogates (``surrogateescape``).
    """

    kind: AttributeKind
    value: Any


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator.

    Attributes:
        type: its type, such as ``conv2d`` or ``io_copy``.
        inputs: slot -> names of variables; a slot may have none.
        outputs: the same for the results.
        attributes: name -> attribute.
        is_target: a mark of the file without a meaning in inference.
    """

    type: str
    inputs: Mapping[str, tuple[str, ...]]
    outputs: Mapping[str, tuple[str, ...]]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    is_target: bool = False

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute, or ``default`` if the operator does not have it."""
        found = self.attributes.get(name)
        return default if found is None else found.value


@dataclass(frozen=True, slots=True)
class Variable:
    """The declaration of a variable.

    Attributes:
        name: its name.
        kind: tensor, tensor array, list of inputs ...
        element_type: such as ``"float32"``; None if the variable is no tensor.
        shape: dimensions, -1 for unknown ones. They are informational and may be out of date. None: the file has none.
        persistable: the variable is a parameter, or ``feed`` or ``fetch``.
        lod_level: number of levels of sequence offsets.
        need_check_feed: a mark of Paddle for its own checks of inputs.
    """

    name: str
    kind: VariableKind = VariableKind.LOD_TENSOR
    element_type: str | None = None
    shape: tuple[int, ...] | None = None
    persistable: bool = False
    lod_level: int = 0
    need_check_feed: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """Operators in execution order, with the variables that they use.

    Attributes:
        index: number of the block in the program.
        parent: number of the enclosing block, -1 for the main block.
        variables: the declarations.
        operators: the operators.
        forward_index: a number that only training uses.
    """

    index: int
    parent: int
    variables: tuple[Variable, ...]
    operators: tuple[Operator, ...]
    forward_index: int = -1


@dataclass(frozen=True, slots=True)
class Program:
    """A whole model file.

    Attributes:
        blocks: the main block, then the blocks of loops and conditionals.
        parameters: name -> array in C order. Arrays of a decoded file are read-only views of its bytes, which may not
            be aligned to the item size.
        version: version of Paddle that exported the model: ``major * 1000000 + minor * 1000 + patch``; 0 if unknown.
        meta_version: version of the container: 0, 1 or 2; -1 for a folder, which is older.
        opt_version: version of Paddle-Lite whose converter wrote the file, such as ``v2.13-rc``; empty for a folder.
    """

    blocks: tuple[Block, ...]
    parameters: Mapping[str, Array]
    version: int = 0
    meta_version: int = 2
    opt_version: str = ""
