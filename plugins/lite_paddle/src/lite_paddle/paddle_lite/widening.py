"""Programs in 16 or 64 bits: Paddle-Lite computes in float32, so their constants and values become float32."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .draft import Draft

__all__ = ["widen"]

_OTHER_FLOATS = frozenset({"float16", "bfloat16", "float64"})
_NAMES = ("dtype", "in_dtype", "out_dtype")


def widen(draft: Draft) -> None:
    """Let every floating-point value of a draft be float32, inputs and outputs included."""
    for value in draft.values():
        if value.type is not None and value.type.dtype in _OTHER_FLOATS:
            value.type = replace(value.type, dtype="float32")
    for value, array in draft.constants.items():
        if array.dtype.name in _OTHER_FLOATS:
            draft.constants[value] = array.astype(np.float32)
    for op in draft.block.walk():
        for name in _NAMES:
            if op.attrs.get(name) in _OTHER_FLOATS:
                op.attrs[name] = "float32"
