"""Running sums of rows."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.rows import Elements, Row, RowLayout, computed, each_row

__all__ = ["RunningSum"]


@dataclass(frozen=True)
class RunningSum(Kernel):
    """Running sum. Pointers: elements, the sums up to each element, with ``exclusive`` without the element itself.

    Vectors are across rows, or there are none, because along a row each sum needs the one before. Floats are summed in
    float64.

    With ``axis`` a third pointer is the axis computed by the model, one integer of that type, and the parameters after
    the layout's are the axis that this call sums along and the rank: the call does nothing unless the axes are equal.
    """

    layout: RowLayout
    exclusive: bool = False
    axis: DType | None = None

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            if self.axis is None:
                each_row(k, self.layout, pointers, params, begin, end, self._emit_row)
                return
            wanted = pointers.tensor(2, self.axis).load().to(DType.INT64)
            mine, rank = (params[self.layout.parameters + i] for i in (0, 1))
            with k.if_(wanted.eq(mine) | wanted.eq(mine - rank)):
                each_row(k, self.layout, pointers, params, begin, end, self._emit_row)

    def _emit_row(self, row: Row) -> None:
        dtype = computed(self.layout.dtypes[0])
        accumulator = DType.FLOAT64 if dtype.is_floating else dtype
        sums = [row.k.variable(row.k.constant(0, accumulator, row.lanes)) for _ in range(row.columns)]

        def element(elements: Elements) -> None:
            before = sums[elements.column].get()
            after = before + elements.load(0).to(accumulator)
            sums[elements.column].set(after)
            elements.store(1, (before if self.exclusive else after).to(dtype))

        row.walk(element)
