"""Mutations of JSON documents."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from fuzz.mutation.plain import FLOATS, INTEGERS, mutated_bytes

__all__ = ["mutated_document", "mutated_json"]

_TEXTS = ["", "x", "0", "-1", "nan", "NaN", "inf", "../x", "/", "\0", "\ud800", "ü", "%s{}", "a" * 1000, "h*w+1"]
_MOST_BYTES = 1 << 15


def mutated_json(data: bytes, chance: random.Random) -> bytes:
    """Return a document with one change of a value, a key or the structure, or now and then of its bytes."""
    try:
        document = json.loads(data) if chance.random() < 0.95 else None
    except (ValueError, RecursionError):
        document = None
    if document is None:
        return mutated_bytes(data, chance)
    try:
        changed = json.dumps(mutated_document(document, chance), separators=(",", ":")).encode()
    except RecursionError:  # nested deeper than this encoder goes
        middle = chance.randrange(len(data) + 1)
        return data[:middle] + chance.choice([b"[", b'{"":']) * 100_000 + data[middle:]
    return changed if len(changed) <= max(_MOST_BYTES, len(data)) else data


def mutated_document(document: Any, chance: random.Random) -> Any:
    """Change one place of a decoded document, which may be modified, and return the document."""
    positions = list(_positions({"": document}))
    holder, key = chance.choice(positions)
    root = positions[0][0]
    value = holder[key]
    kind = chance.randrange(10)
    if kind <= 3 or not isinstance(value, (dict, list)):
        holder[key] = _other(value, chance)
    elif kind == 4 and holder is not root:
        del holder[key]
    elif kind == 5:
        donor, donor_key = chance.choice(positions)
        holder[key] = copy.deepcopy(donor[donor_key])
    elif kind == 6 and value:
        _repeat(value, chance)
    elif kind == 7:
        for _ in range(chance.choice([1, 10, 40, 990, 3000])):
            value = [value]
        holder[key] = value
    elif isinstance(value, dict) and value:
        name = chance.choice(list(value))
        value[chance.choice([*_TEXTS, name.upper(), *map(str, value)])] = value.pop(name)
    elif isinstance(value, list):
        chance.shuffle(value)
    return root[""]


def _positions(root: dict[str, Any]) -> Any:
    """Yield each container of a document with each of its keys, without recursion."""
    pending: list[Any] = [root]
    while pending:
        holder = pending.pop()
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            yield holder, key
            if isinstance(holder[key], (dict, list)):
                pending.append(holder[key])


def _repeat(value: Any, chance: random.Random) -> None:
    """Copy one item of a container several times."""
    count = chance.choice([1, 1, 2, 40, 400])
    if isinstance(value, list):
        value.extend([copy.deepcopy(chance.choice(value))] * count)
    else:
        item = chance.choice(list(value.values()))
        value.update({f"{chance.choice(_TEXTS)}{number}": copy.deepcopy(item) for number in range(count)})


def _other(value: Any, chance: random.Random) -> Any:
    """Return a value of the same kind most of the time."""
    if chance.random() < 0.2:
        return chance.choice([None, True, False, 0, -1, 1.5, "x", [], {}, [[]], [0], {"": 0}, 10**30, 1e400])
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return chance.choice([*INTEGERS, value + 1, value - 1, -value, 2 * value, float(value % 10**9)])
    if isinstance(value, float):
        return chance.choice([*FLOATS, -value, 2 * value])
    if isinstance(value, str):
        middle = chance.randrange(len(value) + 1)
        return chance.choice([*_TEXTS, value * 2, value[:middle], value[:middle] + "\0" + value[middle:]])
    return chance.choice([[], {}, [value], {"": value}])
