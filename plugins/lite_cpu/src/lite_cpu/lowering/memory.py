"""Where in the arena each tensor lies: storages whose lifetimes do not overlap share memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lite_core.backend import Interval
from lite_core.memory.arena import plan_arena
from lite_cpu.tensors import Storage

if TYPE_CHECKING:
    from lite_cpu.lowering.context import PlannedStep

__all__ = ["Lifetime", "lifetimes_of", "place"]


@dataclass(eq=False, slots=True)
class Lifetime:
    """A piece of the arena, the first and the last step that touch it, and the storages that lie there in turn."""

    storages: list[Storage]
    first: int
    last: int

    @property
    def interval(self) -> Interval:
        """The piece as the planner takes it."""
        return Interval(self.storages[0].bytes, self.first, self.last)


def lifetimes_of(steps: Sequence[PlannedStep]) -> list[Lifetime]:
    """From when to when each storage in the arena is used.

    A step that may overwrite an operand (:attr:`PlannedStep.overwrites`) does so where nothing reads that operand
    later, through whatever view: its result then takes the place of the operand.
    """
    lives: dict[Storage, Lifetime] = {}
    for number, step in enumerate(steps):
        for tensor in step.tensors:
            if tensor.storage.in_arena:
                life = lives.get(tensor.storage)
                if life is None:
                    lives[tensor.storage] = Lifetime([tensor.storage], number, number)
                else:
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


def place(lifetimes: Sequence[Lifetime]) -> int:
    """Give every storage its offset; returns the bytes of the arena."""
    plan = plan_arena([life.interval for life in lifetimes])
    for life, offset in zip(lifetimes, plan.offsets):
        for storage in life.storages:
            storage.offset = offset
    return plan.size
