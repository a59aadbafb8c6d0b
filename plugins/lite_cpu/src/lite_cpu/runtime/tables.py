"""Programs as tables of numbers, wherever code and data will be in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_core.errors import LiteError
from lite_cpu.runtime.layout import CHUNK_LIMIT, POINTER_LIMIT, STEP_LIMIT, STEP_WORDS, StepField

__all__ = ["ProgramError", "ProgramTables", "Step", "Words"]

Words = np.ndarray[Any, np.dtype[np.int64]]

#: Bytes of a pointer (base and offset) and of a parameter.
_POINTER_BYTES, _PARAM_BYTES = 16, 8


class ProgramError(LiteError):
    """Steps that no program can be made of, or memory that does not fit the program that is run."""


class Step(NamedTuple):
    """One call of a kernel: ``void kernel(pointers, params, begin, end, thread_scratch)``.

    Attributes:
        kernel: address of its code.
        pointers: where its tensors are: (number of the base, offset in bytes). Base 0 is the arena.
        params: its parameters, int64.
        tasks: work items. Any thread may do any of them, in any order.
        grain: the most work items that a thread takes at a time. One thread does all if there are no more.
        label: what people call it, for profiles and messages.
    """

    kernel: int
    pointers: Sequence[tuple[int, int]]
    params: Sequence[int]
    tasks: int = 1
    grain: int = 1
    label: str = ""


class ProgramTables(NamedTuple):
    """The steps of a program as numbers.

    Attributes:
        steps: int64[steps, :data:`STEP_WORDS`]: see :class:`StepField`, but ``POINTERS`` and ``PARAMS`` are bytes from
            the start of the two other tables.
        pointers: int64[pointers, 2]: (number of the base, offset in bytes), those of one step after those of another.
        params: int64[params], likewise.
        labels: of the steps.
    """

    steps: Words
    pointers: Words
    params: Words
    labels: tuple[str, ...]

    @staticmethod
    def of(steps: Sequence[Step]) -> ProgramTables:
        """The tables of steps.

        Raises:
            ProgramError: a step is impossible; the message names it.
        """
        if len(steps) > STEP_LIMIT:
            raise ProgramError(f"a program of {len(steps)} steps: expected at most {STEP_LIMIT}; divide it")
        for number, step in enumerate(steps):
            _check_step(number, step)
        return ProgramTables(
            _step_table(steps),
            _words([word for step in steps for pointer in step.pointers for word in pointer]).reshape(-1, 2),
            _words([param for step in steps for param in step.params]),
            tuple([step.label for step in steps]),
        )

    def check(self, kernels: int, extents: Words) -> None:
        """Make sure that tables from a file are tables of steps, before native code walks through them.

        Args:
            kernels: how many there are; ``KERNEL`` is the number of one.
            extents: the bytes behind each base, which no pointer may leave.

        Raises:
            ProgramError: they are not; the message says why.
        """
        kernel, start, count, params, tasks, grain, chunks, run_length = self.steps.T
        bases, offsets = self.pointers.T
        expected_chunks = np.maximum(1, -(-tasks // np.maximum(1, grain)))
        facts = {
            "labels": len(self.labels) == len(self.steps) <= STEP_LIMIT,
            "kernels": _all_within(kernel, kernels),
            "counts of pointers": _all_within(count, POINTER_LIMIT + 1) and count.sum() == len(self.pointers),
            "places of pointers": bool((start == _POINTER_BYTES * (np.cumsum(count) - count)).all()),
            "places of parameters": _all_within(params, _PARAM_BYTES * len(self.params) + 1)
            and not (params % _PARAM_BYTES).any(),
            "work items": bool((tasks >= 0).all() and (grain >= 1).all()),
            "chunks": bool((chunks == expected_chunks).all()) and _all_within(chunks, CHUNK_LIMIT),
            "runs of steps": run_length.tolist() == _run_lengths(chunks.tolist()),
            "bases": _all_within(bases, len(extents)),
        }
        facts["offsets"] = facts["bases"] and bool(((offsets >= 0) & (offsets <= extents[bases])).all())
        wrong = [name for name, holds in facts.items() if not holds]
        if wrong:
            raise ProgramError(f"the tables of a program contradict themselves: {', '.join(wrong)}")


def _all_within(numbers: Words, end: int) -> bool:
    return bool(((numbers >= 0) & (numbers < end)).all())


def _check_step(number: int, step: Step) -> None:
    subject = f"step {number} ({step.label})" if step.label else f"step {number}"
    if not step.kernel:
        raise ProgramError(f"{subject} has no kernel: expected the address of its code, found {step.kernel}")
    if len(step.pointers) > POINTER_LIMIT:
        raise ProgramError(f"{subject} has {len(step.pointers)} pointers: expected at most {POINTER_LIMIT}; divide it")
    if step.tasks < 0 or step.grain < 1:
        raise ProgramError(
            f"{subject} has {step.tasks} tasks in grains of {step.grain}: expected at least 0 tasks in grains of 1"
        )
    if any(base < 0 for base, _ in step.pointers):
        raise ProgramError(f"{subject} points into base {min(base for base, _ in step.pointers)}: expected 0 or more")


def _step_table(steps: Sequence[Step]) -> Words:
    rows = []
    pointers = params = 0
    for step in steps:
        grain, chunks = _divide(step.tasks, step.grain)
        rows.append([step.kernel, pointers, len(step.pointers), params, step.tasks, grain, chunks, 0])
        pointers += _POINTER_BYTES * len(step.pointers)
        params += _PARAM_BYTES * len(step.params)
    table = _words(rows).reshape(-1, STEP_WORDS)
    table[:, StepField.RUN_LENGTH] = _run_lengths([row[StepField.CHUNKS] for row in rows])
    return table


def _run_lengths(chunks: Sequence[int]) -> list[int]:
    """For each step how many from it on are not divided among threads."""
    lengths, length = [0] * len(chunks), 0
    for number in reversed(range(len(chunks))):
        length = length + 1 if chunks[number] == 1 else 0
        lengths[number] = length
    return lengths


def _divide(tasks: int, grain: int) -> tuple[int, int]:
    """The grain to use and the number of chunks that it gives: as few chunks as ``grain`` allows, of equal sizes."""
    chunks = min(max(1, -(-tasks // grain)), CHUNK_LIMIT - 1)
    even_grain = max(1, -(-tasks // chunks))
    return even_grain, max(1, -(-tasks // even_grain))


def _words(numbers: Sequence[object]) -> Words:
    return np.array(numbers, np.int64)
