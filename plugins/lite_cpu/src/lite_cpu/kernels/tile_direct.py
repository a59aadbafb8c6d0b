"""Dense convolution of bfloat16 in matrix tiles: the windows of a padded copy, like :mod:`.direct`."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.bands import BandEmitter, BandItem
from lite_cpu.kernels.bfloat16_pairs import PAIR
from lite_cpu.kernels.direct import PARAMETERS, Direct, DirectShape
from lite_cpu.kernels.matrix_tiles import ROW_BYTES, MatrixTiles
from lite_cpu.kernels.pair_tile_blocks import PairTileBlocks
from lite_cpu.kernels.tile_rows import copy_bytes, copy_rows
from lite_cpu.kernels.tile_setup import matrix_tiles
from lite_cpu.kernels.tiles import Rows

__all__ = ["TileDirect"]

#: Pairs after which the tiles begin at a multiple of their rows' size.
_ALIGNMENT = ROW_BYTES // PAIR.itemsize


@dataclass(frozen=True)
class TileDirect(Direct):
    """:class:`~lite_cpu.kernels.direct.Direct` of pairs in matrix tiles.

    With ``blocked``, the windows of a band are copied once more behind the padded copy, in the order of tiles.
    """

    blocked: bool = False

    def scratch_bytes(self, shape: DirectShape) -> int:
        """Return the scratch memory of a thread."""
        if not self.blocked:
            return shape.scratch_bytes
        windows = copy_bytes(shape.band_rows * shape.out_width, shape.window_rows * shape.taps * shape.depth)
        return shape.scratch_bytes + ROW_BYTES + windows

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch), matrix_tiles(k) as registers:
            p = {name: params[i] for i, name in enumerate(PARAMETERS)}
            bands = BandEmitter(k, pointers, params, p)
            copy = scratch.cast(DType.FLOAT32)
            tiles = scratch.cast(PAIR)[(p["band_elements"] + (_ALIGNMENT - 1)) / _ALIGNMENT * _ALIGNMENT]

            def make_copy(item: BandItem) -> None:
                self._copy(bands, item, copy)
                if self.blocked:
                    windows = bands.windows(copy.cast(PAIR))
                    copy_rows(k, windows, bands.window(), item.rows, p["out_width"], tiles)

            a = Rows(tiles, k.index(0), k.index(0)) if self.blocked else bands.windows(copy.cast(PAIR))
            bands.items(begin, end, make_copy, lambda item: self._multiply_tiles(bands, item, a, registers))

    def _multiply_tiles(self, bands: BandEmitter, item: BandItem, a: Rows, registers: MatrixTiles) -> None:
        pointers, window = bands.pointers, bands.window()
        blocks = PairTileBlocks(bands.k, registers, self.epilogue, window, self.blocked)
        b = pointers.tensor(1, PAIR)[item.group * bands.p["b_group"] + item.column * window.total]
        bias = pointers.tensor(2, DType.FLOAT32)[bands.first_column(item)]
        tensors = bands.tensors(item, a, self.epilogue, output=3)
        blocks.block(tensors, item.rows, bands.p["out_width"], item.columns, b, bias)
