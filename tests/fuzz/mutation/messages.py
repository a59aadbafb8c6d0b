"""Mutations of protobuf messages of any type, and of the bytes that encode them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError

from fuzz.mutation.plain import FLOATS, INTEGERS, mutated_bytes

__all__ = ["all_messages", "change_message", "mutated_message", "smaller_messages"]

_STRINGS = ["", "x", "ai.onnx", "com.microsoft", "NOTSET", "Relu", "Loop", "If", "Identity", "\u2028/ \x00", "a" * 300]
_STRINGS += ["../x", "a" * 20_000, "2" * 400, "feed", "fetch", "float32"]
_MOST_COPIES = 40
_MOST_BYTES = 1 << 15

_LIMITS = {
    FieldDescriptor.TYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.TYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.TYPE_UINT64: (0, (1 << 64) - 1),
}


def mutated_message(content: bytes, message_class: Any, chance: random.Random) -> bytes:
    """Return an encoded message with one change: mostly of a field, else of messages in it or of the bytes."""
    message = message_class()
    try:
        message.ParseFromString(content)
        messages = list(all_messages(message))
        kind = chance.random()
        if kind < 0.8:
            change_message(chance.choice(messages), messages, chance)
        elif kind < 0.86:
            _swap(messages, chance)
        elif kind < 0.9:
            _nest(message, messages, chance)
        else:
            return mutated_bytes(content, chance)
        changed: bytes = message.SerializePartialToString()
    except (DecodeError, EncodeError, RecursionError, UnicodeError):  # an earlier change destroyed the message
        return mutated_bytes(content, chance)
    return changed if len(changed) <= max(_MOST_BYTES, len(content)) else content


def smaller_messages(content: bytes, message_class: Any) -> Iterator[bytes]:
    """Yield messages that lack one field, half of a list, or one item of it; the outer messages first."""
    try:
        for number, name, removed in _parts(message_class.FromString(content)):
            message = message_class.FromString(content)
            inner = next(itertools.islice(all_messages(message), number, None))
            if removed is None:
                inner.ClearField(name)
            else:
                del getattr(inner, name)[removed]
            yield message.SerializePartialToString()
    except (DecodeError, EncodeError, RecursionError, UnicodeError):
        return


def _parts(message: Any) -> list[tuple[int, str, slice | None]]:
    """Return what can be removed: the number of a message, a field, and a range of the field's items or None."""
    found: list[tuple[int, str, slice | None]] = []
    for number, inner in enumerate(all_messages(message)):
        for field, value in inner.ListFields():
            count = len(value) if _is_repeated(field) else 0
            halves = [slice(0, count // 2), slice(count // 2, count)] if count > 1 else []
            items = [slice(i, i + 1) for i in range(count)] if count > 2 else []
            found += [(number, field.name, removed) for removed in [None, *halves, *items]]
    return found


def all_messages(message: Any) -> Iterator[Any]:
    """Yield a message and all messages in it."""
    yield message
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in value if _is_repeated(field) else [value]:
                yield from all_messages(inner)


def change_message(message: Any, others: list[Any], chance: random.Random) -> None:
    """Change one field of a message, mostly one that is set; names and messages are taken from ``others``."""
    present = [field for field, _ in message.ListFields()]
    every = list(message.DESCRIPTOR.fields)
    if not every:
        return
    field = chance.choice(present if present and chance.random() < 0.8 else every)
    if chance.random() < 0.1:
        message.ClearField(field.name)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        _change_messages(message, field, others, chance)
    elif _is_repeated(field):
        _change_list(getattr(message, field.name), field, others, chance)
    else:
        setattr(message, field.name, _scalar(field, getattr(message, field.name), others, chance))


def _swap(messages: list[Any], chance: random.Random) -> None:
    """Exchange two messages of the same type."""
    one = chance.choice(messages)
    other = chance.choice([message for message in messages if message.DESCRIPTOR is one.DESCRIPTOR])
    first, second = _copied(one), _copied(other)
    one.CopyFrom(second)
    if first.ByteSize() < _MOST_BYTES:
        other.CopyFrom(first)


def _nest(root: Any, messages: list[Any], chance: random.Random) -> None:
    """Put a message into a message of its type inside it, again and again: the depth doubles each time."""
    nested = [(m, inner) for m in messages for inner in all_messages(m) if inner.DESCRIPTOR is m.DESCRIPTOR]
    pairs = [(outer, inner) for outer, inner in nested if outer is not inner]
    if not pairs:
        return
    outer, inner = chance.choice(pairs)
    for _ in range(chance.choice([1, 3, 5, 7])):
        if root.ByteSize() > _MOST_BYTES // 2:
            return
        inner.CopyFrom(_copied(outer))


def _copied(message: Any) -> Any:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def _change_messages(message: Any, field: Any, others: list[Any], chance: random.Random) -> None:
    """Put another message of the type into a field, or shuffle or change a list of messages."""
    alike = [other for other in others if other.DESCRIPTOR is field.message_type and other.ByteSize() < 1 << 16]
    copy = _copied(chance.choice(alike)) if alike else None
    if not _is_repeated(field):
        if copy is not None:
            getattr(message, field.name).CopyFrom(copy)
        else:
            getattr(message, field.name).SetInParent()
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
        found.extend([copy] * chance.choice([1, 1, 2, _MOST_COPIES]))
    else:
        found.add()


def _change_list(found: Any, field: Any, others: list[Any], chance: random.Random) -> None:
    kind = chance.randrange(4)
    if kind == 0 and len(found):
        del found[chance.randrange(len(found))]
    elif kind == 1 and len(found):
        index = chance.randrange(len(found))
        found[index] = _scalar(field, found[index], others, chance)
    elif kind == 2 and len(found):
        found.extend([found[chance.randrange(len(found))]] * chance.choice([1, _MOST_COPIES]))
    else:
        empty = {FieldDescriptor.TYPE_STRING: "", FieldDescriptor.TYPE_BYTES: b""}.get(field.type, 0)
        found.append(_scalar(field, empty, others, chance))


def _scalar(field: Any, value: Any, others: list[Any], chance: random.Random) -> Any:
    """Return another value for a field that is not a message."""
    if field.type == FieldDescriptor.TYPE_STRING:
        names = [text for other in others for text in _texts(other)]
        return chance.choice(names if names and chance.random() < 0.6 else _STRINGS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return chance.choice([b"", value[: len(value) // 2], value + value[:7], b"\xff" * len(value), b"\xc3\x28"])
    if field.type == FieldDescriptor.TYPE_ENUM:
        return chance.choice(field.enum_type.values).number
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return chance.choice([*FLOATS[:6], 1e38, *FLOATS[8:]])
    if field.type == FieldDescriptor.TYPE_BOOL:
        return not value
    lowest, highest = _LIMITS.get(field.type, (-(1 << 63), (1 << 63) - 1))
    number = chance.choice([*INTEGERS, value + 1, value - 1, -value, value * 2])
    return min(max(number, lowest), highest)


def _texts(message: Any) -> Iterator[str]:
    """Yield the texts of a message: names of values, operators and attributes. One that is not UTF-8 is bytes."""
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_STRING:
            yield from (text for text in (value if _is_repeated(field) else [value]) if isinstance(text, str))


def _is_repeated(field: Any) -> bool:
    # protobuf up to version 5 has the label, since version 6 only the property.
    known = getattr(field, "is_repeated", None)
    return bool(field.label == FieldDescriptor.LABEL_REPEATED if known is None else known)
