"""What lowering makes of a graph that does not depend on the sizes of its tensors: kept for the next sizes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from lite_cpu.chains import Chain

__all__ = ["Kept"]

_Made = TypeVar("_Made")


class Kept:
    """What is made once for all graphs that differ in sizes only.

    Nodes and values are each graph's own, so none are kept: nodes are known by their positions.

    Attributes:
        chains: what runs of element-wise nodes do, by where the value they start from is read and by their positions;
            each with the places, node of the run and input, where the other operands are read.
    """

    def __init__(self) -> None:
        self.chains: dict[tuple[int, ...], tuple[Chain, Sequence[tuple[int, int]]]] = {}
        self._made: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """What ``make`` returned for this key; it is called only for the first graph."""
        if key not in self._made:
            self._made[key] = make()
        made: _Made = self._made[key]
        return made
