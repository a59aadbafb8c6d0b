"""When the tensors of a program are needed: results may take over the memory of operands."""

from __future__ import annotations

from collections.abc import Sequence

from lite_compiler import lifetimes
from lite_compiler.lifetimes import Lifetime, take_over
from lite_cpu.lowering.steps import PlannedStep
from lite_cpu.tensors import Storage

__all__ = ["lifetimes_of"]


def lifetimes_of(steps: Sequence[PlannedStep]) -> list[Lifetime[Storage]]:
    """From when to when each storage in the arena is used.

    A step that may overwrite an operand (:attr:`PlannedStep.overwrites`) does so where nothing reads that operand
    later, through whatever view: its result then takes the place of the operand.
    """
    lives = lifetimes.lifetimes_of([t.storage for t in step.tensors if t.storage.in_arena] for step in steps)
    for number, step in enumerate(steps):
        for position in step.overwrites:
            if take_over(lives, number, step.tensors[0].storage, step.tensors[position].storage):
                break
    return list(dict.fromkeys(lives.values()))
