"""Planning an arena: where in one block of memory each tensor lies, so that what lives at once does not overlap.

Finding the smallest arena is NP-hard. Placing tensors one after another in a simple order comes near it: the orders are
those of Pisarchyk and Lee, "Efficient memory management for deep neural net inference" (2020), and of allocators.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import NamedTuple

from lite_core.backend import Interval

__all__ = ["STRATEGIES", "ArenaPlan", "plan_arena", "strategy_sizes"]

#: Bytes of a cache line, and of the widest vector.
_ALIGNMENT = 64

#: A plan so near the lower bound is not worth another attempt: planning for new input shapes must cost little.
_GOOD_ENOUGH = 1.01

#: The same after :data:`_MANY_LOOKS` at what lives beside a piece, which take a few milliseconds.
_GOOD_ENOUGH_LATE = 1.1
_MANY_LOOKS = 20_000

#: How often the best plan is repaired.
_MOST_REPAIRS = 24


class ArenaPlan(NamedTuple):
    """Where each interval lies.

    Attributes:
        offsets: in bytes, one for each interval, multiples of the alignment.
        size: of the arena, in bytes.
        lower_bound: the most bytes that live at once: no plan can be smaller.
        strategy: which of :data:`STRATEGIES` it comes from, and whether it was repaired.
    """

    offsets: tuple[int, ...]
    size: int
    lower_bound: int
    strategy: str


class _Piece(NamedTuple):
    """An interval with its size rounded up to the alignment; ``breadth`` is the most bytes that live while it does."""

    size: int
    first: int
    last: int
    breadth: int

    @property
    def steps(self) -> int:
        return self.last - self.first + 1


_RANKS: Mapping[str, Callable[[_Piece], tuple[int, ...]]] = MappingProxyType(
    {
        "size": lambda piece: (-piece.size, piece.first),
        "area": lambda piece: (-piece.size * piece.steps, piece.first),
        "breadth": lambda piece: (-piece.breadth, -piece.size, piece.first),
        "lifetime": lambda piece: (-piece.steps, -piece.size, piece.first),
        "first use": lambda piece: (piece.first, -piece.size),
        "best fit": lambda piece: (piece.first, -piece.size),
    }
)

#: The known strategies, in the order they are tried: by size, by size times lifetime, by the bytes that live at the
#: same time, by lifetime, and twice by the first use. "best fit" takes the smallest gap that a piece fits into, the
#: others the lowest.
STRATEGIES = tuple(_RANKS)


def plan_arena(intervals: Sequence[Interval], alignment: int = _ALIGNMENT) -> ArenaPlan:
    """Place intervals by the best of the known strategies, repaired where that is better.

    The search ends with a plan at most 1 % above the lower bound or, where that takes long, at most 10 % above it.

    Args:
        intervals: what is to be placed.
        alignment: of the offsets, in bytes.

    Raises:
        ValueError: an interval has a negative size, or ends before it begins.
    """
    packing = _Packing(intervals, alignment)
    attempts = packing.attempts()
    best = next(attempts)
    while best.size > packing.good_enough() and (attempt := next(attempts, None)):
        best = min(best, attempt, key=lambda plan: plan.size)
    return best


def strategy_sizes(intervals: Sequence[Interval], alignment: int = _ALIGNMENT) -> dict[str, int]:
    """The size in bytes of the arena that each of :data:`STRATEGIES` gives."""
    packing = _Packing(intervals, alignment)
    return {strategy: packing.place(packing.order(strategy), strategy).size for strategy in STRATEGIES}


class _Packing:
    """Pieces, and which of them live at the same time."""

    def __init__(self, intervals: Sequence[Interval], alignment: int) -> None:
        aligned, changes = [], defaultdict[int, int](int)
        for size, first, last in intervals:
            if size < 0 or last < first:
                raise ValueError(f"an interval cannot have {size} bytes and last from step {first} to step {last}")
            size = -(-size // alignment) * alignment
            aligned.append((size, first, last))
            changes[first] += size
            changes[last + 1] -= size
        steps = sorted(changes)
        alive = list(accumulate([changes[step] for step in steps]))
        self._lower_bound = max(alive, default=0)
        self._pieces = [
            _Piece(size, first, last, max(alive[bisect_left(steps, first) : bisect_right(steps, last)]))
            for size, first, last in aligned
        ]
        self._neighbours = _neighbours(self._pieces)
        self._looks_at_once = sum(map(len, self._neighbours))
        self._looks = 0

    def good_enough(self) -> float:
        """The size of a plan that ends the search."""
        return self._lower_bound * (_GOOD_ENOUGH if self._looks < _MANY_LOOKS else _GOOD_ENOUGH_LATE)

    def order(self, strategy: str) -> list[int]:
        """The numbers of the pieces as a strategy places them."""
        ranks = [_RANKS[strategy](piece) for piece in self._pieces]
        return sorted(range(len(ranks)), key=ranks.__getitem__)

    def attempts(self) -> Iterator[ArenaPlan]:
        """The plans of the known strategies, then repairs of the best: a piece that sticks out is placed first."""
        orders = {}
        plans = []
        for strategy in STRATEGIES:
            orders[strategy] = self.order(strategy)
            plans.append(self.place(orders[strategy], strategy))
            yield plans[-1]
        plan = min(plans, key=lambda plan: plan.size)
        strategy, order = plan.strategy, orders[plan.strategy]
        for _ in range(_MOST_REPAIRS):
            top = next(i for i in order if plan.offsets[i] + self._pieces[i].size == plan.size)
            order.remove(top)
            order.insert(0, top)
            plan = self.place(order, strategy)
            yield plan._replace(strategy=f"{strategy}, repaired")

    def place(self, order: Sequence[int], strategy: str) -> ArenaPlan:
        """Place pieces in an order, each in a gap between those placed before that live at the same time."""
        takes_smallest = strategy == "best fit"
        offsets, ends = [-1] * len(order), [0] * len(order)
        for i in order:
            size, start, smallest = self._pieces[i].size, 0, None
            taken = [(offsets[j], ends[j]) for j in self._neighbours[i] if offsets[j] >= 0]
            for other_start, other_end in sorted(taken):
                if start + size <= other_start:
                    if not takes_smallest:
                        break
                    gap = (other_start - start, start)
                    smallest = gap if smallest is None else min(smallest, gap)
                if other_end > start:
                    start = other_end
            if smallest is not None:
                start = smallest[1]
            offsets[i], ends[i] = start, start + size
        self._looks += self._looks_at_once
        return ArenaPlan(tuple(offsets), max(ends, default=0), self._lower_bound, strategy)


def _neighbours(pieces: Sequence[_Piece]) -> list[list[int]]:
    """For each piece the numbers of those that live at a time when it does."""
    neighbours: list[list[int]] = [[] for _ in pieces]
    alive: list[int] = []
    for i in sorted(range(len(pieces)), key=lambda i: pieces[i].first):
        first = pieces[i].first
        alive = [j for j in alive if pieces[j].last >= first]
        neighbours[i] += alive
        for j in alive:
            neighbours[j].append(i)
        alive.append(i)
    return neighbours
