"""Bounds check of indices and lengths, as a separate kernel, because kernels that use them cannot raise errors."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.base import Kernel

__all__ = ["CheckRanges"]


@dataclass(frozen=True)
class CheckRanges(Kernel):
    """Record a number that is out of range.

    Pointers: tuples of numbers, the fault (two int64: number of the check, the number out of range). Parameters: number
    of tuples, number of the check, and for each of the ``depth`` numbers of a tuple the lowest allowed one and the one
    after the highest. There is one work item.
    """

    dtype: DType
    depth: int

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            numbers, fault = pointers.tensor(0, self.dtype), pointers.tensor(1, DType.INT64)
            with k.loop(begin, end), k.loop(0, params[0]) as at:
                for d in range(self.depth):
                    number = numbers[at * self.depth + d].load().to(DType.INT64)
                    with k.if_((number < params[2 + 2 * d]) | (number >= params[3 + 2 * d])):
                        fault.store(params[1])
                        fault[1].store(number)
