"""Errors of a single node: it cannot be lowered. The other nodes are still looked at, so that all are reported."""

from __future__ import annotations

__all__ = ["Reported", "Unlowerable"]


class Unlowerable(Exception):
    """A node of the model cannot be expressed; ``reason`` and ``remedy`` are for the user."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


class Reported(Unlowerable):
    """A node whose graph or function holds a node that cannot be expressed, which is among the problems already."""
