"""Mutations of bytes without a known structure, and the numbers that readers are most likely to mistake."""

from __future__ import annotations

import random

__all__ = ["FLOATS", "INTEGERS", "mutated_bytes"]

INTEGERS = [0, 1, -1, 2, 3, 7, 8, 16, 31, 32, 63, 64, 255, 256, 1 << 15, 1 << 16, 1 << 20, (1 << 31) - 1, -(1 << 31)]
INTEGERS += [1 << 32, 1 << 40, (1 << 53) + 1, (1 << 62) + 1, (1 << 63) - 1, -(1 << 63), 1 << 64]
FLOATS = [0.0, -0.0, 0.5, -1.0, 1e-45, 1e10, 1e38, 1e308, float("inf"), float("-inf"), float("nan")]


def mutated_bytes(data: bytes, chance: random.Random) -> bytes:
    """Return bytes with a range deleted, inserted, copied, overwritten or filled, or with one other bit."""
    changed = bytearray(data)
    start = chance.randrange(len(changed) + 1)
    length = min(chance.choice([1, 1, 2, 4, 8, 64, len(changed)]), len(changed) - start)
    kind = chance.randrange(7)
    if kind == 0:
        del changed[start : start + length]
    elif kind == 1:
        changed[start:start] = chance.randbytes(min(length, 64))
    elif kind == 2:
        changed[start : start + length] = bytes([chance.choice([0, 1, 0x7F, 0x80, 0xFF])]) * length
    elif kind == 3:
        changed[start:start] = changed[start : start + length]
    elif kind == 4:
        width = chance.choice([1, 2, 4, 8])
        number = chance.choice(INTEGERS) & ((1 << 8 * width) - 1)
        changed[start : start + width] = number.to_bytes(width, chance.choice(["little", "big"]))
    elif kind == 5:
        source = chance.randrange(len(changed) + 1)
        changed[start : start + length] = changed[source : source + length]
    elif start < len(changed):
        changed[start] ^= 1 << chance.randrange(8)
    return bytes(changed)
