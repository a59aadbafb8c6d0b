"""Reproducible damage to models: to their bytes, and to the protobuf messages in them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError

__all__ = ["damaged"]

_INTEGERS = [
    0,
    1,
    -1,
    2,
    3,
    7,
    8,
    16,
    64,
    255,
    1 << 15,
    1 << 20,
    (1 << 31) - 1,
    -(1 << 31),
    1 << 40,
    (1 << 63) - 1,
    -(1 << 63),
]
_FLOATS = [0.0, -1.0, 1e38, -1e-38, float("inf"), float("-inf"), float("nan"), 1e10]
_STRINGS = ["", "x", "ai.onnx", "com.microsoft", "NOTSET", "Relu", "Loop", "If", "Identity", "\u2028/ \x00", "a" * 300]
_MAX_COPIES = 40


def damaged(content: bytes, seed: int) -> bytes:
    """Return a model with one to four damages, which are determined by the seed."""
    chance = random.Random(seed)
    for _ in range(chance.choice([1, 1, 2, 4])):
        content = (
            _with_other_messages(content, chance) if chance.random() < 0.75 else _with_other_bytes(content, chance)
        )
    return content


def _with_other_bytes(content: bytes, chance: random.Random) -> bytes:
    data = bytearray(content)
    start = chance.randrange(len(data) + 1)
    length = min(chance.choice([1, 1, 2, 8, 64, len(data)]), len(data) - start)
    kind = chance.randrange(5)
    if kind == 0:
        del data[start : start + length]
    elif kind == 1:
        data[start:start] = bytes(chance.randrange(256) for _ in range(min(length, 64)))
    elif kind == 2:
        data[start : start + length] = bytes([chance.choice([0, 0x7F, 0x80, 0xFF])]) * length
    elif kind == 3:
        data[start:start] = data[start : start + length]
    elif start < len(data):
        data[start] ^= 1 << chance.randrange(8)
    return bytes(data)


def _with_other_messages(content: bytes, chance: random.Random) -> bytes:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
        messages = list(_messages(model))
        _damage(chance.choice(messages), messages, chance)
        return model.SerializeToString()
    except (DecodeError, EncodeError, UnicodeError):  # an earlier damage destroyed the message or a string
        return content


def _messages(message: Any) -> Iterator[Any]:
    """Yield a message and all messages in it."""
    yield message
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in value if _is_repeated(field) else [value]:
                yield from _messages(inner)


def _damage(message: Any, others: list[Any], chance: random.Random) -> None:
    """Change one field of a message, mostly one that is set."""
    present = [field for field, _ in message.ListFields()]
    field = chance.choice(present if present and chance.random() < 0.8 else list(message.DESCRIPTOR.fields))
    if chance.random() < 0.1:
        message.ClearField(field.name)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        _damage_messages(message, field, others, chance)
    elif _is_repeated(field):
        _damage_list(getattr(message, field.name), field, others, chance)
    else:
        setattr(message, field.name, _scalar(field, getattr(message, field.name), others, chance))


def _damage_messages(message: Any, field: Any, others: list[Any], chance: random.Random) -> None:
    """Put another message of the type into a field, or shuffle or change a list of messages."""
    alike = [other for other in others if other.DESCRIPTOR is field.message_type and other.ByteSize() < 1 << 16]
    copy = type(alike[0])() if alike else None
    if copy is not None:
        copy.CopyFrom(chance.choice(alike))
    if not _is_repeated(field):
        (
            getattr(message, field.name).CopyFrom(copy)
            if copy is not None
            else getattr(message, field.name).SetInParent()
        )
        return
    found = getattr(message, field.name)
    kind = chance.randrange(4)
    if kind == 0 and len(found):
        del found[chance.randrange(len(found))]
    elif kind == 1 and len(found) > 1:
        order = [type(item).FromString(item.SerializePartialToString()) for item in found]
        chance.shuffle(order)
        del found[:]
        found.extend(order)
    elif copy is not None:
        found.extend([copy] * chance.choice([1, 1, 2, _MAX_COPIES]))
    else:
        found.add()


def _damage_list(found: Any, field: Any, others: list[Any], chance: random.Random) -> None:
    kind = chance.randrange(4)
    if kind == 0 and len(found):
        del found[chance.randrange(len(found))]
    elif kind == 1 and len(found):
        index = chance.randrange(len(found))
        found[index] = _scalar(field, found[index], others, chance)
    elif kind == 2 and len(found):
        found.extend([found[chance.randrange(len(found))]] * chance.choice([1, _MAX_COPIES]))
    else:
        default = (
            "" if field.type == FieldDescriptor.TYPE_STRING else b"" if field.type == FieldDescriptor.TYPE_BYTES else 0
        )
        found.append(_scalar(field, default, others, chance))


def _scalar(field: Any, value: Any, others: list[Any], chance: random.Random) -> Any:
    """Return another value for a field that is not a message."""
    if field.type == FieldDescriptor.TYPE_STRING:
        names = [name for other in others for name in (*getattr(other, "input", ()), *getattr(other, "output", ()))]
        strings = [name for name in names if isinstance(name, str)]
        return chance.choice(strings if strings and chance.random() < 0.6 else _STRINGS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return chance.choice([b"", value[: len(value) // 2], value + value[:7], b"\xff" * len(value), b"\xc3\x28"])
    if field.type == FieldDescriptor.TYPE_ENUM:
        return chance.choice(field.enum_type.values).number
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return chance.choice(_FLOATS)
    limits = {
        FieldDescriptor.TYPE_INT32: (-(1 << 31), (1 << 31) - 1),
        FieldDescriptor.TYPE_UINT64: (0, (1 << 64) - 1),
    }
    lowest, highest = limits.get(field.type, (-(1 << 63), (1 << 63) - 1))
    number = chance.choice([*_INTEGERS, value + 1, value - 1, -value, value * 2])
    return min(max(number, lowest), highest)


def _is_repeated(field: Any) -> bool:
    # protobuf up to version 5 has the label, since version 6 only the property.
    known = getattr(field, "is_repeated", None)
    return bool(field.label == FieldDescriptor.LABEL_REPEATED if known is None else known)
