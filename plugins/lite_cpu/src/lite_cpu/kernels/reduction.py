"""Reductions of rows: sums, means, norms, products and extremes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.rows import Elements, Row, RowLayout, computed, each_row
from lite_cpu.vector_math import absolute, exp, log, sqrt

__all__ = ["REDUCTIONS", "Reduction", "highest", "larger", "lowest", "smaller"]

F32, F64 = DType.FLOAT32, DType.FLOAT64
#: Function that combines two numbers, or a partial result and an element.
Combine = Callable[[Val, Val], Val]


def lowest(dtype: DType) -> float:
    """Return the lowest number of a type; False is the lowest bool."""
    if dtype is DType.BOOL:
        return False
    return -inf if dtype.is_floating else int(np.iinfo(dtype.numpy).min)


def highest(dtype: DType) -> float:
    """Return the highest number of a type; True is the highest bool."""
    if dtype is DType.BOOL:
        return True
    return inf if dtype.is_floating else int(np.iinfo(dtype.numpy).max)


def larger(a: Val, b: Val) -> Val:
    """The larger of two numbers; NaN if either is NaN."""
    return _merge_extremes((b > a).select(b, a), (a > b).select(a, b)) if a.dtype.is_floating else (b > a).select(b, a)


def smaller(a: Val, b: Val) -> Val:
    """The smaller of two numbers; NaN if either is NaN."""
    return _merge_extremes((b < a).select(b, a), (a < b).select(a, b)) if a.dtype.is_floating else (b < a).select(b, a)


def _merge_extremes(first: Val, second: Val) -> Val:
    """Merge two extremes that are the same number, or one of which is NaN.

    A single machine instruction computes each extreme; if an operand is NaN, it returns the second operand. A NaN with
    further bits set is still a NaN, so an OR of the bits is enough, which is cheaper than a comparison with NaN.
    """
    dtype = DType(f"uint{8 * first.dtype.itemsize}")
    return (first.bits(dtype) | second.bits(dtype)).bits(first.dtype)


def _add(a: Val, b: Val) -> Val:
    return a + b


def _absolute(x: Val) -> Val:
    if x.dtype.is_floating:
        return absolute(x)
    return (x < 0).select(-x, x) if x.dtype.is_signed else x


def _same_type(dtype: DType) -> DType:
    return dtype


def _wide_float(dtype: DType) -> DType:
    return F64


def _wide_integer(dtype: DType) -> DType:
    return dtype if dtype.is_floating else DType.INT64 if dtype.is_signed else DType.UINT64


@dataclass(frozen=True, slots=True)
class _Reducer:
    """A kind of reduction.

    Attributes:
        update: returns the partial result updated by an element.
        combine: combines two partial results.
        start: returns the neutral element of an element type.
        accumulator: returns the type of partial results for an element type, wide enough to avoid overflow.
        finish: returns the result, given the reduced number and the number of elements in the accumulator's type.
    """

    update: Combine
    combine: Combine = _add
    start: Callable[[DType], float] = lambda dtype: 0
    accumulator: Callable[[DType], DType] = _same_type
    finish: Callable[[Val, Val], Val] = lambda total, count: total


def _mean(total: Val, count: Val) -> Val:
    # NOTE: an integer division by zero would kill the process; the mean of no integers is 0 here.
    return total / (count if total.dtype.is_floating else total.k.maximum(count, 1))


_REDUCERS: Mapping[str, _Reducer] = {
    "ReduceSum": _Reducer(_add),
    "ReduceMean": _Reducer(_add, accumulator=_wide_integer, finish=_mean),
    "ReduceSumSquare": _Reducer(lambda total, x: total + x * x),
    "ReduceL1": _Reducer(lambda total, x: total + _absolute(x)),
    "ReduceL2": _Reducer(
        lambda total, x: total + x * x, accumulator=_wide_float, finish=lambda total, count: sqrt(total)
    ),
    "ReduceLogSum": _Reducer(_add, finish=lambda total, count: log(total)),
    "ReduceProd": _Reducer(
        lambda total, x: total * x,
        lambda a, b: a * b,
        lambda dtype: 1,
        lambda dtype: F64 if dtype.is_floating else dtype,
    ),
    "ReduceMax": _Reducer(larger, larger, lowest),
    "ReduceMin": _Reducer(smaller, smaller, highest),
}

REDUCTIONS = (*_REDUCERS, "ReduceLogSumExp")


@dataclass(frozen=True)
class Reduction(Kernel):
    """Reduction of each row. Pointers: elements, results. Work items: see :mod:`lite_cpu.lowering.rows`."""

    op: str
    layout: RowLayout

    def emit(self, k: Emitter) -> None:
        row = _emit_log_sum_exp if self.op == "ReduceLogSumExp" else self._emit_row
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            each_row(k, self.layout, pointers, params, begin, end, row)

    def _emit_row(self, row: Row) -> None:
        reducer = _REDUCERS[self.op]
        dtype = computed(self.layout.dtypes[0])
        accumulator = reducer.accumulator(dtype)
        start = reducer.start(dtype)

        def update(total: Val, elements: Elements) -> Val:
            return reducer.update(total, elements.load(0, start).to(accumulator))

        totals = row.reduce(start, accumulator, update, reducer.combine)
        count = row.count.to(accumulator)
        # NOTE: float64 is converted to 16-bit floats through float32; a direct conversion would be a library call.
        row.store(1, [reducer.finish(total, count).to(dtype) for total in totals])


def _emit_log_sum_exp(row: Row) -> None:
    """Emit ``log(sum(exp(x)))``; the largest element is subtracted from the exponents, so that they cannot overflow."""
    k = row.k
    peaks = row.reduce(-inf, F32, lambda most, elements: k.maximum(most, elements.load(0, -inf)), k.maximum)
    # NOTE: Inf - Inf would be NaN where the result is infinite.
    offsets = [(absolute(peak) < inf).select(peak, 0.0) for peak in peaks]
    totals = row.sum(lambda elements: exp(elements.load(0, -inf) - offsets[elements.column]))
    row.store(1, [log(total) + offset for total, offset in zip(totals, offsets)])
