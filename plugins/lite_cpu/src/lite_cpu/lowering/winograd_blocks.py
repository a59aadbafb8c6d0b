"""The work items of a Winograd convolution, and the model of their cost.

A work item transforms the input of some tiles, multiplies it by the weights of some columns, and transforms the
products. Tall items read the weights less often; small ones divide the work more evenly among threads; narrow ones
transform the same input again. Costs are in units of the time of one floating-point operation at full speed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from lite_cpu.kernels.shares import parts, time_of_threads
from lite_cpu.kernels.tiles import gemm_tile, rows_time
from lite_cpu.kernels.toom_cook import window
from lite_cpu.machine import Machine

__all__ = ["Block", "Products", "blocks", "lowest_cost"]

#: The cost of computing, storing and loading one element of the transformed input or of the products, if those of a
#: work item are small. It doubles when they fill the second-level cache. Fitted on Zen 4, AVX2 and AVX-512, with one
#: and two threads, to 56x56x64, 40x40x96, 28x28x128, 14x14x256 and 7x7x512: the block that the model finds cheapest
#: takes 1.4 % longer than the best one with AVX-512, on average, and at most 6 %.
_TRANSFORM = 14

#: Heights of blocks in register tiles, and numbers of blocks of columns.
_HEIGHTS = (1, 2, 3, 4, 6, 8, 12)
_WIDTHS = (1, 2, 4, 8)


class Block(NamedTuple):
    """The tiles and columns of a work item."""

    tiles: int
    columns: int

    def __str__(self) -> str:
        return f"{self.tiles} tiles of {self.columns} columns"


class Products(NamedTuple):
    """The sizes of the products of a Winograd convolution F(m x m, 3 x 3), with m = ``outputs``."""

    outputs: int
    tiles: int
    channels: int
    columns: int

    @property
    def points(self) -> int:
        """The number of products: one for each element of a transformed tile."""
        return window(self.outputs) ** 2


@lru_cache(1024)
def blocks(machine: Machine, sizes: Products, threads: int) -> tuple[Block, ...]:
    """Return the possible work items, the one with the lowest estimated cost first."""
    tile_rows, vectors = gemm_tile(machine)
    panel = vectors * machine.lanes()
    highest = -(-sizes.tiles // tile_rows)
    heights = {min(height, highest) * tile_rows for height in _HEIGHTS}
    widths = {-(-sizes.columns // count // panel) * panel for count in _WIDTHS}
    found = [Block(tiles, columns) for tiles in heights for columns in widths if columns]
    return tuple(sorted(found, key=lambda block: (_cost(machine, sizes, block, threads), block)))


def lowest_cost(machine: Machine, sizes: Products) -> float:
    """Return the estimated cost of a convolution with one thread, divided into the best work items."""
    return _cost(machine, sizes, blocks(machine, sizes, 1)[0], 1)


def _cost(machine: Machine, sizes: Products, block: Block, threads: int) -> float:
    """Return the cost of all items with one thread, or that of the thread that takes longest."""
    rows, columns = parts(sizes.tiles, block.tiles), parts(sizes.columns, block.columns)
    items = [
        (_item_cost(machine, sizes, height, width), height_count * width_count)
        for height, height_count in rows
        for width, width_count in columns
    ]
    return time_of_threads(items, threads)


def _item_cost(machine: Machine, sizes: Products, tiles: int, columns: int) -> float:
    lanes = machine.lanes()
    weights_bytes = 4 * sizes.points * sizes.channels * sizes.columns
    # Weights that fit the second-level cache stay there from one item to the next.
    missed = min(1.0, max(0.0, weights_bytes / machine.l2_bytes - 1))
    padded_columns = -(-columns // lanes) * lanes
    per_weight = 2 * rows_time(machine, tiles) + missed * machine.tuning.winograd_weight
    elements = sizes.points * tiles * (-(-sizes.channels // lanes) * lanes + padded_columns)
    spilled = 4 * elements / machine.l2_bytes
    return sizes.points * sizes.channels * padded_columns * per_weight + _TRANSFORM * (1 + spilled) * elements
