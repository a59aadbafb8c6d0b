"""The cache of plans, one for each set of input shapes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from lite_core.forking import new_lock, undivided

__all__ = ["PlanCache", "PlanStatistics", "Signature"]

#: The shape of each input, in order.
Signature = tuple[tuple[int, ...], ...]

P = TypeVar("P")


class PlanStatistics(NamedTuple):
    """Statistics of a plan cache.

    Attributes:
        hits: runs that found a plan for the shapes of their inputs.
        misses: plans that had to be made.
        evictions: plans that were evicted.
        plans: present number of plans.
        capacity: maximum number of plans.
    """

    hits: int
    misses: int
    evictions: int
    plans: int
    capacity: int


class PlanCache(Generic[P]):
    """An LRU cache of plans by input shapes. Thread-safe.

    Args:
        capacity: maximum number of plans; the least recently used one is evicted.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._slots: OrderedDict[Signature, _Slot[P]] = OrderedDict()
        self._lock = new_lock()
        self._hits = self._misses = self._evictions = 0

    def find(self, signature: Signature) -> P | None:
        """Return the cached plan for a signature, or None."""
        with self._lock:
            slot = self._slots.get(signature)
            if slot is None or slot.plan is None:
                return None
            self._slots.move_to_end(signature)
            self._hits += 1
            return slot.plan

    def get(self, signature: Signature, make: Callable[[Signature], P]) -> P:
        """Return the plan for a signature; call ``make`` if it is not cached.

        Threads that need the same new plan wait for it; threads whose plan is cached do not wait.
        """
        # NOTE: the cache does not store `make`, usually a method of its owner: that would create a reference cycle, and
        # a session and its memory would be freed only when the garbage collector runs.
        with self._lock:
            slot = self._slots.setdefault(signature, _Slot())
            self._slots.move_to_end(signature)
            while len(self._slots) > self._capacity:
                self._slots.popitem(last=False)
                self._evictions += 1
        with undivided(), slot.lock:
            found = slot.plan is not None
            if slot.plan is None:
                slot.plan = make(signature)
            with self._lock:
                self._hits += found
                self._misses += not found
            return slot.plan

    @property
    def statistics(self) -> PlanStatistics:
        """The hits, misses and evictions so far."""
        with self._lock:
            return PlanStatistics(self._hits, self._misses, self._evictions, len(self._slots), self._capacity)


class _Slot(Generic[P]):
    """A cached plan, or the lock held by the thread that is making it."""

    __slots__ = ("lock", "plan")

    def __init__(self) -> None:
        self.lock = new_lock()
        self.plan: P | None = None
