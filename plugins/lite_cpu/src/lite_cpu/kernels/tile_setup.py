"""Configuration of matrix tiles around the work items of a kernel, and the choice of their instructions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Pointer
from lite_cpu.kernels.matrix_tiles import COUNT, ROW_BYTES, ROWS, AmxTiles, MatrixTiles

__all__ = ["configuration", "matrix_tiles"]


@contextmanager
def matrix_tiles(k: Emitter) -> Iterator[MatrixTiles]:
    """Emit the configuration of whole tiles, the body, and their release.

    Both instructions together take about a hundred cycles, so a kernel emits them around its loop over work items.
    """
    if "+amx-tile" in k.machine.features:
        tiles: MatrixTiles = AmxTiles(k)
    else:
        from lite_cpu.kernels.emulated_tiles import EmulatedTiles  # not at the top: only tests use it

        tiles = EmulatedTiles(k)
    tiles.configure(configuration(k, [(ROWS, ROW_BYTES)] * COUNT))
    yield tiles
    tiles.release()


def configuration(k: Emitter, sizes: Sequence[tuple[int, int]]) -> Pointer:
    """Return memory with the sizes of the tiles, rows and bytes of a row, as the instruction LDTILECFG reads them."""
    memory = k.stack_bytes(ROW_BYTES, ROW_BYTES)
    content = [0] * ROW_BYTES
    content[0] = 1  # the only palette: eight tiles of 16 x 64 bytes at most
    for tile, (rows, row_bytes) in enumerate(sizes):
        content[16 + 2 * tile : 18 + 2 * tile] = row_bytes.to_bytes(2, "little")
        content[48 + tile] = rows
    memory.store(k.vector(content, DType.UINT8))
    return memory
