"""Mutations of texts."""

from __future__ import annotations

import random
from collections.abc import Sequence

__all__ = ["mutated_text"]

_PIECES = [
    "",
    "=",
    "==",
    ",",
    ",,",
    "x",
    ".",
    ":",
    "-",
    "--",
    "--help",
    "-1",
    "0",
    "1e999",
    "nan",
    "inf",
    "9" * 30,
    "1_0",
]
_PIECES += [
    "²",
    "٣",
    "\0",
    "\t",
    "é",
    "\ud800",
    "{",
    "[",
    '"',
    "[" * 2000,
    '{"a":',
    "null",
    "true",
    "/",
    "..",
    "~",
    "%s",
]


def mutated_text(text: str, chance: random.Random, words: Sequence[str] = ()) -> str:
    """Return a text in which a range is deleted, copied, or replaced by a difficult text or one of ``words``."""
    start = chance.randrange(len(text) + 1)
    end = min(len(text), start + chance.choice([0, 0, 1, 2, 5, 20]))
    kind = chance.randrange(4)
    if kind == 0:
        return text[:start] + text[end:]
    if kind == 1:
        return text[:end] + text[start:end] * chance.choice([1, 2, 50]) + text[end:]
    piece = chance.choice(words) if words and chance.random() < 0.5 else chance.choice(_PIECES)
    return text[:start] + piece + text[end:]
