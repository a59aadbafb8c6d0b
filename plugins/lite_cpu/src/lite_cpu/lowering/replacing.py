"""Computing a new carried value of a loop over the old one."""

from __future__ import annotations

from collections.abc import Sequence

from lite_cpu.lowering.memory import loops_of
from lite_cpu.lowering.steps import PlannedStep
from lite_cpu.tensors import Tensor

__all__ = ["place_over"]


def place_over(steps: Sequence[PlannedStep], first: int, new: Tensor, old: Tensor) -> bool:
    """Let the steps of an iteration compute a new value in the memory of the old one, if nothing prevents it.

    The first step that writes the new value must be the last one that reads the old value. If it is the same step, it
    must be allowed to overwrite the old value (:attr:`PlannedStep.overwrites`).

    Args:
        steps: the steps, which end with the iteration.
        first: the number of the first step of the iteration.
        new: the new value, alone in its memory.
        old: the old value, alone in its memory, of the same type and shape.

    Returns:
        False if nothing was changed.
    """
    if new.storage is old.storage or not (new.is_dense and old.is_dense and new.bytes == new.storage.bytes):
        return False
    own = range(first, len(steps))
    reads = [n for n in own if any(t.storage is old.storage for t in steps[n].tensors)]
    writes = [n for n in own if any(t.storage is new.storage for t in steps[n].tensors)]
    if not writes or new.bytes != old.storage.bytes:
        return False
    loops = [(begin, end) for begin, end in loops_of(steps) if begin >= first]
    # What an inner loop reads, it reads in each of its iterations.
    last = max([max([n, *(end for begin, end in loops if begin <= n <= end)]) for n in reads], default=-1)
    write = writes[0]
    if last > write or (last == write and not _may_overwrite(steps[write], new, old)):
        return False
    for number in writes:
        step = steps[number]
        step.tensors = [
            Tensor(old.storage, t.dtype, t.shape, t.strides, t.offset) if t.storage is new.storage else t
            for t in step.tensors
        ]
        if step.label == "copy" and step.tensors[0].occupies_same_memory(step.tensors[1]):
            step.tasks, step.grain, step.streams = 0, 1, False  # it stays: other steps jump over it
    return True


def _may_overwrite(step: PlannedStep, new: Tensor, old: Tensor) -> bool:
    positions = [n for n, tensor in enumerate(step.tensors) if tensor.storage is old.storage]
    return step.tensors[0].storage is new.storage and any(n in step.overwrites for n in positions)
