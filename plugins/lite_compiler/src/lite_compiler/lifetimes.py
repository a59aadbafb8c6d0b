"""Where in the arena each tensor lies: storages whose lifetimes do not overlap share memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from lite_core.backend import Interval
from lite_core.memory.arena import plan_arena

__all__ = ["ArenaStorage", "Lifetime", "lifetimes_of", "place", "take_over"]


class ArenaStorage(Protocol):
    """A piece of the arena, told apart from others by which object it is.

    Attributes:
        bytes: its size.
        offset: bytes from the beginning of the arena, decided by :func:`place`.
    """

    bytes: int
    offset: int


S = TypeVar("S", bound=ArenaStorage)


@dataclass(eq=False, slots=True)
class Lifetime(Generic[S]):
    """A piece of the arena, the first and the last step that touch it, and the storages that lie there in turn."""

    storages: list[S]
    first: int
    last: int

    @property
    def interval(self) -> Interval:
        """The piece as the planner takes it."""
        return Interval(self.storages[0].bytes, self.first, self.last)


def lifetimes_of(touched: Iterable[Iterable[S]]) -> dict[S, Lifetime[S]]:
    """From when to when each storage is used.

    Args:
        touched: for each step the storages in the arena that it reads or writes.
    """
    lives: dict[S, Lifetime[S]] = {}
    for number, storages in enumerate(touched):
        for storage in storages:
            life = lives.get(storage)
            if life is None:
                lives[storage] = Lifetime([storage], number, number)
            else:
                life.last = number
    return lives


def take_over(lives: dict[S, Lifetime[S]], step: int, result: S, operand: S) -> bool:
    """Have the result of a step lie where an operand of it does, if nothing needs that later; whether that is so.

    Args:
        lives: of all storages; those that lie at one place share their lifetime then.
        step: its number.
        result: which begins with this step, or stays where it is.
        operand: of the same size, whose elements the step reads before it writes to the same place.
    """
    old, new = lives[operand], lives[result]
    if not old.last == step == new.first:
        return False
    old.storages += new.storages
    old.last = new.last
    lives[result] = old
    return True


def place(lifetimes: Collection[Lifetime[Any]]) -> int:
    """Give every storage its offset; returns the bytes of the arena."""
    plan = plan_arena([life.interval for life in lifetimes])
    for life, offset in zip(lifetimes, plan.offsets):
        for storage in life.storages:
            storage.offset = offset
    return plan.size
