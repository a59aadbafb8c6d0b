"""Arena planning: offsets in one block of memory for tensors, such that simultaneously live tensors do not overlap.

Finding the smallest arena is NP-hard. Placing one tensor after another, greedily and ordered by breadth, comes close:
Pisarchyk and Lee, "Efficient memory management for deep neural net inference" (2020). Repairs then close
most of the remaining gap.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from lite_core.backend import Interval
from lite_core.memory.host_memory import ALIGNMENT

__all__ = ["GOOD_ENOUGH", "GOOD_ENOUGH_LATE", "MANY_COMPARISONS", "MOST_REPAIRS", "ArenaPlan", "plan_arena"]

#: A plan this close to the lower bound needs no repair: planning for new input shapes must be cheap.
GOOD_ENOUGH = 1.01

#: The same after :data:`MANY_COMPARISONS` comparisons of tensors, which take a few milliseconds.
GOOD_ENOUGH_LATE = 1.1
MANY_COMPARISONS = 20_000

MOST_REPAIRS = 24


class ArenaPlan(NamedTuple):
    """The offset of each interval in an arena.

    Attributes:
        offsets: in bytes, one for each interval, multiples of the alignment.
        size: of the arena, in bytes.
        lower_bound: largest number of simultaneously live bytes: no plan can be smaller.
    """

    offsets: tuple[int, ...]
    size: int
    lower_bound: int


def plan_arena(intervals: Sequence[Interval], alignment: int = ALIGNMENT) -> ArenaPlan:
    """Assign an offset to each interval: ordered by breadth, then repaired by placing the topmost interval first.

    The breadth of an interval is the largest number of bytes that are live at one step of its lifetime. Repairs stop at
    a plan at most 1 % above the lower bound, or at most 10 % for many intervals.

    Args:
        intervals: sizes and lifetimes of the tensors.
        alignment: of the offsets, in bytes.

    Raises:
        ValueError: an interval has a negative size, or ends before it begins.
    """
    packer = _Packer(intervals, alignment)
    order = packer.by_breadth()
    best = plan = packer.pack(order)
    for _ in range(MOST_REPAIRS):
        if best.size <= packer.good_enough():
            break
        topmost = next(i for i in order if plan.offsets[i] + packer.sizes[i] == plan.size)
        order.remove(topmost)
        order.insert(0, topmost)
        plan = packer.pack(order)
        best = min(best, plan, key=lambda plan: plan.size)
    return best


class _Packer:
    """Intervals with aligned sizes, and for each the other intervals that are live at the same time."""

    def __init__(self, intervals: Sequence[Interval], alignment: int) -> None:
        changes = defaultdict[int, int](int)
        self.sizes = [-(-interval.size // alignment) * alignment for interval in intervals]
        for (given, first, last), size in zip(intervals, self.sizes):
            if given < 0 or last < first:
                raise ValueError(f"an interval cannot have {given} bytes and last from step {first} to step {last}")
            changes[first] += size
            changes[last + 1] -= size
        self._intervals = intervals
        self._steps = sorted(changes)
        self._live_bytes = list(accumulate([changes[step] for step in self._steps]))
        self._lower_bound = max(self._live_bytes, default=0)
        self._neighbours = _neighbours(intervals)
        self._comparisons_per_plan = sum(map(len, self._neighbours))
        self._comparisons = 0

    def good_enough(self) -> float:
        """Return the size of a plan that needs no further repair."""
        return self._lower_bound * (GOOD_ENOUGH if self._comparisons < MANY_COMPARISONS else GOOD_ENOUGH_LATE)

    def by_breadth(self) -> list[int]:
        """Return the indices of the intervals, largest breadth first, then largest size, then earliest."""
        ranks = []
        for (_, first, last), size in zip(self._intervals, self.sizes):
            live = self._live_bytes[bisect_left(self._steps, first) : bisect_right(self._steps, last)]
            ranks.append((-max(live), -size, first))
        return sorted(range(len(ranks)), key=ranks.__getitem__)

    def pack(self, order: Sequence[int]) -> ArenaPlan:
        """Give each interval, in this order, the lowest offset that does not overlap its neighbours."""
        offsets, ends = [-1] * len(order), [0] * len(order)
        for i in order:
            size, start = self.sizes[i], 0
            taken = [(offsets[j], ends[j]) for j in self._neighbours[i] if offsets[j] >= 0]
            for other_start, other_end in sorted(taken):
                if start + size <= other_start:
                    break
                start = max(start, other_end)
            offsets[i], ends[i] = start, start + size
        self._comparisons += self._comparisons_per_plan
        return ArenaPlan(tuple(offsets), max(ends, default=0), self._lower_bound)


def _neighbours(intervals: Sequence[Interval]) -> list[list[int]]:
    """Return for each interval the indices of the others that are live at the same time."""
    neighbours: list[list[int]] = [[] for _ in intervals]
    live: list[int] = []
    for i in sorted(range(len(intervals)), key=lambda i: intervals[i].first):
        first = intervals[i].first
        live = [j for j in live if intervals[j].last >= first]
        neighbours[i] += live
        for j in live:
            neighbours[j].append(i)
        live.append(i)
    return neighbours
