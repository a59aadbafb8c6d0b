"""Where in the arena each tensor lies: storages whose lifetimes do not overlap share memory."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lite_cpu.tensors import Storage

if TYPE_CHECKING:
    from lite_cpu.lowering.context import PlannedStep

__all__ = ["Lifetime", "least_bytes", "lifetimes_of", "plan_arena"]

#: Cache lines, and the widest vector.
ALIGNMENT = 64


@dataclass(eq=False, slots=True)
class Lifetime:
    """A piece of the arena, the first and the last step that touch it, and the storages that lie there in turn."""

    storages: list[Storage]
    first: int
    last: int

    @property
    def bytes(self) -> int:
        """The size of the piece, a multiple of the alignment."""
        return -(-self.storages[0].bytes // ALIGNMENT) * ALIGNMENT


def lifetimes_of(steps: Sequence[PlannedStep]) -> list[Lifetime]:
    """From when to when each storage in the arena is used.

    A step that may overwrite an operand (:attr:`PlannedStep.overwrites`) does so where nothing reads that operand
    later, through whatever view: its result then takes the place of the operand.
    """
    lives: dict[Storage, Lifetime] = {}
    for number, step in enumerate(steps):
        for tensor in step.tensors:
            if tensor.storage.in_arena:
                life = lives.setdefault(tensor.storage, Lifetime([tensor.storage], number, number))
                life.last = number
    for number, step in enumerate(steps):
        for position in step.overwrites:
            result, operand = step.tensors[0].storage, step.tensors[position].storage
            old, new = lives[operand], lives[result]
            if old.last == number == new.first:
                old.storages += new.storages
                old.last = new.last
                lives[result] = old
                break
    return list(dict.fromkeys(lives.values()))


def plan_arena(lifetimes: Sequence[Lifetime]) -> int:
    """Give every storage its offset; returns the bytes of the arena.

    Greedy, the largest first (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020),
    or in another order if that is better. Where a piece sticks out, it is placed before all others and the rest again.
    """
    least = least_bytes(lifetimes)
    best, best_offsets = _place(lifetimes, range(len(lifetimes)))
    for key in _ORDERS:
        order = sorted(range(len(lifetimes)), key=lambda i, key=key: key(lifetimes[i]))  # type: ignore[misc]
        for _ in range(_ATTEMPTS):
            total, offsets = _place(lifetimes, order)
            if total < best:
                best, best_offsets = total, offsets
            if best <= _GOOD_ENOUGH * least:
                break
            top = next(i for i in order if offsets[i] + lifetimes[i].bytes == total)
            order.remove(top)
            order.insert(0, top)
    for life, start in zip(lifetimes, best_offsets):
        for storage in life.storages:
            storage.offset = start
    return best


#: How much more than the least is not worth another attempt: a plan for a new input shape must cost little.
_GOOD_ENOUGH = 1.02

#: How often pieces are placed in each order before the best result is taken.
_ATTEMPTS = 6

#: What pieces are sorted by before they are placed one after another.
_ORDERS: tuple[Callable[[Lifetime], tuple[int, ...]], ...] = (
    lambda life: (-life.bytes, life.first),
    lambda life: (-life.bytes * (life.last - life.first + 1), life.first),
    lambda life: (life.first, -life.last, -life.bytes),
    lambda life: (life.first - life.last, -life.bytes),
    lambda life: (-life.last, life.first, -life.bytes),
)


def _place(lifetimes: Sequence[Lifetime], order: Iterable[int]) -> tuple[int, list[int]]:
    """Bytes in all and an offset for each piece: the lowest at which it fits between those alive with it."""
    offsets = [0] * len(lifetimes)
    placed: list[tuple[int, int, int, int]] = []  # start, end, first and last step, sorted
    total = 0
    for i in order:
        life, start = lifetimes[i], 0
        bytes, first, last = life.bytes, life.first, life.last
        for other_start, other_end, other_first, other_last in placed:
            if other_last < first or last < other_first:
                continue
            if start + bytes <= other_start:
                break
            start = max(start, other_end)
        offsets[i] = start
        total = max(total, start + bytes)
        insort(placed, (start, start + bytes, first, last))
    return total, offsets


def least_bytes(lifetimes: Iterable[Lifetime]) -> int:
    """The most bytes that are alive at once: no arena can be smaller."""
    changes: dict[int, int] = {}
    for life in lifetimes:
        changes[life.first] = changes.get(life.first, 0) + life.bytes
        changes[life.last + 1] = changes.get(life.last + 1, 0) - life.bytes
    alive = most = 0
    for step in sorted(changes):
        alive += changes[step]
        most = max(most, alive)
    return most
