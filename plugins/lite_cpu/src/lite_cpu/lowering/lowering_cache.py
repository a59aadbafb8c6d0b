"""Cache of lowering results that do not depend on tensor sizes, shared by a partition's shape variants."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from lite_cpu.chains import Chain

__all__ = ["LoweringCache"]

_Object = TypeVar("_Object")


class LoweringCache:
    """Objects that are created once for all graphs that differ only in sizes.

    Each graph has its own nodes and values, so the cache holds none of them and identifies nodes by their positions.

    Attributes:
        chains: chains of runs of element-wise nodes. The key is the input position of the start value in the first
            node, followed by the positions of the nodes. The entry also lists the operands, each by the index of a node
            in the run and the position among that node's inputs.
    """

    def __init__(self) -> None:
        self.chains: dict[tuple[int, ...], tuple[Chain, Sequence[tuple[int, int]]]] = {}
        self._objects: dict[Hashable, Any] = {}

    def get_or_make(self, key: Hashable, make: Callable[[], _Object]) -> _Object:
        """Return the object for a key; ``make`` creates it for the first graph."""
        if key not in self._objects:
            self._objects[key] = make()
        cached: _Object = self._objects[key]
        return cached
