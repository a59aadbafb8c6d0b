"""Programs as tables of integers, independent of the addresses of code and data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_core.errors import LiteError
from lite_cpu.runtime.layout import CHUNK_LIMIT, POINTER_LIMIT, STEP_FIELDS, STEP_LIMIT, StepField

__all__ = ["Int64Array", "ProgramError", "ProgramTables", "Step"]

Int64Array = np.ndarray[Any, np.dtype[np.int64]]

#: Size of a pointer (base and offset) and of a parameter, in bytes.
_POINTER_BYTES, _PARAM_BYTES = 16, 8

#: The field as a plain number, which indexes arrays in a fifth of the time.
_KERNEL = int(StepField.KERNEL)


class ProgramError(LiteError):
    """Invalid steps, or memory that does not fit the program to be run."""


class Step(NamedTuple):
    """One call of a kernel: ``void kernel(pointers, params, begin, end, thread_scratch)``.

    Attributes:
        kernel: address of the kernel's code.
        pointers: its tensors, as (number of the base, offset in bytes). Base 0 is the arena.
        params: its parameters, int64.
        tasks: number of work items. Any thread may process any of them, in any order.
        grain: maximum number of work items that a thread takes at a time. If there are no more, one thread runs the
            whole step.
        label: readable name, for profiles and messages.
        jump: distance of the step that follows if the kernel sets the first integer of its first tensor to another
            number than 0; 0 for a step that never jumps. A step that jumps has one work item.
    """

    kernel: int
    pointers: Sequence[tuple[int, int]]
    params: Sequence[int]
    tasks: int = 1
    grain: int = 1
    label: str = ""
    jump: int = 0


class ProgramTables(NamedTuple):
    """The steps of a program as tables of integers.

    Attributes:
        steps: int64[steps, :data:`STEP_FIELDS`], see :class:`StepField`; here ``POINTERS`` and ``PARAMS`` are byte
            offsets into the two other tables.
        pointers: int64[pointers, 2]: (number of the base, offset in bytes), in the order of the steps.
        params: int64[params], in the order of the steps.
        labels: the labels of the steps.
    """

    steps: Int64Array
    pointers: Int64Array
    params: Int64Array
    labels: tuple[str, ...]

    @staticmethod
    def of(steps: Sequence[Step]) -> ProgramTables:
        """Return the tables of steps.

        Raises:
            ProgramError: a step is impossible; the message names it.
        """
        if len(steps) > STEP_LIMIT:
            raise ProgramError(f"a program of {len(steps)} steps: expected at most {STEP_LIMIT}; divide it")
        for number, step in enumerate(steps):
            _check_step(number, step, len(steps))
        return ProgramTables(
            _step_table(steps),
            _int64_array([number for step in steps for pointer in step.pointers for number in pointer]).reshape(-1, 2),
            _int64_array([param for step in steps for param in step.params]),
            tuple([step.label for step in steps]),
        )

    def part(self, begin: int, end: int) -> ProgramTables:
        """Return the steps from ``begin`` to before ``end`` as a program that shares the other tables."""
        steps = self.steps[begin:end].copy()
        steps[:, StepField.RUN_LENGTH] = np.minimum(steps[:, StepField.RUN_LENGTH], np.arange(end - begin, 0, -1))
        return self._replace(steps=steps, labels=self.labels[begin:end])

    def resized(self, tasks: Int64Array, grains: Int64Array, offsets: Int64Array, params: Int64Array) -> ProgramTables:
        """Return the same steps with other work items, maximum grains, offsets of tensors and parameters."""
        steps, pointers = self.steps.copy(), self.pointers.copy()
        pointers[:, 1] = offsets
        divisions = [_divide(*step) for step in zip(tasks.tolist(), grains.tolist())]
        steps[:, StepField.TASKS] = tasks
        steps[:, [StepField.GRAIN, StepField.CHUNKS]] = divisions or np.empty((0, 2))
        steps[:, StepField.RUN_LENGTH] = _run_lengths([chunks for _, chunks in divisions])
        return ProgramTables(steps, pointers, params, self.labels)

    def set_kernels(self, steps: Sequence[int], addresses: Sequence[int]) -> None:
        """Set the kernels of some steps."""
        self.steps[list(steps), _KERNEL] = addresses

    def check(self, kernels: int, extents: Int64Array) -> None:
        """Validate tables that come from a file, before native code reads them.

        Args:
            kernels: number of kernels; here ``KERNEL`` is the index of one.
            extents: size of the memory of each base in bytes; no pointer may be outside.

        Raises:
            ProgramError: the tables are invalid; the message says why.
        """
        kernel, start, count, params, tasks, grain, chunks, run_length, jump = self.steps.T
        targets = np.arange(len(self.steps)) + jump
        bases, offsets = self.pointers.T
        expected_chunks = np.maximum(1, -(-tasks // np.maximum(1, grain)))
        facts = {
            "labels": len(self.labels) == len(self.steps) <= STEP_LIMIT,
            "kernels": _all_within(kernel, kernels),
            "counts of pointers": _all_within(count, POINTER_LIMIT + 1) and count.sum() == len(self.pointers),
            "offsets of the pointers' table": bool((start == _POINTER_BYTES * (np.cumsum(count) - count)).all()),
            "offsets of parameters": _all_within(params, _PARAM_BYTES * len(self.params) + 1)
            and not (params % _PARAM_BYTES).any(),
            "work items": bool((tasks >= 0).all() and (grain >= 1).all()),
            "chunks": bool((chunks == expected_chunks).all()) and _all_within(chunks, CHUNK_LIMIT),
            "runs of steps": run_length.tolist() == _run_lengths(chunks.tolist()),
            "jumps": _all_within(targets, len(self.steps) + 1) and bool(((chunks == 1) & (count > 0))[jump != 0].all()),
            "bases": _all_within(bases, len(extents)),
        }
        facts["offsets"] = facts["bases"] and bool(((offsets >= 0) & (offsets <= extents[bases])).all())
        wrong = [name for name, holds in facts.items() if not holds]
        if wrong:
            raise ProgramError(f"the tables of a program are inconsistent: {', '.join(wrong)}")


def _all_within(numbers: Int64Array, end: int) -> bool:
    return bool(((numbers >= 0) & (numbers < end)).all())


def _check_step(number: int, step: Step, count: int) -> None:
    subject = f"step {number} ({step.label})" if step.label else f"step {number}"
    if not step.kernel:
        raise ProgramError(f"{subject} has no kernel: expected the address of its code, found {step.kernel}")
    if len(step.pointers) > POINTER_LIMIT:
        raise ProgramError(f"{subject} has {len(step.pointers)} pointers: expected at most {POINTER_LIMIT}; divide it")
    if step.tasks < 0 or step.grain < 1:
        raise ProgramError(
            f"{subject} has {step.tasks} tasks in grains of {step.grain}: expected at least 0 tasks in grains of 1"
        )
    if step.jump and not (0 <= number + step.jump <= count and step.pointers and step.tasks <= step.grain):
        raise ProgramError(
            f"{subject} jumps by {step.jump} after {step.tasks} tasks with {len(step.pointers)} pointers: expected a "
            f"step of the {count}, one chunk, and a pointer to what decides"
        )
    if any(base < 0 for base, _ in step.pointers):
        raise ProgramError(f"{subject} points into base {min(base for base, _ in step.pointers)}: expected 0 or more")


def _step_table(steps: Sequence[Step]) -> Int64Array:
    rows = []
    pointers = params = 0
    for step in steps:
        grain, chunks = _divide(step.tasks, step.grain)
        rows.append([step.kernel, pointers, len(step.pointers), params, step.tasks, grain, chunks, 0, step.jump])
        pointers += _POINTER_BYTES * len(step.pointers)
        params += _PARAM_BYTES * len(step.params)
    table = _int64_array(rows).reshape(-1, STEP_FIELDS)
    table[:, StepField.RUN_LENGTH] = _run_lengths([row[StepField.CHUNKS] for row in rows])
    return table


def _run_lengths(chunks: Sequence[int]) -> list[int]:
    """Return, for each step, the number of consecutive steps from it on that are not divided among threads."""
    lengths, length = [0] * len(chunks), 0
    for number in reversed(range(len(chunks))):
        length = length + 1 if chunks[number] == 1 else 0
        lengths[number] = length
    return lengths


def _divide(tasks: int, grain: int) -> tuple[int, int]:
    """Return (grain, chunks): as few chunks as the maximum ``grain`` allows, of equal sizes."""
    chunks = min(max(1, -(-tasks // grain)), CHUNK_LIMIT - 1)
    even_grain = max(1, -(-tasks // chunks))
    return even_grain, max(1, -(-tasks // even_grain))


def _int64_array(numbers: Sequence[object]) -> Int64Array:
    return np.array(numbers, np.int64)
