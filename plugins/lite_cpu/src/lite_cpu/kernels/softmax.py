"""Softmax and LogSoftmax of rows."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.rows import Elements, Row, RowLayout, each_row
from lite_cpu.vector_math import exp_of_nonpositive, log

__all__ = ["Softmax"]

F32 = DType.FLOAT32


@dataclass(frozen=True)
class Softmax(Kernel):
    """Softmax or LogSoftmax of each row.

    Pointers: elements, result. The largest element is subtracted from the exponents, so they cannot overflow.

    A row that contains NaN or +Inf, or only -Inf, becomes NaN, because the difference to its largest element is NaN.
    All is computed in float32. A result of 16 bits cannot hold exponentials: they are held in scratch memory if the
    layout has it, else computed again.
    """

    layout: RowLayout
    logarithm: bool = False

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            each_row(k, self.layout, pointers, params, begin, end, self._emit_row, scratch)

    def _emit_row(self, row: Row) -> None:
        k = row.k
        peaks = row.reduce(-inf, F32, lambda most, elements: k.maximum(most, elements.load(0, -inf)), k.maximum)

        def share(elements: Elements) -> Val:
            return exp_of_nonpositive(elements.load(0, -inf) - peaks[elements.column])

        held = len(self.layout.dtypes) - 1  # the result, or scratch memory behind it

        def held_share(elements: Elements) -> Val:
            value = share(elements)
            elements.store(held, value)
            return value

        if self.logarithm:
            logs = [log(total) for total in row.sum(share)]
            row.walk(
                lambda elements: elements.store(1, elements.load(0) - peaks[elements.column] - logs[elements.column])
            )
        elif self.layout.dtypes[held].is_half:
            factors = [1.0 / total for total in row.sum(share)]
            row.walk(lambda elements: elements.store(1, share(elements) * factors[elements.column]))
        else:
            factors = [1.0 / total for total in row.sum(held_share)]
            row.walk(lambda elements: elements.store(1, elements.load(held) * factors[elements.column]))
