"""The plans that are kept, one for each set of input shapes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

__all__ = ["PlanCache", "PlanStatistics", "Signature"]

#: The shape of each input, in order.
Signature = tuple[tuple[int, ...], ...]

P = TypeVar("P")


class PlanStatistics(NamedTuple):
    """How plans were used.

    Attributes:
        hits: runs that found a plan for the shapes of their inputs.
        misses: plans that had to be made.
        evictions: plans that made way for others.
        plans: how many there are now.
        capacity: how many there are at most.
    """

    hits: int
    misses: int
    evictions: int
    plans: int
    capacity: int


class PlanCache(Generic[P]):
    """The plans used last, by input shapes. May be used by many threads at once.

    Args:
        capacity: how many are kept; the one not used for longest makes way.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._slots: OrderedDict[Signature, _Slot[P]] = OrderedDict()
        self._lock = threading.Lock()
        self._hits = self._misses = self._evictions = 0

    def find(self, signature: Signature) -> P | None:
        """The plan for a signature where there is one already."""
        with self._lock:
            slot = self._slots.get(signature)
            if slot is None or slot.plan is None:
                return None
            self._slots.move_to_end(signature)
            self._hits += 1
            return slot.plan

    def get(self, signature: Signature, make: Callable[[Signature], P]) -> P:
        """The plan for a signature; ``make`` makes it when it is first needed.

        Threads that need the same new plan wait for it; those whose plan is there do not.
        """
        # NOTE: the cache does not keep `make`, usually a method of its owner: a session would then be freed, with all
        # that it holds, only when Python's collector of cycles runs.
        with self._lock:
            slot = self._slots.setdefault(signature, _Slot())
            self._slots.move_to_end(signature)
            while len(self._slots) > self._capacity:
                self._slots.popitem(last=False)
                self._evictions += 1
        with slot.lock:
            found = slot.plan is not None
            if slot.plan is None:
                slot.plan = make(signature)
            with self._lock:
                self._hits += found
                self._misses += not found
            return slot.plan

    @property
    def statistics(self) -> PlanStatistics:
        """How often a plan was found."""
        with self._lock:
            return PlanStatistics(self._hits, self._misses, self._evictions, len(self._slots), self._capacity)


class _Slot(Generic[P]):
    """Holds a plan, or the lock of the thread that is making it."""

    __slots__ = ("lock", "plan")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.plan: P | None = None
