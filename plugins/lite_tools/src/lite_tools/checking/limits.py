"""The largest allowed differences of outputs that were computed in different ways."""

from __future__ import annotations

__all__ = ["LIMITS"]

#: By the type that a backend computes in: the largest allowed difference of an output, as a share of its range.
LIMITS = {"float32": 1e-3, "float16": 2e-2, "bfloat16": 1e-1}
