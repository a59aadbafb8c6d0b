"""Rows of A for products in matrix tiles: where they are loaded in place, and the copy that they are loaded from else.

In the copy, a tile of 16 rows and 64 bytes is one run of 1 KiB. The runs of a row follow one another in whole groups of
32 bits, as in the panels of B, and zeros fill its last tile.
"""

from __future__ import annotations

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Number, Pointer, Val
from lite_cpu.kernels.matrix_tiles import ROW_BYTES, ROWS
from lite_cpu.kernels.tiles import Rows, Window

__all__ = ["TILE_BYTES", "can_stay_in_place", "copy_bytes", "copy_rows", "groups_of_row", "steps_of_row"]

TILE_BYTES = ROWS * ROW_BYTES

_GROUP_BYTES = 4

#: Rows at multiples of this distance, in bytes, share so few cache sets that a copy of them pays.
_SHARED_SETS_BYTES = 1024


def can_stay_in_place(rows: int, run_bytes: int, row_stride_bytes: int) -> bool:
    """Return True if tiles can be loaded from the rows of A where they lie, and a copy would not be faster.

    Args:
        rows: rows of a group, at the same distance from each other.
        run_bytes: bytes of a contiguous run of a row.
        row_stride_bytes: the distance.
    """
    return rows >= ROWS and run_bytes % ROW_BYTES == 0 and row_stride_bytes % _SHARED_SETS_BYTES != 0


def copy_bytes(rows: int, groups: int) -> int:
    """Return the bytes of memory that :func:`copy_rows` needs for rows of ``groups`` groups of 32 bits."""
    steps = -(-groups * _GROUP_BYTES // ROW_BYTES)
    # A line in which a row is collected, and what its last vector may write behind it.
    return -(-rows // ROWS) * TILE_BYTES * steps + (steps + 1) * ROW_BYTES


def groups_of_row(window: Window, itemsize: int) -> Val:
    """Return the groups of a row; ``itemsize`` is that of the elements of the window."""
    return window.segments * window.taps * _groups_of_run(window, itemsize)


def steps_of_row(window: Window, itemsize: int) -> Val:
    """Return the steps of 64 bytes of a row, of which the last one may have fewer."""
    return (groups_of_row(window, itemsize) + (ROW_BYTES // _GROUP_BYTES - 1)) / (ROW_BYTES // _GROUP_BYTES)


def _groups_of_run(window: Window, itemsize: int) -> Val:
    return (window.depth * itemsize + (_GROUP_BYTES - 1)) / _GROUP_BYTES


def copy_rows(k: Emitter, source: Rows, window: Window, groups: Number, rows: Val, target: Pointer) -> None:
    """Copy rows of A to tiles, [rows / 16][steps][16][64 bytes]; a group of rows begins where the one before ends.

    Rows behind the last one are left as they are.

    Args:
        k: the emitter.
        source: A, of integers: bytes, or pairs of bfloat16.
        window: the runs of a row.
        groups: number of groups of rows.
        rows: rows of a group.
        target: the copy, followed by memory for a line, see :func:`copy_bytes`.
    """
    target, itemsize = target.cast(DType.UINT8), source.start.dtype.itemsize
    width = ROW_BYTES // itemsize
    steps, run_bytes = steps_of_row(window, itemsize), _groups_of_run(window, itemsize) * _GROUP_BYTES
    all_rows = (rows * groups + (ROWS - 1)) / ROWS * ROWS
    line = target[all_rows * steps * ROW_BYTES]
    rest = window.depth % width
    mask = k.first_lanes(rest, width)
    runs = window.segments * window.taps

    def copy_run(start: Pointer, to: Pointer, step: int) -> None:
        """Copy a run in vectors that are ``step`` bytes apart; zeros follow the last elements."""
        whole = window.depth / width
        with k.walk(whole, (start, width), (to, step)) as (elements, here):
            here.cast(start.dtype).store(elements.load(width))
        with k.if_(rest > 0):
            to[whole * step].cast(start.dtype).store(start[whole * width].load(width, mask))

    with k.loop(0, groups) as group, k.loop(0, rows) as row:
        first, number = source.at(group, row), group * rows + row
        tiles = target[number / ROWS * steps * TILE_BYTES + number % ROWS * ROW_BYTES]

        def at_once() -> None:
            with k.loop(0, window.segments) as segment, k.loop(0, window.taps) as tap:
                run = first.start[segment * window.a_segment + tap * window.a_tap]
                position = (segment * window.taps + tap) * (run_bytes / ROW_BYTES)
                copy_run(run, tiles[position * TILE_BYTES], TILE_BYTES)

        def through_line() -> None:
            with k.loop(0, window.segments) as segment, k.loop(0, window.taps) as tap:
                run = first.start[segment * window.a_segment + tap * window.a_tap]
                copy_run(run, line[(segment * window.taps + tap) * run_bytes], ROW_BYTES)
            line[runs * run_bytes].store(k.constant(0, DType.UINT8, ROW_BYTES))
            with k.walk(steps, (line, ROW_BYTES), (tiles, TILE_BYTES)) as (vector, tile):
                tile.store(vector.load(ROW_BYTES))

        k.if_else(runs.eq(1) | (run_bytes % ROW_BYTES).eq(0), at_once, through_line)
