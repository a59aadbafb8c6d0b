"""Reproducible damage to models: to their bytes, and to the protobuf messages in them."""

from __future__ import annotations

import random

import onnx
from fuzz.mutation import mutated_bytes, mutated_message

__all__ = ["damaged"]


def damaged(content: bytes, seed: int) -> bytes:
    """Return a model with one to four damages, which are determined by the seed."""
    chance = random.Random(seed)
    for _ in range(chance.choice([1, 1, 2, 4])):
        if chance.random() < 0.75:
            content = mutated_message(content, onnx.ModelProto, chance)
        else:
            content = mutated_bytes(content, chance)
    return content
