"""Lifetimes of storages, and their offsets in the arena: storages whose lifetimes do not overlap share memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from lite_core.backend import Interval
from lite_core.memory.arena import plan_arena

__all__ = ["ArenaStorage", "Lifetime", "assign_offsets", "lifetimes_of", "try_reuse_operand"]


class ArenaStorage(Protocol):
    """A block of memory in the arena, compared by identity.

    Attributes:
        bytes: the size of the block.
        offset: bytes from the beginning of the arena, set by :func:`assign_offsets`.
    """

    bytes: int
    offset: int


S = TypeVar("S", bound=ArenaStorage)


@dataclass(eq=False, slots=True)
class Lifetime(Generic[S]):
    """The lifetime of a block of the arena.

    Attributes:
        storages: the storages that occupy the block one after another; all have the same size.
        first: the first step that uses the block.
        last: the last step that uses the block.
    """

    storages: list[S]
    first: int
    last: int

    @property
    def interval(self) -> Interval:
        """The lifetime in the form that the arena planner takes."""
        return Interval(self.storages[0].bytes, self.first, self.last)


def lifetimes_of(used: Iterable[Iterable[S]]) -> dict[S, Lifetime[S]]:
    """Return the lifetime of each storage.

    Args:
        used: for each step, the storages in the arena that it reads or writes.
    """
    lives: dict[S, Lifetime[S]] = {}
    for number, storages in enumerate(used):
        for storage in storages:
            life = lives.get(storage)
            if life is None:
                lives[storage] = Lifetime([storage], number, number)
            else:
                life.last = number
    return lives


def try_reuse_operand(lives: dict[S, Lifetime[S]], step: int, result: S, operand: S) -> bool:
    """Let the result of a step reuse the memory of an operand; return False if the operand or the result prevents it.

    The memory is reused if this step is the last use of the operand and the first use of the result.

    Args:
        lives: the lifetimes of all storages; storages that share memory also share one lifetime.
        step: the index of the step.
        result: the storage of the result.
        operand: a storage of the same size; the step reads each of its elements before it writes to the same address.
    """
    old, new = lives[operand], lives[result]
    if not old.last == step == new.first:
        return False
    old.storages += new.storages
    old.last = new.last
    lives[result] = old
    return True


def assign_offsets(lifetimes: Collection[Lifetime[Any]]) -> int:
    """Set the arena offset of every storage, and return the size of the arena in bytes."""
    plan = plan_arena([life.interval for life in lifetimes])
    for life, offset in zip(lifetimes, plan.offsets):
        for storage in life.storages:
            storage.offset = offset
    return plan.size
