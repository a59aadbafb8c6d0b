"""Softmax of rows, and its logarithm."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from lite_cpu.emitter import Emitter, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.rows import Place, Row, RowLayout, each_row
from lite_cpu.vector_math import exp_of_nonpositive, log

__all__ = ["Softmax"]


@dataclass(frozen=True)
class Softmax(Kernel):
    """Pointers: elements, result; float32. Exponents are taken below the largest, which cannot overflow.

    A row with NaN or +Inf, or with nothing but -Inf, becomes NaN: the difference to the largest is.
    """

    layout: RowLayout
    logarithm: bool = False

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            each_row(k, self.layout, pointers, params, begin, end, self._emit_row)

    def _emit_row(self, row: Row) -> None:
        k = row.k
        peaks = row.reduce(
            -inf, self.layout.dtypes[0], lambda most, place: k.maximum(most, place.load(0, -inf)), k.maximum
        )

        def share(place: Place) -> Val:
            return exp_of_nonpositive(place.load(0, -inf) - peaks[place.column])

        def stored_share(place: Place) -> Val:
            value = share(place)
            place.store(1, value)
            return value

        if self.logarithm:
            logs = [log(total) for total in row.sum(share)]
            row.walk(lambda place: place.store(1, place.load(0) - peaks[place.column] - logs[place.column]))
        else:
            factors = [1.0 / total for total in row.sum(stored_share)]
            row.walk(lambda place: place.store(1, place.load(1) * factors[place.column]))
