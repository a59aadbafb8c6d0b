"""Walking the rows of a tensor: the elements that are reduced, normalised or searched together.

Some dimensions of the tensors of a kernel are *reduced*, the others *kept*; a row is all elements along the
reduced ones, and every row is independent. Vectors lie either *along* a row, where its elements are
neighbours in memory, or *across* rows, one row in each lane, where the rows are neighbours: that is how the
channels-last image is pooled. A kernel says what happens to elements, and serves both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Number, Params, Pointer, Pointers, Val
from lite_cpu.machine import Machine

__all__ = ["Place", "Row", "RowLayout", "Vectors", "computed", "each_row"]

#: Vectors of a row that are taken at once, each with an accumulator of its own: they hide the latency of an addition.
UNROLL = 4

#: Turns after which accumulators are added to the total: a long sum is made of short ones, so its error stays small.
_CHUNK_TURNS = 128


class Vectors(str, Enum):
    """What the lanes of a vector hold."""

    ALONG = "along"  # elements of one row
    ACROSS = "across"  # an element of each of so many rows
    NONE = "none"  # scalars: neither rows nor elements are neighbours


@dataclass(frozen=True, slots=True)
class RowLayout:
    """How the tensors of a kernel lie; static, so part of its key.

    Attributes:
        kept: loops over rows; with vectors across rows the last is over neighbours.
        reduced: loops over the elements of a row; with vectors along rows the last is over neighbours.
        vectors: where the lanes go.
        dtypes: element type of each tensor.
        spread: for each tensor whether it has one element for all lanes (stride 0).
    """

    kept: int
    reduced: int
    vectors: Vectors
    dtypes: tuple[DType, ...]
    spread: tuple[bool, ...]

    def lanes(self, machine: Machine) -> int:
        """Elements of a vector, as many as registers hold of the widest type."""
        return 1 if self.vectors is Vectors.NONE else machine.lanes(max(4, *(d.itemsize for d in self.dtypes)))

    @property
    def parameters(self) -> int:
        """How many parameters describe the walk. First the rows of a work item (used across rows only), then the
        sizes of all loops, then for each tensor its strides: kept loops, then reduced ones, outermost first.
        """
        return 1 + (1 + len(self.dtypes)) * (self.kept + self.reduced)


def computed(dtype: DType) -> DType:
    """The type in which elements are computed: 16-bit floats in float32."""
    return DType.FLOAT32 if dtype.is_half else dtype


def each_row(
    k: Emitter,
    layout: RowLayout,
    pointers: Pointers,
    params: Params,
    begin: Val,
    end: Val,
    body: Callable[[Row], None],
) -> None:
    """Emit ``body`` for the rows of the work items from ``begin`` to ``end``: a row, or neighbouring rows, each."""
    loops = layout.kept + layout.reduced
    sizes = [params[1 + i] for i in range(loops)]
    strides = [[params[1 + (1 + t) * loops + i] for i in range(loops)] for t in range(len(layout.dtypes))]
    tensors = [pointers.tensor(t, dtype) for t, dtype in enumerate(layout.dtypes)]
    across = layout.vectors is Vectors.ACROSS
    outer = layout.kept - 1 if across else layout.kept
    with k.loop(begin, end) as item:
        rest, first, columns = item, k.index(0), k.index(1)
        if across:
            block, total = params[0], sizes[outer]
            blocks = (total + block - 1) / block
            first, rest = item % blocks * block, item / blocks
            columns = k.minimum(block, total - first)
        here = _moved(tensors, layout.spread, first) if across else tensors
        for axis in reversed(range(outer)):
            index = rest if axis == 0 else rest % sizes[axis]
            here = [p[index * s[axis]] for p, s in zip(here, strides)]
            rest = rest / sizes[axis]
        inner = [s[layout.kept :] for s in strides]

        def row(column: Val, count: int, valid: Val | None) -> None:
            moved = _moved(here, layout.spread, column) if across else here
            body(Row(k, layout, moved, sizes[layout.kept :], inner, count, valid))

        if across:
            _each_column(k, columns, layout.lanes(k.machine), row)
        else:
            row(k.index(0), 1, None)


def _each_column(k: Emitter, columns: Val, lanes: int, row: Callable[[Val, int, Val | None], None]) -> None:
    """Neighbouring rows: several vectors of them at a time, then one, then what is left of one."""
    start = k.index(0)
    for vectors in (UNROLL, 1):
        width = vectors * lanes
        stop = start + (columns - start) / width * width
        with k.loop(start, stop, width) as column:
            row(column, vectors, None)
        start = stop
    with k.if_(start < columns):
        row(start, 1, columns - start)


def _moved(pointers: Sequence[Pointer], spread: Sequence[bool], by: Number) -> list[Pointer]:
    return [p if fixed else p[by] for p, fixed in zip(pointers, spread)]


@dataclass(frozen=True, slots=True)
class Place:
    """A vector of elements inside a row.

    Attributes:
        pointers: its first element in each tensor.
        column: which of the row's vectors across rows it belongs to; 0 along a row.
        slot: which accumulator it should go to, so that neighbours do not wait for each other.
        index: number of its first element in the innermost loop.
        valid: how many lanes there are; None for all.
    """

    row: Row
    pointers: tuple[Pointer, ...]
    column: int
    slot: int
    index: Val
    valid: Val | None

    def load(self, tensor: int, fill: Number | None = None) -> Val:
        """Elements of a tensor, 16-bit floats as float32. Lanes beyond the end of the row are ``fill``."""
        row, k, pointer = self.row, self.row.k, self.pointers[tensor]
        if row.layout.spread[tensor] and row.lanes > 1:
            value = pointer.load().splat(row.lanes)
        else:
            value = k.load_first(pointer, self.valid, row.lanes)
        value = value.to(computed(value.dtype))
        if fill is not None and row.is_along and self.valid is not None:
            value = k.first_lanes(self.valid, row.lanes).select(value, fill)
        return value

    def store(self, tensor: int, value: Val) -> None:
        k, pointer = self.row.k, self.pointers[tensor]
        k.store_first(pointer, value.to(pointer.dtype), self.valid)


class Row:
    """A row, or with vectors across rows ``columns`` vectors of neighbouring rows."""

    def __init__(
        self,
        k: Emitter,
        layout: RowLayout,
        pointers: Sequence[Pointer],
        sizes: Sequence[Val],
        strides: Sequence[Sequence[Val]],
        columns: int,
        valid: Val | None,
    ) -> None:
        self.k, self.layout, self.columns = k, layout, columns
        self.lanes = layout.lanes(k.machine)
        self.is_along = layout.vectors is Vectors.ALONG
        #: Places of a column that are visited in one turn.
        self.unroll = UNROLL if columns == 1 else 1
        self._pointers, self._sizes, self._strides, self._valid = pointers, sizes, strides, valid

    @property
    def slots(self) -> int:
        """Accumulators that hide latency; slot ``s`` belongs to column ``s % columns``."""
        return self.unroll * self.columns

    @property
    def count(self) -> Val:
        """Elements of the row, an int64."""
        return reduce(lambda a, b: a * b, self._sizes)

    def walk(self, element: Callable[[Place], None], after_chunk: Callable[[], None] | None = None) -> None:
        """Visit every element; ``after_chunk`` is emitted where a moderate number of them has been visited."""
        self._walk(list(self._pointers), 0, element, after_chunk or (lambda: None))

    def _walk(
        self, here: list[Pointer], axis: int, element: Callable[[Place], None], after_chunk: Callable[[], None]
    ) -> None:
        if axis == self.layout.reduced - 1:
            self._walk_innermost(here, element, after_chunk)
            return
        with self.k.loop(0, self._sizes[axis]) as index:
            self._walk([p[index * s[axis]] for p, s in zip(here, self._strides)], axis + 1, element, after_chunk)

    def _walk_innermost(
        self, here: list[Pointer], element: Callable[[Place], None], after_chunk: Callable[[], None]
    ) -> None:
        k, step = self.k, self.lanes if self.is_along else 1

        def visit(index: Val, turn: int, valid: Val | None) -> None:
            if self.is_along:
                at = _moved(here, self.layout.spread, index)
            else:
                at = [p[index * s[-1]] for p, s in zip(here, self._strides)]
            for column in range(self.columns):
                moved = _moved(at, self.layout.spread, column * self.lanes) if column else at
                element(Place(self, tuple(moved), column, turn * self.columns + column, index, valid))

        total, chunk = self._sizes[-1], _CHUNK_TURNS * self.unroll * step
        with k.loop(0, total, chunk) as first:
            last = k.minimum(first + chunk, total)
            start = first
            for turns in dict.fromkeys((self.unroll, 1)):
                stop = start + (last - start) / (turns * step) * (turns * step)
                with k.loop(start, stop, turns * step) as index:
                    for turn in range(turns):
                        visit(index + turn * step, turn, self._valid)
                start = stop
            if step > 1:
                with k.if_(start < last):
                    visit(start, 0, last - start)
            after_chunk()

    def reduce(
        self,
        start: Number,
        dtype: DType,
        take: Callable[[Val, Place], Val],
        combine: Callable[[Val, Val], Val],
    ) -> list[Val]:
        """Reduce all elements of the row.

        Args:
            start: what ``combine`` does nothing with: 0 for a sum.
            dtype: type of the result.
            take: the result so far and a place, to the result with its elements.
            combine: two results to one.

        Returns:
            For each column a vector with the result of each lane's row; along a row, a scalar.
        """
        k = self.k
        initial = k.constant(start, dtype, self.lanes) if not isinstance(start, Val) else start
        slots = [k.variable(initial) for _ in range(self.slots)]
        totals = [k.variable(initial) for _ in range(self.columns)]

        def element(place: Place) -> None:
            slot = slots[place.slot]
            slot.set(take(slot.get(), place))

        def after_chunk() -> None:
            for column, total in enumerate(totals):
                merged = _pairwise([s.get() for s in slots[column :: self.columns]], combine)
                total.set(combine(total.get(), merged))
            for slot in slots:
                slot.set(initial)

        self.walk(element, after_chunk)
        results = [t.get() for t in totals]
        # NOTE: scalars stay scalars until they meet a vector. Spread over lanes at once, and divided, LLVM 22 adds the
        # wrong lanes of int64 for AVX-512.
        return [k.fold_lanes(r, combine) for r in results] if self.is_along else results

    def sum(self, value: Callable[[Place], Val], dtype: DType = DType.FLOAT32) -> list[Val]:
        """The sum of a value of each element; lanes beyond the end of the row must give 0."""
        return self.reduce(0, dtype, lambda total, place: total + value(place), lambda a, b: a + b)

    def at(self, tensor: int, index: Number) -> Pointer:
        """Where an element of a row of scalars is; ``index`` counts along the innermost loop."""
        return self._pointers[tensor][self._strides[tensor][-1] * index]

    def first(self, tensor: int, column: int) -> Val:
        """The first element of each lane's row."""
        pointer = self._pointers[tensor]
        if self.is_along:
            value = pointer.load().splat(self.lanes)
        else:
            value = self.k.load_first(pointer[column * self.lanes], self._valid, self.lanes)
        return value.to(computed(value.dtype))

    def store(self, tensor: int, results: Sequence[Val]) -> None:
        """Write one element for each row, from results as :meth:`reduce` gives them."""
        pointer = self._pointers[tensor]
        for column, result in enumerate(results):
            value = result.to(pointer.dtype)
            if self.is_along:
                pointer.store(value)
            else:
                self.k.store_first(pointer[column * self.lanes], value, self._valid)


def _pairwise(values: list[Val], combine: Callable[[Val, Val], Val]) -> Val:
    while len(values) > 1:
        values = [combine(*values[i : i + 2]) if i + 1 < len(values) else values[i] for i in range(0, len(values), 2)]
    return values[0]
