"""The error of a single operator that cannot be lowered. Lowering continues, to report all such operators."""

from __future__ import annotations

__all__ = ["Unlowerable"]


class Unlowerable(Exception):
    """An operator of the model cannot be expressed in Lite; ``reason`` and ``remedy`` are for the user."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy
