"""Softmax and LogSoftmax of rows."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from lite_cpu.emitter import Emitter, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.rows import Elements, Row, RowLayout, each_row
from lite_cpu.vector_math import exp_of_nonpositive, log

__all__ = ["Softmax"]


@dataclass(frozen=True)
class Softmax(Kernel):
    """Softmax or LogSoftmax of each row.

    Pointers: elements, result. The largest element is subtracted from the exponents, so they cannot overflow.

    A row that contains NaN or +Inf, or only -Inf, becomes NaN, because the difference to its largest element is NaN.
    All is computed in float32.
    """

    layout: RowLayout
    logarithm: bool = False

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            each_row(k, self.layout, pointers, params, begin, end, self._emit_row)

    def _emit_row(self, row: Row) -> None:
        k = row.k
        peaks = row.reduce(
            -inf, self.layout.dtypes[0], lambda most, elements: k.maximum(most, elements.load(0, -inf)), k.maximum
        )

        def share(elements: Elements) -> Val:
            return exp_of_nonpositive(elements.load(0, -inf) - peaks[elements.column])

        def stored_share(elements: Elements) -> Val:
            value = share(elements)
            elements.store(1, value)
            return value

        if self.logarithm:
            logs = [log(total) for total in row.sum(share)]
            row.walk(
                lambda elements: elements.store(1, elements.load(0) - peaks[elements.column] - logs[elements.column])
            )
        else:
            factors = [1.0 / total for total in row.sum(stored_share)]
            row.walk(lambda elements: elements.store(1, elements.load(1) * factors[elements.column]))
