"""Index of the largest or smallest element of each row: ArgMax, ArgMin and Hardmax."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.rows import Elements, Row, RowLayout, each_row

__all__ = ["ArgExtreme", "Hardmax", "beats"]


def beats(a: Val, b: Val, *, largest: bool, nan_wins: bool = True) -> Val:
    """Emit the comparison ``a`` is more extreme than ``b``: NaN is the most extreme number, or the least."""
    better = a > b if largest else a < b
    if not a.dtype.is_floating:
        return better
    first, second = (a, b) if nan_wins else (b, a)
    return better | (first.is_nan() & ~second.is_nan())


@dataclass(frozen=True, slots=True)
class _Candidate:
    """The most extreme element of each lane so far, and its index."""

    value: Val
    index: Val


def _find(row: Row, largest: bool, last: bool) -> list[Val]:
    """Return the index of each row's extreme in the form of :meth:`Row.reduce`: the first or last of equal elements."""
    k = row.k
    index_type = DType.INT64 if row.lanes == 1 or row.layout.dtypes[0].itemsize == 8 else DType.INT32
    values = [k.variable(row.first(0, slot % row.columns)) for slot in range(row.slots)]
    indices = [k.variable(k.constant(0, index_type, row.lanes)) for _ in range(row.slots)]

    def winner(a: _Candidate, b: _Candidate) -> _Candidate:
        """Return the more extreme candidate; if both are equal, the one with the lower (``last``: higher) index."""
        better = beats(b.value, a.value, largest=largest)
        worse = beats(a.value, b.value, largest=largest)
        earlier = b.index > a.index if last else b.index < a.index
        chosen = better | (~worse & earlier)
        return _Candidate(chosen.select(b.value, a.value), chosen.select(b.index, a.index))

    def element(elements: Elements) -> None:
        value, index = values[elements.slot], indices[elements.slot]
        found, best = elements.load(0), value.get()
        # Indices increase along a row, so an equal element is a later one.
        taken = ~beats(best, found, largest=largest) if last else beats(found, best, largest=largest)
        if row.is_along and elements.valid is not None:
            taken = taken & k.first_lanes(elements.valid, row.lanes)
        value.set(taken.select(found, best))
        index.set(taken.select(_index_of(elements, index_type), index.get()))

    row.walk(element)
    results = []
    for column in range(row.columns):
        found = [_Candidate(values[s].get(), indices[s].get()) for s in range(column, row.slots, row.columns)]
        best = found[0]
        for other in found[1:]:
            best = winner(best, other)
        while row.is_along and best.value.lanes > 1:
            half = best.value.lanes // 2
            best = winner(_take_lanes(best, 0, half), _take_lanes(best, half, half))
        results.append(best.index)
    return results


def _take_lanes(found: _Candidate, first: int, count: int) -> _Candidate:
    if count == 1:
        return _Candidate(found.value.lane(first), found.index.lane(first))
    lanes = range(first, first + count)
    return _Candidate(found.value.shuffle(found.value, lanes), found.index.shuffle(found.index, lanes))


def _index_of(elements: Elements, dtype: DType) -> Val:
    """Return the index of the element in each lane."""
    row = elements.row
    index = elements.index.to(dtype).splat(row.lanes)
    return index + row.k.vector(range(row.lanes), dtype) if row.is_along and row.lanes > 1 else index


@dataclass(frozen=True)
class ArgExtreme(Kernel):
    """Index of the largest or smallest element of each row. Pointers: elements, indices (int64)."""

    layout: RowLayout
    largest: bool
    last: bool

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            each_row(
                k, self.layout, pointers, params, begin, end,
                lambda row: row.store(1, _find(row, self.largest, self.last)),
            )  # fmt: skip


@dataclass(frozen=True)
class Hardmax(Kernel):
    """Hardmax of each row: 1 for the first of its largest elements, else 0. Pointers: elements, result."""

    layout: RowLayout

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            each_row(k, self.layout, pointers, params, begin, end, self._emit_row)

    def _emit_row(self, row: Row) -> None:
        positions = _find(row, largest=True, last=False)

        def element(elements: Elements) -> None:
            chosen = positions[elements.column].eq(_index_of(elements, positions[0].dtype))
            one = row.k.constant(1, DType.FLOAT32, row.lanes)
            elements.store(1, chosen.select(one, 0.0).to(row.layout.dtypes[1]))

        row.walk(element)
