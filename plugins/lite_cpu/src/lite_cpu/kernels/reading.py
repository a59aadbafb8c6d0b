"""Kernels without a result that is of use, which measure what a processor takes for reading and for a step."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.base import Kernel

__all__ = ["Empty", "Read"]

F32 = DType.FLOAT32

#: Number of independent additions, enough to hide their latency on all known processors (2 units x 4 cycles).
_CHAINS = 8


@dataclass(frozen=True)
class Empty(Kernel):
    """A step that does nothing, for the time that a step itself takes."""

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol):
            pass


@dataclass(frozen=True)
class Read(Kernel):
    """Adds up memory. Pointers: the memory, a vector for the sum.

    Parameters: bytes of a work item, a multiple of 512; bytes from one work item to the next, 0 to read the same again.

    Attributes:
        ahead: bytes ahead of the loads at which lines are prefetched into the second-level cache; 0 for none.
    """

    ahead: int = 0

    def emit(self, k: Emitter) -> None:
        lanes = k.machine.lanes()
        with k.kernel(self.symbol) as (pointers, params, begin, end, _scratch):
            memory, result = pointers.tensor(0, F32), pointers.tensor(1, F32)
            count, stride = params[0] / F32.itemsize, params[1] / F32.itemsize
            sums = [k.variable(k.constant(0.0, F32, lanes)) for _ in range(_CHAINS)]
            with k.loop(begin, end) as item, k.loop(0, count, _CHAINS * lanes) as at:
                here = memory[item * stride + at]
                for i, total in enumerate(sums):
                    total.set(total.get() + here[i * lanes].load(lanes))
                if self.ahead:
                    for line in range(0, _CHAINS * lanes * F32.itemsize, 64):
                        here[(line + self.ahead) // F32.itemsize].prefetch(level=2)
            total_sum = sums[0].get()
            for total in sums[1:]:
                total_sum = total_sum + total.get()
            result.store(total_sum)
