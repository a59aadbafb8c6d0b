"""What the processor can do at most: the yardstick of profiles and kernel benchmarks."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.base import Kernel

__all__ = ["Peak"]

#: Enough independent multiply-adds to hide the latency of each on every processor we know (2 units x 5 cycles).
_CHAINS = 12


@dataclass(frozen=True)
class Peak(Kernel):
    """Multiply-adds on registers only. Pointer 0 takes one vector; a work item is one round of all chains."""

    @staticmethod
    def flops(lanes: int) -> int:
        """Operations of one work item, a multiply-add counted as two."""
        return 2 * _CHAINS * lanes

    def emit(self, k: Emitter) -> None:
        lanes = k.machine.lanes()
        with k.kernel(self.symbol) as (pointers, _, begin, end, _scratch):
            out = pointers.tensor(0, DType.FLOAT32)
            factor = out.load(lanes)
            sums = [k.variable(k.constant(float(i), DType.FLOAT32, lanes)) for i in range(_CHAINS)]
            with k.loop(begin, end):
                for total in sums:
                    total.set(k.fma(total.get(), factor, factor))
            result = sums[0].get()
            for total in sums[1:]:
                result = result + total.get()
            out.store(result)
