"""Pieces of state that backends save for a model file, deduplicated by content."""

from __future__ import annotations

from collections.abc import Mapping, Set
from hashlib import sha256
from types import MappingProxyType

__all__ = ["Pieces"]


class Pieces:
    """The sections for saved pieces; equal pieces share a section, even of different backends."""

    def __init__(self) -> None:
        self._names: dict[bytes, str] = {}
        self._sections: dict[str, bytes | memoryview] = {}

    def add(self, piece: bytes | memoryview) -> str:
        """Add a piece and return the name of its section: ``saved/0``, ``saved/1``, ... in the order of first use."""
        name = self._names.setdefault(sha256(piece).digest(), f"saved/{len(self._names)}")
        self._sections.setdefault(name, piece)
        return name

    @property
    def sections(self) -> Mapping[str, bytes | memoryview]:
        """The piece of each section, by name."""
        return MappingProxyType(self._sections)

    def size(self, names: Set[str]) -> int:
        """Return the total size of sections in bytes."""
        return sum(memoryview(self._sections[name]).nbytes for name in names)
