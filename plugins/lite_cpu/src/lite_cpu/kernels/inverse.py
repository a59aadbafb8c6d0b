"""Inverses of matrices."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Number, Pointer, Val
from lite_cpu.kernels.base import Kernel

__all__ = ["Inverse"]

I64 = DType.INT64

#: Registers that hold a part of a row while multiples of other rows are subtracted from it.
_REGISTERS = 4
#: Columns that are decomposed before the columns behind them are touched, all at a time.
_PANEL = 16


@dataclass(frozen=True)
class Inverse(Kernel):
    """The inverse of each square matrix; a work item is a matrix.

    Pointers: matrices, inverses, the fault. Parameters: the number of rows of a matrix, and that of the fault that a
    matrix has no inverse. Scratch: :meth:`scratch_bytes`.

    The matrix is decomposed into a lower and an upper triangular one, with the element of the largest magnitude in each
    column as its pivot. The rows of the inverse are then those of the unit matrix, in the order of the pivots, minus
    multiples of others: from the first row to the last, and back.
    """

    dtype: DType

    @staticmethod
    def scratch_bytes(size: int, itemsize: int) -> int:
        """Return the size of a matrix, and of the order of its rows."""
        return size * size * itemsize + 8 * size

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            size = params[0]
            order = scratch.cast(I64)
            matrix = order[size].cast(self.dtype)
            with k.loop(begin, end) as item:
                source = pointers.tensor(0, self.dtype)[item * size * size]
                result = pointers.tensor(1, self.dtype)[item * size * size]
                self._decompose(k, source, matrix, order, size, pointers.tensor(2, I64), params[1], item)
                with k.loop(0, size) as row:
                    self._forward(k, matrix, result, order, row, size)
                with k.loop(0, size) as turn:
                    self._backward(k, matrix, result, size - 1 - turn, size)

    def _forward(self, k: Emitter, matrix: Pointer, result: Pointer, order: Pointer, row: Val, size: Val) -> None:
        """Store a row of the unit matrix, minus multiples of the rows before it."""
        target = result[row * size]
        k.span(size, self._lanes(k), lambda at, n: target[at].store(k.constant(0, self.dtype, n)))
        target[order[row].load()].store(1.0)
        self._subtract(k, target, matrix[row * size], result, row, size, size)

    def _backward(self, k: Emitter, matrix: Pointer, result: Pointer, row: Val, size: Val) -> None:
        """Subtract multiples of the rows behind a row, and divide it by the pivot."""
        target, pivot = result[row * size], matrix[row * size + row]
        self._subtract(k, target, pivot[1], result[(row + 1) * size], size - 1 - row, size, size)
        factor = 1.0 / pivot.load()
        k.span(size, self._lanes(k), lambda at, n: target[at].store(target[at].load(n) * factor.splat(n)))

    def _lanes(self, k: Emitter) -> int:
        return k.machine.lanes(self.dtype.itemsize)

    def _decompose(
        self,
        k: Emitter,
        source: Pointer,
        matrix: Pointer,
        order: Pointer,
        size: Val,
        fault: Pointer,
        number: Val,
        item: Val,
    ) -> None:
        """Store both triangular matrices in one, and the order of rows."""
        k.span(size * size, self._lanes(k), lambda at, n: matrix[at].store(source[at].load(n)))
        with k.loop(0, size) as row:
            order[row].store(row)
        with k.loop(0, size, _PANEL) as first:
            behind = k.minimum(first + _PANEL, size)
            with k.loop(first, behind) as column:
                own, pivot = matrix[column * size], self._pivot(k, matrix, size, column)
                with k.if_(matrix[pivot * size + column].load().eq(0.0)):
                    fault.store(number)
                    fault[1].store(item)
                with k.if_(pivot.ne(column)):
                    _exchange(k, own, matrix[pivot * size], size, self._lanes(k))
                    _exchange(k, order[column], order[pivot], 1, 1)
                with k.loop(column + 1, size) as row:
                    other = matrix[row * size]
                    factor = other[column].load() / own[column].load()
                    other[column].store(factor)
                    with k.loop(column + 1, behind) as at:
                        other[at].store(k.fma(-factor, own[at].load(), other[at].load()))
            with k.loop(first + 1, size) as row:
                other, count = matrix[row * size], k.minimum(row, behind) - first
                upper = matrix[first * size + behind]
                self._subtract(k, other[behind], other[first], upper, count, size, size - behind)

    def _pivot(self, k: Emitter, matrix: Pointer, size: Val, column: Val) -> Val:
        """Return the row from ``column`` on with the element of the largest magnitude, the first if several are."""
        best = k.variable(column)
        most = k.variable(k.call("llvm.fabs", matrix[column * size + column].load()))
        with k.loop(column + 1, size) as i:
            found = k.call("llvm.fabs", matrix[i * size + column].load())
            with k.if_(found > most.get()):
                most.set(found)
                best.set(i)
        return best.get()

    def _subtract(
        self, k: Emitter, row: Pointer, factors: Pointer, others: Pointer, count: Val, stride: Val, length: Val
    ) -> None:
        """Subtract from ``length`` elements of a row those of ``count`` others, ``stride`` apart, times factors."""
        k.function("subtract_rows", self._subtract_rows, row, factors, others, count, stride, length)

    def _subtract_rows(
        self, row: Pointer, factors: Pointer, others: Pointer, count: Val, stride: Val, length: Val
    ) -> None:
        k = row.k

        def part(at: Val, lanes: int) -> None:
            sum_ = k.variable(row[at].load(lanes))
            with k.loop(0, count) as i:
                sum_.set(k.fma(-factors[i].load().splat(lanes), others[i * stride + at].load(lanes), sum_.get()))
            row[at].store(sum_.get())

        k.span(length, _REGISTERS * self._lanes(k), part, narrow=True)


def _exchange(k: Emitter, one: Pointer, other: Pointer, count: Number, lanes: int) -> None:
    def part(at: Val, lanes: int) -> None:
        a, b = one[at].load(lanes), other[at].load(lanes)
        one[at].store(b)
        other[at].store(a)

    k.span(count, lanes, part)
