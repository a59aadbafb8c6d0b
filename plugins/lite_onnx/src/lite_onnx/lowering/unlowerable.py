"""Errors of single nodes that cannot be lowered. Lowering continues with other nodes, to report all problems."""

from __future__ import annotations

__all__ = ["AlreadyReported", "Unlowerable"]


class Unlowerable(Exception):
    """A node of the model that cannot be lowered; ``reason`` and ``remedy`` are meant for the user."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


class AlreadyReported(Unlowerable):
    """A node whose graph or function contains a node that cannot be lowered and is already among the problems."""
