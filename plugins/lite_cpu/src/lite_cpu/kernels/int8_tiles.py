"""The register tile of an 8-bit matrix product, and the loops that cover a block with it.

As :mod:`.tiles`, with int32 sums. The zero point of the left matrix is taken out of the finished sums,
``sum (a - z) b = sum a b - z sum b``, by the sums of the columns; that of the right one is taken off before packing.
"""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.chains import Chain
from lite_cpu.emitter import Emitter, Number, Pointer, Val
from lite_cpu.kernels.integer_dots import DotForm, broadcast_group, emit_dots
from lite_cpu.kernels.tiles import Place, Rows, Window, cover_columns, cover_rows, load_columns, store_tile

__all__ = ["Int8BlockEmitter", "LeftSide", "convert_run"]

I32 = DType.INT32

#: What turns a signed byte into an unsigned one that is greater by 128, and back.
_SIGN = 0x80


@dataclass(frozen=True, slots=True)
class LeftSide:
    """The left matrix: its elements as the model has them, and as they are multiplied."""

    stored: DType
    form: DotForm

    @property
    def is_ready(self) -> bool:
        """Elements can be multiplied where they are."""
        return self.stored is self.form.left

    @property
    def shift(self) -> int:
        """What is added to an element, and so to its zero point."""
        if self.is_ready or self.form.left is DType.INT16:
            return 0
        return 128 if self.form.left is DType.UINT8 else -128

    def convert(self, x: Val) -> Val:
        """Elements as they are multiplied."""
        if self.shift:
            return Val(x.k, (x ^ x.k.constant(_SIGN, x.dtype, x.lanes)).ir, self.form.left, x.lanes)
        return x.to(self.form.left)

    def zero_point(self, pointer: Pointer) -> Val:
        """The zero point that belongs to converted elements, int32."""
        return pointer.load().to(I32) + self.shift


def convert_run(k: Emitter, left: LeftSide, source: Pointer, target: Pointer, length: Val) -> None:
    """Convert ``length`` neighbouring elements. The last vector overlaps the one before it."""
    lanes = k.machine.vector_bytes // left.form.left.itemsize

    def copy(index: Val, count: int) -> None:
        target[index].store(left.convert(source[index].load(count)))

    def long() -> None:
        with k.loop(0, length, lanes) as index:
            copy(k.minimum(index, length - lanes), lanes)

    k.if_else(length >= lanes, long, lambda: k.span(length, 8, copy))


@dataclass(frozen=True, slots=True)
class Int8BlockEmitter:
    """Emits the tiles of a block: ``C = epilogue(A * B - z * sums of B's columns)``.

    ``row_points`` says that each row of A has a zero point of its own.
    """

    k: Emitter
    left: LeftSide
    epilogue: Chain
    window: Window
    row_points: bool = False

    def block(
        self, place: Place, zero: Rows, groups: Number, rows: Val, columns: Val, b: Pointer, column_sums: Pointer
    ) -> None:
        """All of a block: panels outside, so that one stays in the first-level cache.

        Args:
            place: the first row and column of the block; ``place.a`` has converted elements.
            zero: the zero points of A's rows, as the model has them.
            groups: groups of rows; each has ``rows``.
            rows: rows of a group.
            columns: of C, from where ``place``, ``b`` and ``column_sums`` begin.
            b: packed by :func:`~lite_cpu.kernels.integer_dots.pack_dots`; begins at a whole panel.
            column_sums: one int32 for each column.
        """
        k, form = self.k, self.left.form
        total = self.window.segments * self.window.taps * self._steps * form.group

        def panel(column: Val, vectors: int, valid: Val | None) -> None:
            here, weights, totals = place.at(0, 0, column), b[column * total], column_sums[column]

            def tile(group: Val, row: Val, count: int) -> None:
                self._tile(here.at(group, row), zero.at(group, row), weights, totals, count, vectors, valid)

            cover_rows(k, groups, rows, tile)

        cover_columns(k, columns, panel)

    @property
    def _steps(self) -> Val:
        group = self.left.form.group
        return (self.window.depth + (group - 1)) / group

    def _tile(
        self, place: Place, zero: Rows, b: Pointer, column_sums: Pointer, rows: int, vectors: int, valid: Val | None
    ) -> None:
        k, window, form, lanes = self.k, self.window, self.left.form, self.k.machine.lanes()
        elements = lanes * form.group
        of_columns = load_columns(k, column_sums, vectors, valid)
        points = [self.left.zero_point(zero.at(0, r).start) for r in range(rows if self.row_points else 1)]
        starts = [[-(total * point) for total in of_columns] for point in points]
        sums = [[k.variable(start) for start in starts[row % len(starts)]] for row in range(rows)]
        with k.loop(0, window.segments) as segment, k.loop(0, window.taps) as tap:
            a = place.a.start[segment * window.a_segment + tap * window.a_tap]
            panel = b[(segment * window.taps + tap) * self._steps * (vectors * elements)]
            with k.loop(0, self._steps) as step:
                weights = [panel[(step * vectors + v) * elements].load(elements) for v in range(vectors)]
                for row in range(rows):
                    # NOTE: the last group may reach beyond the run; the weights there are zero.
                    x = broadcast_group(a[place.a.row * row + step * form.group], form, lanes)
                    for v in range(vectors):
                        sums[row][v].set(emit_dots(k, form, sums[row][v].get(), x, weights[v]))
        store_tile(k, self.epilogue, place, sums, valid)
