"""The error of a single operator: it cannot be lowered. The others are still looked at, so that all are reported."""

from __future__ import annotations

__all__ = ["Unlowerable"]


class Unlowerable(Exception):
    """An operator of the model cannot be expressed; ``reason`` and ``remedy`` are for the user."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy
