"""The matrix tiles of an 8-bit product, for the kernels that :class:`~.int8_tiles.Int8BlockEmitter` serves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lite_cpu.chains import Chain
from lite_cpu.emitter import Emitter, Number, Pointer, Val
from lite_cpu.kernels.int8_tiles import Int8BlockEmitter, LeftSide
from lite_cpu.kernels.matrix_tiles import MatrixTiles
from lite_cpu.kernels.tile_blocks import RowTerms, TileBlocks
from lite_cpu.kernels.tiles import BlockTensors, Rows, Window, load_columns

__all__ = ["Int8TileBlocks", "int8_blocks"]


@dataclass(frozen=True, slots=True)
class Int8TileBlocks:
    """Emitter of the tiles of a block: ``C = epilogue(A * B - z * sums of B's columns)``.

    With ``row_points`` each row of A has its own zero point.
    """

    tiles: TileBlocks
    left: LeftSide
    row_points: bool = False

    def block(
        self,
        tensors: BlockTensors,
        zero: Rows,
        groups: Number,
        rows: Val,
        columns: Val,
        b: Pointer,
        column_sums: Pointer,
    ) -> None:
        """Emit a whole block, see :meth:`.int8_tiles.Int8BlockEmitter.block`."""
        k = self.tiles.k
        point = None if self.row_points else self.left.zero_point(zero.start)

        def starts(column: Val, vectors: int, valid: Val | None) -> Sequence[Val]:
            totals = load_columns(k, column_sums[column], vectors, valid)
            return [-total if point is None else -(total * point) for total in totals]

        terms = RowTerms(zero, self.left.zero_point) if self.row_points else None
        self.tiles.block(tensors, groups, rows, columns, b, starts, terms)


def int8_blocks(
    k: Emitter,
    registers: MatrixTiles | None,
    left: LeftSide,
    epilogue: Chain,
    window: Window,
    *,
    blocked: bool,
    row_points: bool = False,
) -> Int8BlockEmitter | Int8TileBlocks:
    """Return the emitter of the products of a kernel.

    Args:
        k: the emitter.
        registers: matrix tiles; None multiplies in vector registers.
        left: the element types of A.
        epilogue: chain applied to each element before it is stored.
        window: layout of a row of A.
        blocked: for matrix tiles, see :class:`~.tile_blocks.TileBlocks`.
        row_points: each row of A has its own zero point.
    """
    if registers is None:
        return Int8BlockEmitter(k, left, epilogue, window, row_points)
    tiles = TileBlocks(k, registers, (left.form.left, left.form.right), epilogue, window, blocked)
    return Int8TileBlocks(tiles, left, row_points)
