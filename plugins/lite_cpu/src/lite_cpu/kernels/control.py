"""Control flow: kernels that decide which step follows, and that move the slices of an iteration.

A step that may jump has a flag as its first tensor, one int64, see :attr:`lite_cpu.runtime.Step.jump`. The counter of a
loop is the number of the present iteration, one int64. Every kernel here except :class:`MoveSlice` has one work item.
"""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.gather import copy_row

__all__ = ["BeginLoop", "Fail", "MoveSlice", "NextIteration", "SkipUnless"]


@dataclass(frozen=True)
class SkipUnless(Kernel):
    """Jump if a condition does not hold, or always without one. Pointers: flag, condition (one bool)."""

    has_condition: bool

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, _, begin, end, _), k.loop(begin, end):
            flag = pointers.tensor(0, DType.INT64)
            if self.has_condition:
                flag.store((~pointers.tensor(1, DType.BOOL).load()).to(DType.INT64))
            else:
                flag.store(1)


@dataclass(frozen=True)
class BeginLoop(Kernel):
    """Jump behind a loop that has no iteration; else set the counter and the condition for the first one.

    Pointers: flag, counter, condition for the body (bool), limit of the number of iterations (int64) if there is one,
    condition before the loop (bool) if there is one.
    """

    has_limit: bool
    has_condition: bool

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, _, begin, end, _), k.loop(begin, end):
            pointers.tensor(1, DType.INT64).store(0)
            ends = k.constant(0, DType.BOOL)
            if self.has_limit:
                ends = pointers.tensor(3, DType.INT64).load() <= 0
            before = k.constant(1, DType.BOOL)
            if self.has_condition:
                before = pointers.tensor(3 + self.has_limit, DType.BOOL).load()
                ends = ends | ~before
            pointers.tensor(2, DType.BOOL).store(before)
            pointers.tensor(0, DType.INT64).store(ends.to(DType.INT64))


@dataclass(frozen=True)
class NextIteration(Kernel):
    """Increment the counter of a loop, and jump if another iteration follows.

    Pointers: flag, counter, condition for the body (bool), limit of the number of iterations (int64) if there is one,
    the body's condition (bool) if it can end the loop.
    """

    has_limit: bool
    has_condition: bool

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, _, begin, end, _), k.loop(begin, end):
            counter = pointers.tensor(1, DType.INT64)
            following = counter.load() + 1
            counter.store(following)
            goes_on = k.constant(1, DType.BOOL)
            if self.has_limit:
                goes_on = following < pointers.tensor(3, DType.INT64).load()
            if self.has_condition:
                condition = pointers.tensor(3 + self.has_limit, DType.BOOL).load()
                pointers.tensor(2, DType.BOOL).store(condition)
                goes_on = goes_on & condition
            pointers.tensor(0, DType.INT64).store(goes_on.to(DType.INT64))


@dataclass(frozen=True)
class MoveSlice(Kernel):
    """Copy the slice of an iteration out of a longer tensor or, with ``into``, into it.

    Pointers: destination, source, counter. Parameters: elements of a row, distance of the rows of the longer tensor,
    the first iteration's first element there, and the distance to that of the next iteration. The rows of the slice are
    contiguous. A work item is a row.
    """

    itemsize: int
    into: bool

    def emit(self, k: Emitter) -> None:
        dtype = DType(f"uint{8 * self.itemsize}")
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            length, distance = params[0], params[1]
            first = params[2] + pointers.tensor(2, DType.INT64).load() * params[3]
            destination, source = pointers.tensor(0, dtype), pointers.tensor(1, dtype)
            with k.loop(begin, end) as row:
                outside, inside = first + row * distance, row * length
                if self.into:
                    copy_row(k, source[inside], destination[outside], length)
                else:
                    copy_row(k, source[outside], destination[inside], length)


@dataclass(frozen=True)
class Fail(Kernel):
    """Record an error. Pointers: the fault (two int64: number of the error, a number for its message).

    Parameters: number of the error.
    """

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _), k.loop(begin, end):
            pointers.tensor(0, DType.INT64).store(params[0])
