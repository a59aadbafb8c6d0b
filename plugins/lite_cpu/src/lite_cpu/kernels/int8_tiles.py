"""The register tile of an 8-bit matrix product, and the loops that cover a block with it.

It works like :mod:`.tiles`, with int32 sums. The zero point of the left matrix is subtracted by means of the sums of
the columns, ``sum (a - z) b = sum a b - z sum b``; that of the right one is subtracted before packing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.chains import Chain
from lite_cpu.emitter import Emitter, Number, Pointer, Val
from lite_cpu.kernels.depth_loops import Fetch, Sums, multiply_by_lane
from lite_cpu.kernels.integer_dots import DotForm, broadcast_group, emit_dots, emit_lane_dots
from lite_cpu.kernels.small_matrices import blocks_of_rows, multiply_bytes, multiply_matrices, rows_of_blocks
from lite_cpu.kernels.tiles import (
    Ahead,
    BlockTensors,
    PanelShares,
    Rows,
    Window,
    cover_columns,
    cover_rows,
    gemm_tile,
    load_columns,
    store_tile,
)

__all__ = ["Int8BlockEmitter", "LeftSide", "convert_run"]

I32 = DType.INT32

#: Exclusive or with this bit adds 128 to a signed byte as it becomes unsigned, and the reverse.
_SIGN = 0x80


@dataclass(frozen=True, slots=True)
class LeftSide:
    """Element types of the left matrix: in memory, and in the multiplication."""

    stored: DType
    form: DotForm

    @property
    def is_ready(self) -> bool:
        """True if elements can be multiplied without conversion."""
        return self.stored is self.form.left

    @property
    def shift(self) -> int:
        """The number that the conversion adds to an element, and therefore to its zero point."""
        if self.is_ready or self.form.left is DType.INT16:
            return 0
        return 128 if self.form.left is DType.UINT8 else -128

    def convert(self, x: Val) -> Val:
        """Convert elements to the type that is multiplied."""
        if self.shift:
            return Val(x.k, (x ^ x.k.constant(_SIGN, x.dtype, x.lanes)).ir, self.form.left, x.lanes)
        return x.to(self.form.left)

    def zero_point(self, pointer: Pointer) -> Val:
        """Load the zero point of stored elements and return the zero point of converted elements, int32."""
        return pointer.load().to(I32) + self.shift


def convert_run(k: Emitter, left: LeftSide, source: Pointer, target: Pointer, length: Val) -> None:
    """Convert ``length`` contiguous elements. The last vector overlaps the one before it."""
    lanes = k.machine.vector_bytes // left.form.left.itemsize

    def copy(index: Val, count: int) -> None:
        target[index].store(left.convert(source[index].load(count)))

    def long() -> None:
        with k.loop(0, length, lanes) as index:
            copy(k.minimum(index, length - lanes), lanes)

    k.if_else(length >= lanes, long, lambda: k.span(length, 8, copy))


@dataclass(frozen=True, slots=True)
class Int8BlockEmitter:
    """Emitter of the tiles of a block: ``C = epilogue(A * B - z * sums of B's columns)``.

    With ``row_points`` each row of A has its own zero point.
    """

    k: Emitter
    left: LeftSide
    epilogue: Chain
    window: Window
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
        """Emit a whole block; the outer loop is over panels, so that a panel stays in the first-level cache.

        Args:
            tensors: A, C and operands from the first row and column of the block on; A has converted elements.
            zero: the zero points of A's rows, not converted.
            groups: number of groups of rows.
            rows: rows of a group.
            columns: columns of C from the start of ``tensors``, ``b`` and ``column_sums`` on.
            b: panels packed by :func:`~lite_cpu.dot_panels.pack_dots`; begins at a whole panel.
            column_sums: one int32 for each column.
        """
        k, form = self.k, self.left.form
        steps = self.window.segments * self.window.taps * self._steps
        total, width = steps * form.group, gemm_tile(k.machine)[1] * k.machine.lanes()
        shares = PanelShares.of(k, groups, rows, steps, total * width)

        def panel(column: Val, vectors: int, valid: Val | None) -> None:
            here, weights, totals = tensors.at(0, 0, column), b[column * total], column_sums[column]

            next_panel = k.choose(column + width < columns, weights[total * width], b)

            def tile(group: Val, row: Val, count: int) -> None:
                ahead = shares.ahead(next_panel, group, row)
                self._tile(here.at(group, row), zero.at(group, row), weights, totals, count, vectors, valid, ahead)

            cover_rows(k, groups, rows, tile)

        cover_columns(k, columns, panel)

    @property
    def _steps(self) -> Val:
        group = self.left.form.group
        return (self.window.depth + (group - 1)) / group

    def _tile(
        self,
        tensors: BlockTensors,
        zero: Rows,
        b: Pointer,
        column_sums: Pointer,
        rows: int,
        vectors: int,
        valid: Val | None,
        ahead: Ahead,
    ) -> None:
        k, window, form, lanes = self.k, self.window, self.left.form, self.k.machine.lanes()
        elements = lanes * form.group
        of_columns = load_columns(k, column_sums, vectors, valid)
        points = [self.left.zero_point(zero.at(0, r).start) for r in range(rows if self.row_points else 1)]
        starts = [[-(total * point) for total in of_columns] for point in points]
        first = [starts[row % len(starts)] for row in range(rows)]
        sums = [[k.variable(start) for start in row] for row in (blocks_of_rows(first) if form.matrices else first)]
        with k.loop(0, window.segments) as segment, k.loop(0, window.taps) as tap:
            a = tensors.a.start[segment * window.a_segment + tap * window.a_tap]
            position = (segment * window.taps + tap) * self._steps
            panel, rows_of_a = b[position * (vectors * elements)], [a[tensors.a.row * row] for row in range(rows)]
            # NOTE: the last group may extend beyond the run; the weights there are zero.
            prefetched = ahead.fetch(position)
            if form.matrices:
                multiply_matrices(k, rows_of_a, panel, self._steps, sums, [prefetched], multiply_bytes)
            elif k.machine.multiply_by_lane:
                multiply_by_lane(
                    k,
                    rows_of_a,
                    panel,
                    self._steps,
                    [sums],
                    [prefetched],
                    lambda x, number, weights, total: emit_lane_dots(k, form, total, x, number, weights),
                    group=form.group,
                )
            else:
                self._multiply_by_broadcast(rows_of_a, panel, sums, prefetched)
        if form.matrices:
            totals = rows_of_blocks([[total.get() for total in row] for row in sums], rows)
            sums = [[k.variable(total) for total in row] for row in totals]
        store_tile(k, self.epilogue, tensors, sums, valid)

    def _multiply_by_broadcast(self, rows_of_a: Sequence[Pointer], panel: Pointer, sums: Sums, ahead: Fetch) -> None:
        k, form, lanes, vectors = self.k, self.left.form, self.k.machine.lanes(), len(sums[0])
        elements = lanes * form.group
        # Offsets that move with the depth: multiplied by it, they would be computed anew at every step.
        a_at, b_at, ahead_at = k.variable(k.index(0)), k.variable(k.index(0)), k.variable(k.index(ahead.at))
        with k.loop(0, self._steps):
            weights = [panel[b_at.get() + v * elements].load(elements) for v in range(vectors)]
            ahead.start[ahead_at.get()].prefetch(level=ahead.level)
            for row, totals in zip(rows_of_a, sums):
                x = broadcast_group(row[a_at.get()], form, lanes)
                for total, weight in zip(totals, weights):
                    total.set(emit_dots(k, form, total.get(), x, weight))
            for at, step in ((a_at, form.group), (b_at, vectors * elements), (ahead_at, ahead.step)):
                at.set(at.get() + step)
