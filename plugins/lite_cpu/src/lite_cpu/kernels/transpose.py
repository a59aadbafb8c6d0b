"""Copies between tensors that are contiguous in different dimensions, by transposing blocks in registers.

Elements are copied as integers of their size, so all element types are supported and the payload of a NaN is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.machine import Machine

__all__ = ["Transpose", "interleave_registers", "transpose_block", "transpose_registers"]

#: Unpack instructions on x86 work within 16-byte lanes; wider registers consist of several such lanes.
_LANE_BYTES = 16


def transpose_block(machine: Machine, itemsize: int) -> int:
    """Return the number of rows and columns of the block that is transposed in registers."""
    return min(machine.lanes(itemsize), 16)


def transpose_registers(rows: Sequence[Val]) -> list[Val]:
    """Transpose a square block, given as one vector for each row.

    Inside 16-byte lanes, ``log2`` rounds unpack pairs of rows at a distance of half the lane; then whole lanes are
    exchanged between registers, as in Eklundh, "A fast computer method for matrix transposing", 1972.
    """
    size = len(rows)
    lane = min(size, _LANE_BYTES // rows[0].dtype.itemsize)
    lanes = size // lane
    low = [b * lane + i // 2 + (i % 2) * size for b in range(lanes) for i in range(lane)]
    high = [n + lane // 2 for n in low]
    groups = [list(rows[g * lane : (g + 1) * lane]) for g in range(lanes)]
    for _ in range(lane.bit_length() - 1):
        for g, group in enumerate(groups):
            pairs = [(group[i], group[i + lane // 2]) for i in range(lane // 2)]
            groups[g] = [a.shuffle(b, mask) for a, b in pairs for mask in (low, high)]
    distance = lanes // 2
    while distance:
        keep = [i if not i // lane & distance else size + i - distance * lane for i in range(size)]
        swap = [i + distance * lane if not i // lane & distance else size + i for i in range(size)]
        for g in range(lanes):
            if not g & distance:
                upper, lower = groups[g], groups[g + distance]
                groups[g] = [a.shuffle(b, keep) for a, b in zip(upper, lower)]
                groups[g + distance] = [a.shuffle(b, swap) for a, b in zip(upper, lower)]
        distance //= 2
    return [row for group in groups for row in group]


def interleave_registers(rows: Sequence[Val], part: int) -> Val:
    """Return vector number ``part`` of the interleaved rows: first element of each row, second of each row, ..."""
    lanes, value = rows[0].lanes, rows[0]
    sources = [divmod(part * lanes + lane, len(rows)) for lane in range(lanes)]  # (column, row) of each lane
    for number, row in enumerate(rows):
        value = value.shuffle(row, [lanes + column if r == number else i for i, (column, r) in enumerate(sources)])
    return value


@dataclass(frozen=True)
class Transpose(Kernel):
    """Copy between tensors that are contiguous in different dimensions.

    Pointers: source, destination. Parameters: see :meth:`params`.

    The source is contiguous along its *columns*, the destination along the *rows*. A work item is a range of columns
    for all rows: it writes whole rows of the destination.

    Attributes:
        itemsize: size of an element in bytes.
        outer: number of outer loops.
        thin: there are too few rows or columns for blocks; elements are copied one by one.
        interleave: number of rows, if they are few and the destination interleaves their elements without gaps, like
            the three colours of a picture or the groups of a channel shuffle; 0 otherwise.
    """

    itemsize: int
    outer: int = 0
    thin: bool = False
    interleave: int = 0

    @staticmethod
    def params(
        rows: int,
        columns: int,
        row_stride: int,
        column_stride: int,
        column_block: int,
        outer: Sequence[tuple[int, int, int]],
    ) -> list[int]:
        """Return the parameters; sizes and strides are in elements.

        Args:
            rows: size of the dimension in which the destination is contiguous.
            columns: size of the dimension in which the source is contiguous.
            row_stride: stride of the rows in the source.
            column_stride: stride of the columns in the destination.
            column_block: columns of a work item.
            outer: size, stride in the source and stride in the destination of each outer loop, innermost first.
        """
        return [rows, columns, row_stride, column_stride, column_block, *(n for loop in outer for n in loop)]

    def emit(self, k: Emitter) -> None:
        dtype = DType(f"uint{8 * self.itemsize}")
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            source, destination = pointers.tensor(0, dtype), pointers.tensor(1, dtype)
            rows, columns, row_stride, column_stride, column_block = (params[i] for i in range(5))
            blocks = (columns + column_block - 1) / column_block
            with k.loop(begin, end) as item:
                rest = item / blocks
                from_, to = source, destination
                for loop in range(self.outer):
                    size, step, target_step = (params[5 + 3 * loop + i] for i in range(3))
                    index = rest % size
                    from_, to = from_[index * step], to[index * target_step]
                    rest = rest / size
                first = item % blocks * column_block
                last = k.minimum(first + column_block, columns)
                here, there = from_[first], to[first * column_stride]
                copy = self._interleave if self.interleave else self._copy_elements if self.thin else self._by_blocks
                copy(k, here, there, row_stride, column_stride, rows, last - first)

    @staticmethod
    def _by_blocks(
        k: Emitter, source: Pointer, destination: Pointer, row: Val, column: Val, rows: Val, columns: Val
    ) -> None:
        block = transpose_block(k.machine, source.dtype.itemsize)
        with k.loop(0, columns, block) as c, k.loop(0, rows, block) as r:
            a, b = source[r * row + c], destination[c * column + r]
            width, height = k.minimum(columns - c, block), k.minimum(rows - r, block)
            k.if_else(
                (width >= block) & (height >= block),
                lambda: Transpose._transpose_block(k, a, b, row, column, block),
                lambda: Transpose._transpose_edge(k, a, b, row, column, height, width, block),
            )

    @staticmethod
    def _transpose_block(k: Emitter, source: Pointer, destination: Pointer, row: Val, column: Val, block: int) -> None:
        loaded = [source[row * i].load(block) for i in range(block)]
        for i, value in enumerate(transpose_registers(loaded)):
            destination[column * i].store(value)

    @staticmethod
    def _transpose_edge(
        k: Emitter, source: Pointer, destination: Pointer, row: Val, column: Val, rows: Val, columns: Val, block: int
    ) -> None:
        """Transpose a block at an edge with fewer than ``block`` rows or columns."""
        if k.machine.masks and source.dtype.itemsize >= 4:
            wide, tall = k.first_lanes(columns, block), k.first_lanes(rows, block)
            none = k.constant(0, DType.BOOL, block)
            loaded = []
            for i in range(block):
                there = (rows > i).select(wide, none)
                loaded.append(source[row * i].load(block, there))
            for i, value in enumerate(transpose_registers(loaded)):
                destination[column * i].store(value, (columns > i).select(tall, none))
        else:
            Transpose._copy_elements(k, source, destination, row, column, rows, columns)

    def _interleave(
        self, k: Emitter, source: Pointer, destination: Pointer, row: Val, column: Val, rows: Val, columns: Val
    ) -> None:
        """Load one vector of each row, and store as many contiguous vectors to the destination."""
        count = self.interleave
        lines = [source[row * r] for r in range(count)]

        def body(c: Val, lanes: int) -> None:
            loaded = [line[c].load(lanes) for line in lines]
            for part in range(count):
                value = loaded[part] if lanes == 1 else interleave_registers(loaded, part)
                destination[c * count + part * lanes].store(value)

        k.span(columns, transpose_block(k.machine, self.itemsize), body, narrow=True)

    @staticmethod
    def _copy_elements(
        k: Emitter, source: Pointer, destination: Pointer, row: Val, column: Val, rows: Val, columns: Val
    ) -> None:
        """Copy element by element, with the longer dimension in the inner loop."""

        def copy(pointers: Sequence[Pointer]) -> None:
            from_, to = pointers
            to.store(from_.load())

        def by_columns() -> None:
            with k.walk(rows, (source, row), (destination, 1)) as (from_, to):
                k.repeat(columns, copy, (from_, 1), (to, column))

        def by_rows() -> None:
            with k.walk(columns, (source, 1), (destination, column)) as (from_, to):
                k.repeat(rows, copy, (from_, row), (to, 1))

        k.if_else(columns > rows, by_columns, by_rows)
