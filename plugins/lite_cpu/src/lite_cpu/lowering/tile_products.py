"""Products of bfloat16 in matrix tiles, on machines that have them: the choice, and how A is read."""

from __future__ import annotations

from dataclasses import replace

from lite_cpu.kernels.bands import BandShape
from lite_cpu.kernels.direct import Direct, DirectShape
from lite_cpu.kernels.dot import Dot
from lite_cpu.kernels.gemm import Gemm, GemmShape
from lite_cpu.kernels.matrix_tiles import ROWS
from lite_cpu.kernels.tile_blocks import BLOCK_ROWS
from lite_cpu.kernels.tile_direct import TileDirect
from lite_cpu.kernels.tile_gemm import TileGemm
from lite_cpu.kernels.tile_rows import can_stay_in_place
from lite_cpu.machine import Machine

__all__ = ["FEWEST_ROWS", "direct_in_tiles", "gemm_in_tiles", "rows_of_tile", "windows_stay_in_place"]

#: A step of a single row of tiles waits 52 cycles for the sums of the step before, in which vector registers multiply
#: three rows of bytes (https://uops.info).
FEWEST_ROWS = 4


def gemm_in_tiles(machine: Machine, kernel: Gemm, shape: GemmShape) -> Gemm:
    """Return the product of a shape in matrix tiles if the machine has them and they are faster, else the kernel."""
    few = shape.rows * shape.groups < FEWEST_ROWS
    if not (kernel.pairs and machine.matrix_tiles) or isinstance(kernel, Dot) or few:
        return kernel
    return TileGemm.of(kernel, shape)


def rows_of_tile(kernel: Gemm) -> int:
    """Return the rows of the tiles of a kernel for :meth:`.GemmShape.blocks`."""
    return BLOCK_ROWS if isinstance(kernel, TileGemm) else 0


def direct_in_tiles(machine: Machine, kernel: Direct, shape: DirectShape) -> tuple[Direct, DirectShape, int]:
    """Return a convolution in matrix tiles if the machine has them, its bands, and the scratch memory of a thread.

    Args:
        machine: the processor.
        kernel: the convolution in vector registers.
        shape: its bands; those of a convolution in tiles may be lower.
    """
    if not (kernel.pairs and machine.matrix_tiles):
        return kernel, shape, shape.scratch_bytes
    shape = replace(shape, gathered=False)
    blocked = not windows_stay_in_place(shape, 4)
    tiles = TileDirect(kernel.epilogue, kernel.planes, False, True, kernel.plane, blocked=blocked)
    while shape.band_rows > 1 and tiles.scratch_bytes(shape) > machine.l2_bytes // 2:
        shape = replace(shape, band_rows=-(-shape.band_rows // 2))
    return tiles, shape, tiles.scratch_bytes(shape)


def windows_stay_in_place(shape: BandShape, itemsize: int) -> bool:
    """Return True if matrix tiles load rows of the padded copy; otherwise its windows are copied in their order.

    In place, the last tile of a row of the output overlaps the one before it. Copied, the rows follow one another.

    Args:
        shape: the bands of a convolution.
        itemsize: bytes of an element of the padded copy.
    """
    rows, width = shape.out_height, shape.out_width
    # By the instructions of a step of 64 bytes: 16 cycles for each tile, and two for each row of a copy.
    products = 16 * -(-shape.columns // ROWS)
    in_place = rows * -(-width // ROWS) * products
    copied = -(-rows * width // ROWS) * products + 2 * rows * width
    stride = itemsize * shape.pixel_stride * shape.channels
    return can_stay_in_place(width, itemsize * shape.depth, stride) and in_place <= copied
