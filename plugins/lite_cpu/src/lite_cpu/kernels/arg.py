"""Where the largest or the smallest element of a row is."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.rows import Place, Row, RowLayout, each_row

__all__ = ["ArgExtreme", "Hardmax", "beats"]


def beats(a: Val, b: Val, *, largest: bool, nan_wins: bool = True) -> Val:
    """Whether ``a`` is more extreme than ``b``; NaN is more extreme than any number, or with False less."""
    better = a > b if largest else a < b
    if not a.dtype.is_floating:
        return better
    first, second = (a, b) if nan_wins else (b, a)
    return better | (first.is_nan() & ~second.is_nan())


@dataclass(frozen=True, slots=True)
class _Found:
    """The most extreme element so far, in each lane, and its index."""

    value: Val
    index: Val


def _find(row: Row, largest: bool, last: bool) -> list[Val]:
    """The index of each row's extreme, as :meth:`Row.reduce` gives it; of equal ones the first or the last."""
    k = row.k
    index_type = DType.INT64 if row.lanes == 1 or row.layout.dtypes[0].itemsize == 8 else DType.INT32
    values = [k.variable(row.first(0, slot % row.columns)) for slot in range(row.slots)]
    indices = [k.variable(k.constant(0, index_type, row.lanes)) for _ in range(row.slots)]

    def winner(a: _Found, b: _Found) -> _Found:
        """One of two, whichever was found first."""
        better = beats(b.value, a.value, largest=largest)
        worse = beats(a.value, b.value, largest=largest)
        earlier = b.index > a.index if last else b.index < a.index
        chosen = better | (~worse & earlier)
        return _Found(chosen.select(b.value, a.value), chosen.select(b.index, a.index))

    def element(place: Place) -> None:
        value, index = values[place.slot], indices[place.slot]
        found, best = place.load(0), value.get()
        # Indices rise along a row, so an equal element is a later one.
        taken = ~beats(best, found, largest=largest) if last else beats(found, best, largest=largest)
        if row.is_along and place.valid is not None:
            taken = taken & k.first_lanes(place.valid, row.lanes)
        value.set(taken.select(found, best))
        index.set(taken.select(_index_of(place, index_type), index.get()))

    row.walk(element)
    results = []
    for column in range(row.columns):
        found = [_Found(values[s].get(), indices[s].get()) for s in range(column, row.slots, row.columns)]
        best = found[0]
        for other in found[1:]:
            best = winner(best, other)
        while row.is_along and best.value.lanes > 1:
            half = best.value.lanes // 2
            best = winner(_part(best, 0, half), _part(best, half, half))
        results.append(best.index)
    return results


def _part(found: _Found, first: int, count: int) -> _Found:
    if count == 1:
        return _Found(found.value.lane(first), found.index.lane(first))
    lanes = range(first, first + count)
    return _Found(found.value.shuffle(found.value, lanes), found.index.shuffle(found.index, lanes))


def _index_of(place: Place, dtype: DType) -> Val:
    """The index of the element in each lane."""
    row = place.row
    index = place.index.to(dtype).splat(row.lanes)
    return index + row.k.vector(range(row.lanes), dtype) if row.is_along and row.lanes > 1 else index


@dataclass(frozen=True)
class ArgExtreme(Kernel):
    """Pointers: elements, index of each row's largest or smallest one (int64)."""

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
    """Pointers: elements, result: 1 for the first of a row's largest elements, else 0."""

    layout: RowLayout

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            each_row(k, self.layout, pointers, params, begin, end, self._emit_row)

    def _emit_row(self, row: Row) -> None:
        places = _find(row, largest=True, last=False)

        def element(place: Place) -> None:
            chosen = places[place.column].eq(_index_of(place, places[0].dtype))
            one = row.k.constant(1, DType.FLOAT32, row.lanes)
            place.store(1, chosen.select(one, 0.0).to(row.layout.dtypes[1]))

        row.walk(element)
