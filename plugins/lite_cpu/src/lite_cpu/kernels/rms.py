"""Division of rows by their root mean square."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.rows import Elements, Row, RowLayout, each_row
from lite_cpu.vector_math import sqrt

__all__ = ["RmsNormalization"]

F32 = DType.FLOAT32


@dataclass(frozen=True)
class RmsNormalization(Kernel):
    """``x / sqrt(mean(x * x) + epsilon) * scale`` for each row.

    Pointers: elements, result, scale. Parameters: those of the layout, epsilon (float32 bits).
    """

    layout: RowLayout

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            epsilon = params.number(self.layout.parameters, F32)
            each_row(k, self.layout, pointers, params, begin, end, lambda row: _emit_row(row, epsilon))


def _emit_row(row: Row, epsilon: Val) -> None:
    part = 1.0 / row.count.to(F32)

    def square(elements: Elements) -> Val:
        x = elements.load(0, 0.0)
        return x * x

    factors = [1.0 / sqrt(total * part + epsilon) for total in row.sum(square)]

    def element(elements: Elements) -> None:
        elements.store(1, elements.load(0) * factors[elements.column] * elements.load(2))

    row.walk(element)
