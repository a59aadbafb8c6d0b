"""Decoding of the oldest Paddle-Lite model files: container version 0, and folders with ``__model__.nb``.

Both have plain streams, little endian: the fields of each structure in their order, without tags. A string is a uint64
length and its bytes; a list is a uint64 count and its items; types and kinds are int32.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from lite_core.errors import ModelFormatError

from .parameters import collect, parameter_array
from .program import Array, Attribute, AttributeKind, Block, Operator, Variable, VariableKind
from .type_numbers import ELEMENT_TYPES, STREAM_NUMBERS, variable_kind

__all__ = ["Stream", "read_parameters", "read_topology"]

_Item = TypeVar("_Item")
_FORMATS = {code: struct.Struct(f"<{code}") for code in "?iIqQf"}
# The fields of an attribute's value in their order, with the type of attribute that each belongs to. The letters are
# those of struct, "s" is a string, and "*" marks lists.
_VALUES = (
    (AttributeKind.INT, "i"),
    (AttributeKind.FLOAT, "f"),
    (AttributeKind.STRING, "s"),
    (AttributeKind.INTS, "i*"),
    (AttributeKind.FLOATS, "f*"),
    (AttributeKind.STRINGS, "s*"),
    (AttributeKind.BOOLEAN, "?"),
    (AttributeKind.BOOLEANS, "?*"),
    (AttributeKind.BLOCK, "i"),
    (AttributeKind.LONG, "q"),
    (AttributeKind.BLOCKS, "i*"),
    (AttributeKind.LONGS, "q*"),
)


class Stream:
    """A position in a buffer that moves forward with each item read.

    Args:
        data: the bytes.
        what: description for messages.
    """

    def __init__(self, data: memoryview, what: str) -> None:
        self._data = data
        self._what = what
        self.position = 0

    @property
    def rest(self) -> int:
        """Number of the bytes that were not read."""
        return len(self._data) - self.position

    def take(self, size: int) -> memoryview:
        """Return the next ``size`` bytes.

        Raises:
            ModelFormatError: there are fewer.
        """
        if size > self.rest:
            raise ModelFormatError(
                f"{self._what} is damaged or truncated: it needs {size} bytes at {self.position}, but {self.rest} are "
                "left; copy or convert the model again"
            )
        self.position += size
        return self._data[self.position - size : self.position]

    def number(self, code: str) -> Any:
        """Return the next number; ``code`` is the character of its type in :mod:`struct`."""
        kind = _FORMATS[code]
        return kind.unpack(self.take(kind.size))[0]

    def text(self) -> str:
        """Return the next string. Bytes that are not UTF-8 are surrogates."""
        return bytes(self.take(self.number("Q"))).decode("utf-8", "surrogateescape")

    def name(self) -> str:
        """Return the next string, which must be UTF-8."""
        content = bytes(self.take(self.number("Q")))
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise ModelFormatError(f"{self._what} is damaged: the name {content[:40]!r} is not UTF-8") from None

    def items(self, read: Callable[[], _Item]) -> tuple[_Item, ...]:
        """Return the next list; ``read`` returns one item.

        Raises:
            ModelFormatError: it has more items than there are bytes.
        """
        count = self.number("Q")
        if count > self.rest:
            raise ModelFormatError(f"{self._what} is damaged: a list of {count} items in {self.rest} bytes")
        return tuple(read() for _ in range(count))

    def value(self, code: str) -> Any:
        """Return the next value of an attribute; the codes are those of its table."""
        read = self.text if code[0] == "s" else lambda: self.number(code[0])
        return self.items(read) if code.endswith("*") else read()


def read_topology(stream: Stream) -> tuple[tuple[Block, ...], int]:
    """Return (blocks, version of Paddle) of a stream with the topology.

    Raises:
        ModelFormatError: the stream is damaged.
    """
    return stream.items(lambda: _block(stream)), int(stream.number("q"))


def read_parameters(stream: Stream) -> dict[str, Array]:
    """Return the parameters of a stream, as views of its bytes.

    Raises:
        ModelFormatError: the stream is damaged.
    """
    return collect(stream.items(lambda: _parameter(stream)))


def _parameter(stream: Stream) -> tuple[str, Array]:
    name = stream.name()
    stream.take(4 + 8)  # version of the writer, number of levels of sequence offsets
    stream.items(lambda: stream.items(lambda: stream.number("Q")))  # the offsets
    stream.take(4)  # version of the tensor's structure
    number, shape = _description(stream)
    elements = np.frombuffer(stream.take(stream.number("Q")), np.uint8)
    return name, parameter_array(name, number, shape, elements)


def _block(stream: Stream) -> Block:
    index, parent = stream.number("i"), stream.number("i")
    variables = stream.items(lambda: _variable(stream))
    operators = stream.items(lambda: _operator(stream))
    return Block(index, parent, variables, operators, stream.number("i"))


def _operator(stream: Stream) -> Operator:
    type_ = stream.name()
    inputs, outputs = (dict(stream.items(lambda: _slot(stream))) for _ in range(2))
    attributes = dict(stream.items(lambda: _attribute(stream, type_)))
    return Operator(type_, inputs, outputs, attributes, bool(stream.number("?")))


def _slot(stream: Stream) -> tuple[str, tuple[str, ...]]:
    return stream.name(), stream.items(stream.name)


def _attribute(stream: Stream, type_: str) -> tuple[str, Attribute]:
    name, number = stream.name(), stream.number("i")
    values = {kind: stream.value(code) for kind, code in _VALUES}
    found = next((kind for kind in values if kind == number), None)
    if found is None:
        raise ModelFormatError(f"{type_}: its attribute {name!r} has the unknown type {number}")
    return name, Attribute(found, values[found])


def _variable(stream: Stream) -> Variable:
    name = stream.name()
    kind = variable_kind(STREAM_NUMBERS.get(stream.number("i"), -1), name)
    rows = (_description(stream), 0)
    tensor, array = _sequenced(stream), _sequenced(stream)
    stream.items(lambda: _sequenced(stream))  # a reader's tensors
    stream.items(lambda: stream.number("i"))  # types in a tuple
    described = {
        VariableKind.SELECTED_ROWS: rows,
        VariableKind.LOD_TENSOR: tensor,
        VariableKind.LOD_TENSOR_ARRAY: array,
    }.get(kind)
    persistable = bool(stream.number("?"))
    if described is None:
        return Variable(name, kind, persistable=persistable)
    (number, shape), level = described
    return Variable(name, kind, ELEMENT_TYPES.get(number), shape or None, persistable, max(0, level))


def _sequenced(stream: Stream) -> tuple[tuple[int, tuple[int, ...]], int]:
    return _description(stream), stream.number("i")


def _description(stream: Stream) -> tuple[int, tuple[int, ...]]:
    """Return (Paddle's number of the element type, shape) of a tensor."""
    number = STREAM_NUMBERS.get(stream.number("i"), -1)
    return number, stream.items(lambda: int(stream.number("q")))
