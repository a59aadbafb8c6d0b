"""The work items of a matrix product: how many rows and columns each of them computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import product

from lite_compiler.tracing.numbers import at_most, call, is_traced, largest, smallest
from lite_cpu.kernels.shares import (
    ITEM_TIME,
    Items,
    best_division,
    fractions,
    gives_own_rows,
    nearby,
    parts,
    time_of_a_weight,
)
from lite_cpu.kernels.tiles import gemm_tile, rows_time
from lite_cpu.machine import Machine

__all__ = ["gemm_blocks"]

Block = tuple[int, int]


def gemm_blocks(
    rows: int, depth: int, columns: int, batches: int, groups: int, machine: Machine, threads: int, tile_rows: int
) -> Block:
    """Return the rows and columns of a work item.

    Args:
        rows: rows of one product.
        depth: its depth.
        columns: its columns.
        batches: the number of products with different matrices B.
        groups: the number of products with the same B.
        machine: the processor.
        threads: the number of threads.
        tile_rows: the rows of a tile; 0 for a tile of vector registers.
    """
    others = (depth, columns, batches, groups, machine, threads, tile_rows)
    if threads == 1:
        return _largest_block(rows, depth, columns, machine, tile_rows)
    if not is_traced(rows, *others):
        return _divided(rows, *others)
    block: Block = call(_similar_block, *others, rows) if is_traced(*others) else _blocks_like(*others)(rows)
    return block


def _divided(
    rows: int, depth: int, columns: int, batches: int, groups: int, machine: Machine, threads: int, tile_rows: int
) -> Block:
    if _is_whole(rows, depth, columns, batches, groups, machine, threads):
        return _largest_block(rows, depth, columns, machine, tile_rows)
    return _best_blocks(rows, depth, columns, batches, groups, machine, threads, tile_rows)


@lru_cache(1024)  # the layers of a block are alike
def _blocks_like(
    depth: int, columns: int, batches: int, groups: int, machine: Machine, threads: int, tile_rows: int
) -> Callable[[int], Block]:
    """Return a function of the rows that returns a block like that of a product with about as many rows.

    The rows are cut into as many parts as those of that product, each as high as all others. A partition with sizes
    that change would compare hundreds of divisions for each of its products and each size, which takes several times as
    long as everything else for a new size.
    """
    highest, width = _largest_block(1 << 40, depth, columns, machine, tile_rows)
    unit = tile_rows or gemm_tile(machine)[0]
    least = math.ceil(machine.tuning.parallel_operations)
    #: The most rows of a product that is not divided, see _is_whole.
    whole = (least - 1) // max(1, 2 * batches * groups * depth * columns)

    @cache
    def best(near: int) -> Block:
        if near * 3 // 2 <= whole:  # products of about as many rows are not divided, and take nothing from this
            return unit, width
        return _best_blocks(near, depth, columns, batches, groups, machine, threads, tile_rows)

    def block(rows: int) -> Block:
        # Nothing is decided by the rows, so that native code calculates this for other sizes.
        tallest, near = smallest(highest, _padded(rows, unit)), largest(1, nearby(rows))
        height, part = call(best, near)
        divided = smallest(tallest, _padded(-(-rows // -(-near // height)), unit))
        return at_most(rows, whole, tallest, divided), at_most(rows, whole, width, part)

    return block


def _similar_block(
    depth: int, columns: int, batches: int, groups: int, machine: Machine, threads: int, tile_rows: int, rows: int
) -> Block:
    return _blocks_like(depth, columns, batches, groups, machine, threads, tile_rows)(rows)


def _is_whole(rows: int, depth: int, columns: int, batches: int, groups: int, machine: Machine, threads: int) -> bool:
    """Return True if there is nothing to divide among threads."""
    return threads == 1 or 2 * batches * groups * rows * depth * columns < machine.tuning.parallel_operations


def _largest_block(rows: int, depth: int, columns: int, machine: Machine, tile_rows: int) -> Block:
    """Return the block with all columns, and all rows if those of A fit half of the second-level cache."""
    register_rows, vectors = gemm_tile(machine)
    tile_rows = tile_rows or register_rows
    row_block = largest(1, machine.l2_bytes // 2 // (4 * largest(1, depth)) // tile_rows) * tile_rows
    return smallest(row_block, _padded(rows, tile_rows)), _padded(columns, vectors * machine.lanes())


@lru_cache(4096)  # layers of one size are many, and the plans of a decoder differ only in the length of its cache
def _best_blocks(
    rows: int, depth: int, columns: int, batches: int, groups: int, machine: Machine, threads: int, tile_rows: int
) -> Block:
    """Return the block whose threads finish first, by estimates."""
    row_block, column_block = _largest_block(rows, depth, columns, machine, tile_rows)
    register_rows, vectors = gemm_tile(machine)
    tile_rows, width = tile_rows or register_rows, vectors * machine.lanes()
    heights = dict.fromkeys([*fractions(row_block, tile_rows), *fractions(_padded(rows, tile_rows), tile_rows)])
    blocks = product((height for height in heights if height <= row_block), fractions(column_block, width))

    @cache
    def time_of_height(height: int) -> float:
        return depth * time_of_a_weight(machine, rows_time(machine, height))

    def items(block: Block) -> Items:
        times = []
        for height, row_count in parts(rows, block[0]):
            weight = time_of_height(height)
            for count, column_count in parts(columns, block[1]):
                times.append((weight * count + ITEM_TIME, batches * groups * row_count * column_count))
        return times

    def gives_rows(block: Block) -> bool:
        return batches == 1 and gives_own_rows(rows, block[0], threads)

    return best_division({block: items(block) for block in blocks}, threads, gives_rows)


def _padded(length: int, unit: int) -> int:
    return -(-length // unit) * unit
