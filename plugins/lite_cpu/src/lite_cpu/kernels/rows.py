"""Loops over the rows of tensors, whose elements are reduced, normalized or searched together.

Some dimensions of the tensors of a kernel are *reduced*, the others *kept*; a row consists of all elements along the
reduced ones, and rows are independent. Vectors are either *along* a row, if its elements are contiguous, or *across*
rows, one row in each lane, if the rows are adjacent in memory, as in the pooling of a channels-last image. A kernel
defines only the computation on elements and supports both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Number, Params, Pointer, Pointers, Val
from lite_cpu.machine import Machine

__all__ = ["Elements", "Row", "RowLayout", "Vectors", "computed", "each_row"]

#: Number of vectors along a row, or of vectors of adjacent rows, that are processed together, in separate accumulators,
#: to hide the latency of additions.
UNROLL = 4

#: Number of accumulators of each vector of adjacent rows. It is the same however many of these vectors are processed
#: together, so that each row is summed in the same order: equal rows have bitwise equal results.
_ACROSS = 2

#: Elements of a lane after which accumulators are added to the total: a sum of short sums has a smaller error.
_CHUNK = 512


class Vectors(str, Enum):
    """The content of the lanes of a vector."""

    ALONG = "along"  # elements of one row
    ACROSS = "across"  # one element of each of several rows
    NONE = "none"  # scalars, because neither rows nor elements are contiguous


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Layout of the tensors of a kernel; it is static and part of the kernel's key.

    Attributes:
        kept: number of loops over rows; with vectors across rows the last is over contiguous elements.
        reduced: number of loops over the elements of a row; with vectors along rows the last is over contiguous ones.
        vectors: the content of the lanes.
        dtypes: element type of each tensor.
        spread: for each tensor, True if it has one element for all lanes (stride 0).
        wide: the last tensor is not a tensor of the kernel but scratch memory, which holds a row, or adjacent rows, in
            float32 between the loops over its elements.
    """

    kept: int
    reduced: int
    vectors: Vectors
    dtypes: tuple[DType, ...]
    spread: tuple[bool, ...]
    wide: bool = False

    def lanes(self, machine: Machine) -> int:
        """Return the number of lanes: as many as a register holds of the widest element type."""
        return 1 if self.vectors is Vectors.NONE else machine.lanes(max(4, *(d.itemsize for d in self.dtypes)))

    @property
    def parameters(self) -> int:
        """Number of parameters that describe the loops.

        These are the rows of a work item (used across rows only), the sizes of all loops, and for each tensor its
        strides: kept loops, then reduced ones, outermost first.
        """
        return 1 + (1 + len(self.dtypes)) * (self.kept + self.reduced)


def computed(dtype: DType) -> DType:
    """Return the type in which elements are computed: 16-bit floats in float32."""
    return DType.FLOAT32 if dtype.is_half else dtype


def each_row(
    k: Emitter,
    layout: RowLayout,
    pointers: Pointers,
    params: Params,
    begin: Val,
    end: Val,
    body: Callable[[Row], None],
    scratch: Pointer | None = None,
) -> None:
    """Emit ``body`` for the rows of the work items [begin, end); an item is a row, or several adjacent rows.

    ``scratch`` is the scratch memory of the thread, for layouts that need it.
    """
    loops = layout.kept + layout.reduced
    sizes = [params[1 + i] for i in range(loops)]
    strides = [[params[1 + (1 + t) * loops + i] for i in range(loops)] for t in range(len(layout.dtypes))]
    outside = layout.dtypes[:-1] if layout.wide else layout.dtypes
    tensors = [pointers.tensor(t, dtype) for t, dtype in enumerate(outside)]
    across = layout.vectors is Vectors.ACROSS
    outer = layout.kept - 1 if across else layout.kept
    with k.loop(begin, end) as item:
        rest, first, columns = item, k.index(0), k.index(1)
        if across:
            block, total = params[0], sizes[outer]
            blocks = (total + block - 1) / block
            first, rest = item % blocks * block, item / blocks
            columns = k.minimum(block, total - first)
        here = _advance(tensors, layout.spread, first) if across else tensors
        for axis in reversed(range(outer)):
            index = rest if axis == 0 else rest % sizes[axis]
            here = [p[index * s[axis]] for p, s in zip(here, strides)]
            rest = rest / sizes[axis]
        if layout.wide and scratch is not None:
            here = [*here, scratch.cast(DType.FLOAT32)]
        inner = [s[layout.kept :] for s in strides]

        def row(column: Val, count: int, valid: Val | None) -> None:
            moved = _advance(here, layout.spread, column) if across else here
            body(Row(k, layout, moved, sizes[layout.kept :], inner, count, valid))

        if across:
            _each_column_block(k, columns, layout.lanes(k.machine), row)
        else:
            row(k.index(0), 1, None)


def _each_column_block(k: Emitter, columns: Val, lanes: int, row: Callable[[Val, int, Val | None], None]) -> None:
    """Emit loops over adjacent rows: several vectors of rows at a time, then single vectors, then a partial vector."""
    start = k.index(0)
    for vectors in (UNROLL, 1):
        width = vectors * lanes
        stop = start + (columns - start) / width * width
        with k.loop(start, stop, width) as column:
            row(column, vectors, None)
        start = stop
    with k.if_(start < columns):
        row(start, 1, columns - start)


def _advance(pointers: Sequence[Pointer], spread: Sequence[bool], by: Number) -> list[Pointer]:
    return [p if fixed else p[by] for p, fixed in zip(pointers, spread)]


@dataclass(frozen=True, slots=True)
class Elements:
    """A vector of elements of a row, or of one element of each of several rows.

    Attributes:
        row: the row.
        pointers: address of the first element in each tensor.
        column: number of the vector of adjacent rows that it belongs to; 0 along a row.
        slot: number of the accumulator to use, so that consecutive updates do not wait for each other.
        index: index of the first element in the innermost loop.
        valid: number of valid lanes; None for all.
    """

    row: Row
    pointers: tuple[Pointer, ...]
    column: int
    slot: int
    index: Val
    valid: Val | None

    def load(self, tensor: int, fill: Number | None = None) -> Val:
        """Load elements of a tensor, 16-bit floats as float32; lanes beyond the end of the row are ``fill``."""
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
        """Store elements to a tensor, converted to its element type."""
        k, pointer = self.row.k, self.pointers[tensor]
        k.store_first(pointer, value.to(pointer.dtype), self.valid)


class Row:
    """A row, or with vectors across rows ``columns`` vectors of adjacent rows."""

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
        #: Number of vectors of a column that are processed in one iteration.
        self.unroll = _ACROSS if layout.vectors is Vectors.ACROSS else UNROLL
        self._pointers, self._sizes, self._strides, self._valid = pointers, sizes, strides, valid

    @property
    def slots(self) -> int:
        """Number of accumulators, which hide latency; slot ``s`` belongs to column ``s % columns``."""
        return self.unroll * self.columns

    @property
    def count(self) -> Val:
        """Number of elements of the row, an int64."""
        return reduce(lambda a, b: a * b, self._sizes)

    def walk(self, element: Callable[[Elements], None], after_chunk: Callable[[], None] | None = None) -> None:
        """Emit ``element`` for all elements of the row, and ``after_chunk`` after each moderate number of them."""
        self._walk(list(self._pointers), 0, element, after_chunk or (lambda: None))

    def _walk(
        self, here: list[Pointer], axis: int, element: Callable[[Elements], None], after_chunk: Callable[[], None]
    ) -> None:
        if axis == self.layout.reduced - 1:
            self._walk_innermost(here, element, after_chunk)
            return
        with self.k.loop(0, self._sizes[axis]) as index:
            self._walk([p[index * s[axis]] for p, s in zip(here, self._strides)], axis + 1, element, after_chunk)

    def _walk_innermost(
        self, here: list[Pointer], element: Callable[[Elements], None], after_chunk: Callable[[], None]
    ) -> None:
        k, step = self.k, self.lanes if self.is_along else 1

        def visit(index: Val, turn: int, valid: Val | None) -> None:
            if self.is_along:
                at = _advance(here, self.layout.spread, index)
            else:
                at = [p[index * s[-1]] for p, s in zip(here, self._strides)]
            for column in range(self.columns):
                moved = _advance(at, self.layout.spread, column * self.lanes) if column else at
                element(Elements(self, tuple(moved), column, turn * self.columns + column, index, valid))

        total, chunk = self._sizes[-1], _CHUNK * step
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
        update: Callable[[Val, Elements], Val],
        combine: Callable[[Val, Val], Val],
    ) -> list[Val]:
        """Reduce all elements of the row.

        Args:
            start: the neutral element of ``combine``: 0 for a sum.
            dtype: type of the result.
            update: returns a partial result updated by elements.
            combine: combines two partial results.

        Returns:
            For each column a vector with the result of each lane's row; along a row, a scalar.
        """
        k = self.k
        initial = k.constant(start, dtype, self.lanes) if not isinstance(start, Val) else start
        slots = [k.variable(initial) for _ in range(self.slots)]
        totals = [k.variable(initial) for _ in range(self.columns)]

        def element(elements: Elements) -> None:
            slot = slots[elements.slot]
            slot.set(update(slot.get(), elements))

        def after_chunk() -> None:
            for column, total in enumerate(totals):
                merged = _pairwise([s.get() for s in slots[column :: self.columns]], combine)
                total.set(combine(total.get(), merged))
            for slot in slots:
                slot.set(initial)

        self.walk(element, after_chunk)
        results = [t.get() for t in totals]
        # NOTE: scalars are broadcast only where they are combined with vectors. If they are broadcast here and then
        # divided, LLVM 22 adds the wrong lanes of int64 for AVX-512.
        return [k.fold_lanes(r, combine) for r in results] if self.is_along else results

    def sum(self, value: Callable[[Elements], Val], dtype: DType = DType.FLOAT32) -> list[Val]:
        """Return the sum of ``value`` of each element, which must be 0 for lanes beyond the end of the row."""
        return self.reduce(0, dtype, lambda total, elements: total + value(elements), lambda a, b: a + b)

    def at(self, tensor: int, index: Number) -> Pointer:
        """Return the address of an element of a row without vectors; ``index`` counts along the innermost loop."""
        return self._pointers[tensor][self._strides[tensor][-1] * index]

    def first(self, tensor: int, column: int) -> Val:
        """Load the first element of each lane's row."""
        pointer = self._pointers[tensor]
        if self.is_along:
            value = pointer.load().splat(self.lanes)
        else:
            value = self.k.load_first(pointer[column * self.lanes], self._valid, self.lanes)
        return value.to(computed(value.dtype))

    def store(self, tensor: int, results: Sequence[Val]) -> None:
        """Store one element for each row; ``results`` have the form that :meth:`reduce` returns."""
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
