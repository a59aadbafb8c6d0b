"""Bounds check of indices, as a separate kernel, because kernels that use indices cannot raise errors."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.base import Kernel

__all__ = ["CheckIndices"]


@dataclass(frozen=True)
class CheckIndices(Kernel):
    """Record an index that is out of range; negative indices count from the end.

    Pointers: indices, the fault (two int64: number of the check, the index). Parameters: number of index tuples,
    number of the check, and the sizes of the ``depth`` dimensions that a tuple addresses. There is one work item.
    """

    index: DType
    depth: int

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            indices, fault = pointers.tensor(0, self.index), pointers.tensor(1, DType.INT64)
            with k.loop(begin, end), k.loop(0, params[0]) as number:
                for d in range(self.depth):
                    index, size = indices[number * self.depth + d].load().to(DType.INT64), params[2 + d]
                    with k.if_((index >= size) | (index < -size)):
                        fault.store(params[1])
                        fault[1].store(index)
