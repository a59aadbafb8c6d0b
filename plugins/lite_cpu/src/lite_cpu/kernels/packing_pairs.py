"""Packing of a matrix of bfloat16 at run time into panels of pairs along the depth, as :mod:`.packing` does for floats.

The last pair of an odd depth has a zero.
"""

from __future__ import annotations

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Number, Pointer, Val
from lite_cpu.kernels.bfloat16_pairs import join_pairs
from lite_cpu.kernels.packing import Contiguous, Matrix, emit_panels
from lite_cpu.kernels.tiles import cover_columns

__all__ = ["emit_pair_panels"]


def emit_pair_panels(k: Emitter, b: Matrix, target: Pointer) -> None:
    """Store all panels of a matrix.

    Args:
        k: the emitter.
        b: the matrix, bfloat16. If its depth is contiguous, the depth and the other stride are even.
        target: the first panel, of pairs.
    """
    if b.contiguous is Contiguous.DEPTH:
        # Neighbours along the depth are pairs already, which are moved like floats.
        floats, pairs = b.start.cast(DType.FLOAT32), b.depth / 2
        whole = Matrix(floats, pairs, b.columns, b.depth_stride, b.column_stride / 2, b.contiguous)
        emit_panels(k, whole, target.cast(DType.FLOAT32), 0, b.columns)
        return
    lanes, steps = k.machine.lanes(), (b.depth + 1) / 2

    def panel(column: Val, vectors: int, valid: Val | None) -> None:
        def join(step: Val, v: int, second: bool) -> None:
            count = valid if v == vectors - 1 else None
            rows = [_load(k, b, step * 2 + i, column + v * lanes, count) for i in range(1 + second)]
            target[column * steps + (step * vectors + v) * lanes].store(join_pairs(*rows))

        with k.loop(0, b.depth / 2) as step:
            for v in range(vectors):
                join(step, v, True)
        with k.if_((b.depth % 2).ne(0)):
            for v in range(vectors):
                join(b.depth / 2, v, False)

    cover_columns(k, b.columns, panel)


def _load(k: Emitter, b: Matrix, depth: Number, column: Val, count: Val | None) -> Val:
    """Load a vector of columns, of which only ``count`` are inside the matrix."""
    lanes = k.machine.lanes()
    if b.contiguous is Contiguous.COLUMNS:
        return k.load_first(b.at(depth, column), count, lanes)
    elements = k.stack(b.start.dtype, lanes)
    with k.loop(0, lanes) as lane:
        position = column + (lane if count is None else k.minimum(count - 1, lane))
        elements[lane].store(b.at(depth, position).load())
    return elements.load(lanes)
