"""Kernel that reaches the arithmetic peak of a core, the reference of profiles and kernel benchmarks."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.base import Kernel

__all__ = ["Peak"]

#: Number of independent multiply-adds, enough to hide their latency on all known processors (2 units x 5 cycles).
_CHAINS = 12


@dataclass(frozen=True)
class Peak(Kernel):
    """Multiply-adds on registers only. Pointer 0 has one vector; a work item is one multiply-add of each chain."""

    @staticmethod
    def flops(lanes: int) -> int:
        """Return the operations of one work item; a multiply-add counts as two."""
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
