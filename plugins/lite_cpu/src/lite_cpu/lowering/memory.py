"""Lifetimes of a program's tensors; results may reuse the memory of operands."""

from __future__ import annotations

from collections.abc import Sequence

from lite_compiler import lifetimes
from lite_compiler.lifetimes import Lifetime, try_reuse_operand
from lite_cpu.lowering.steps import PlannedStep
from lite_cpu.tensors import Storage

__all__ = ["lifetimes_of", "loops_of"]


def lifetimes_of(steps: Sequence[PlannedStep]) -> list[Lifetime[Storage]]:
    """Return the lifetimes of the storages in the arena.

    If a step may overwrite an operand (:attr:`PlannedStep.overwrites`) and no later step reads the operand's storage,
    its result reuses the memory of the operand. What enters or leaves a loop lives during all its iterations.
    """
    lives = lifetimes.lifetimes_of([t.storage for t in step.tensors if t.storage.in_arena] for step in steps)
    for begin, end in loops_of(steps):
        for life in lives.values():
            if life.first < begin <= life.last < end:
                life.last = end
            elif begin < life.first <= end < life.last:
                life.first = begin
    for number, step in enumerate(steps):
        for position in step.overwrites:
            result, operand = step.tensors[0].storage, step.tensors[position].storage
            if result in lives and operand in lives and try_reuse_operand(lives, number, result, operand):
                break
    return list(dict.fromkeys(lives.values()))


def loops_of(steps: Sequence[PlannedStep]) -> list[tuple[int, int]]:
    """Return the first and the last step of each loop, inner loops before those around them."""
    return [(number + step.jump, number) for number, step in enumerate(steps) if step.jump < 0]
