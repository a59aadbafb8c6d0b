"""Matrix product of bfloat16 in matrix tiles, with packed weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from lite_cpu.emitter import Emitter
from lite_cpu.kernels.gemm import Gemm, GemmShape
from lite_cpu.kernels.pair_tile_blocks import HeldRows, PairTileBlocks
from lite_cpu.kernels.tile_rows import can_stay_in_place, copy_bytes
from lite_cpu.kernels.tile_setup import matrix_tiles

__all__ = ["TileGemm"]


@dataclass(frozen=True)
class TileGemm(Gemm):
    """:class:`~lite_cpu.kernels.gemm.Gemm` of pairs in matrix tiles.

    With ``blocked``, rows of A are first copied into the scratch memory of the thread, in the order of tiles.
    """

    blocked: bool = False

    @classmethod
    def of(cls, kernel: Gemm, shape: GemmShape) -> TileGemm:
        """Return a product of pairs in tiles."""
        in_place = can_stay_in_place(shape.rows, 4 * shape.depth, 4 * shape.a_row)
        return cls(kernel.epilogue, kernel.weights, kernel.pairs, blocked=not in_place)

    def scratch_bytes(self, row_block: int, shape: GemmShape) -> int:
        """Return the scratch memory of a thread for items of ``row_block`` rows."""
        return copy_bytes(row_block, shape.total_depth) if self.blocked else 0

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch), matrix_tiles(k) as tiles:
            held = HeldRows.of(k, scratch) if self.blocked else None
            blocks = partial(PairTileBlocks, k, tiles, self.epilogue, blocked=self.blocked, held=held)
            self.emit_items(k, pointers, params, begin, end, blocks)
