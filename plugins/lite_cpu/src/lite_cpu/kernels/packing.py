"""Packing of a matrix into panels at run time: the second operand of a product that is not a constant.

The panels are those of :func:`~lite_cpu.kernels.tiles.pack_panels`. The last vector is padded by repeating the last
column of the matrix: nothing outside the matrix is read, and products with padding are never stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Number, Pointer, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.tiles import gemm_tile
from lite_cpu.kernels.transpose import transpose_registers

__all__ = ["Contiguous", "Matrix", "Pack", "emit_panels"]

F32 = DType.FLOAT32


class Contiguous(str, Enum):
    """The contiguous dimension of a matrix."""

    COLUMNS = "columns"
    DEPTH = "depth"
    NEITHER = "neither"

    @staticmethod
    def of(depth_stride: int, column_stride: int) -> Contiguous:
        """Return the contiguous dimension of a matrix with these strides."""
        if column_stride == 1:
            return Contiguous.COLUMNS
        return Contiguous.DEPTH if depth_stride == 1 else Contiguous.NEITHER


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix [depth, columns] in memory, with the strides of both dimensions in elements."""

    start: Pointer
    depth: Val
    columns: Val
    depth_stride: Val
    column_stride: Val
    contiguous: Contiguous

    def at(self, depth: Number, column: Number) -> Pointer:
        return self.start[self.depth_stride * depth + self.column_stride * column]


def emit_panels(k: Emitter, b: Matrix, target: Pointer, first: Number, stop: Val) -> None:
    """Store the panels of columns [first, stop); a panel begins at ``first``, and at ``stop`` unless it is the end.

    The elements of the matrix are converted to those of ``target``.
    """
    lanes, (_, vectors) = k.machine.lanes(), gemm_tile(k.machine)
    width = lanes * vectors
    emit = {
        Contiguous.COLUMNS: _copy_rows,
        Contiguous.DEPTH: _transpose_blocks,
        Contiguous.NEITHER: _copy_elements,
    }[b.contiguous]
    whole = first + (stop - first) / width * width
    with k.loop(first, whole, width) as column:
        emit(k, b, target[column * b.depth], column, vectors, None)
    for narrow in range(1, vectors + 1):
        rest = stop - whole
        with k.if_((rest > (narrow - 1) * lanes) & (rest <= narrow * lanes)):
            emit(k, b, target[whole * b.depth], whole, narrow, rest - (narrow - 1) * lanes)


def _copy_rows(k: Emitter, b: Matrix, panel: Pointer, column: Val, vectors: int, valid: Val | None) -> None:
    """Pack contiguous columns by copying vectors. ``valid``: number of elements of the last vector, None for all."""
    lanes = k.machine.lanes()
    with k.loop(0, b.depth) as d:
        for v in range(vectors):
            row = k.load_first(b.at(d, column + v * lanes), valid if v == vectors - 1 else None, lanes)
            panel[d * (vectors * lanes) + v * lanes].store(row)


def _transpose_blocks(k: Emitter, b: Matrix, panel: Pointer, column: Val, vectors: int, valid: Val | None) -> None:
    """Pack a contiguous depth by transposing square blocks in registers; the last block overlaps the one before it."""
    lanes = k.machine.lanes()
    width = vectors * lanes

    def block(v: int, d: Val, count: Val | None) -> None:
        last = None if valid is None or v < vectors - 1 else valid - 1
        columns = [column + (v * lanes + (i if last is None else k.minimum(last, i))) for i in range(lanes)]
        rows = transpose_registers([k.load_first(b.at(d, c), count, lanes).to(panel.dtype) for c in columns])
        for i, row in enumerate(rows):
            if count is None:
                panel[(d + i) * width + v * lanes].store(row)
            else:
                with k.if_(count > i):
                    panel[(d + i) * width + v * lanes].store(row)

    def all_blocks() -> None:
        with k.loop(0, b.depth, lanes) as d:
            for v in range(vectors):
                block(v, k.minimum(d, b.depth - lanes), None)

    def only_block() -> None:
        for v in range(vectors):
            block(v, k.index(0), b.depth)

    k.if_else(b.depth >= lanes, all_blocks, only_block)


def _copy_elements(k: Emitter, b: Matrix, panel: Pointer, column: Val, vectors: int, valid: Val | None) -> None:
    width = vectors * k.machine.lanes()
    last = b.columns - 1 - column
    with k.loop(0, b.depth) as d, k.loop(0, width) as c:
        panel[d * width + c].store(b.at(d, column + k.minimum(c, last)).load())


@dataclass(frozen=True)
class Pack(Kernel):
    """Pack matrices. Pointers: the matrices, the panels. A work item is ``column_block`` columns of one matrix.

    Attributes:
        contiguous: the contiguous dimension of the matrices.
        element: their element type, float32 also for others of 32 bits.
    """

    contiguous: Contiguous
    element: DType = F32

    @staticmethod
    def params(
        depth: int, columns: int, strides: tuple[int, int, int], panel_batch: int, column_block: int
    ) -> list[int]:
        """Return the parameters; ``strides`` are of batch, depth and columns, ``panel_batch`` is that of the panels."""
        return [depth, columns, *strides, panel_batch, column_block]

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            depth, columns, batch_stride, depth_stride, column_stride, panel_batch, column_block = (
                params[i] for i in range(7)
            )
            source, target = pointers.tensor(0, self.element), pointers.tensor(1, self.element)
            blocks = (columns + column_block - 1) / column_block
            with k.loop(begin, end) as item:
                batch, first = item / blocks, item % blocks * column_block
                b = Matrix(source[batch * batch_stride], depth, columns, depth_stride, column_stride, self.contiguous)
                emit_panels(k, b, target[batch * panel_batch], first, k.minimum(first + column_block, columns))
