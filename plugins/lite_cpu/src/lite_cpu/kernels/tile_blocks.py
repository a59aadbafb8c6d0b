"""Products in matrix tiles, and the loops that cover a block with them.

Two by two tiles of sums, 32 rows and 32 columns, take 64 bytes of each row of A and of each column of B at a step: four
loads for four products, which last 16 cycles each. A tile of A is loaded from its rows in place, or from a copy
(:mod:`.tile_rows`). The panels of B are those of other products: a row of a tile is a group of 32 bits for each of 16
columns. The sums go through a buffer in the first-level cache to the epilogue.

Every tile has all of its rows and columns, so one configuration serves a kernel. A last tile of fewer rows overlaps the
one before it, or has rows behind the copy; only its own rows are stored. Columns are padded in the panels. If the last
groups of B are fewer than a tile has rows, a buffer has them with zeros behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.chains import Chain, Operand
from lite_cpu.emitter import Emitter, Number, Pointer, Val
from lite_cpu.kernels.matrix_tiles import ROW_BYTES, ROWS, MatrixTiles
from lite_cpu.kernels.tile_rows import TILE_BYTES, groups_of_row, steps_of_row
from lite_cpu.kernels.tiles import BlockTensors, Rows, Window, cover_columns

__all__ = ["BLOCK_ROWS", "ColumnStarts", "RowTerms", "TileBlocks"]

#: Rows of a block of tiles; columns of a tile of sums; rows of a tile of B.
BLOCK_ROWS, _COLUMNS, _GROUPS = 2 * ROWS, ROW_BYTES // 4, ROWS

#: The tiles: of sums, by rows and columns, of A and of B.
_SUMS, _A, _B = ((0, 1), (2, 3)), (4, 5), (6, 7)

#: The cache that the next panel is prefetched into, and its lines, as many as a step of a wide panel has.
_PANEL_CACHE, _LINE_BYTES = 2, 64
_STEP_LINES = 2 * TILE_BYTES // _LINE_BYTES

_BYTES = DType.UINT8

#: ``starts(column, vectors, valid)`` returns a vector of numbers for the columns of a panel, see
#: :func:`~lite_cpu.kernels.tiles.cover_columns`.
ColumnStarts = Callable[[Val, int, Val | None], Sequence[Val]]


@dataclass(frozen=True, slots=True)
class RowTerms:
    """A number for each row of A, ``factor`` of an element in memory; it multiplies the starts of the columns."""

    points: Rows
    factor: Callable[[Pointer], Val]


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a block of tiles.

    Attributes:
        group: its group of rows.
        row: its first row in the group.
        number: its number among the blocks of a panel.
        rows: rows of a group.
        count: rows of the block.
        vectors: tiles side by side.
        valid: valid columns of the last of them; None for all.
    """

    group: Val
    row: Val
    number: Val
    rows: Val
    count: Val
    vectors: int
    valid: Val | None


@dataclass(frozen=True, slots=True)
class _Ahead:
    """The part of the next panel that a block of tiles prefetches: ``lines`` cache lines at each step."""

    start: Pointer
    lines: Val


@dataclass(frozen=True, slots=True)
class _Buffers:
    """Memory on the stack: the starts of the columns, the last groups of B, and the sums of a block of tiles."""

    starts: Pointer
    last_groups: Pointer
    sums: Pointer


@dataclass(frozen=True, slots=True)
class _Panel:
    """A panel of B with what its blocks of tiles share.

    Attributes:
        weights: the panel, as bytes.
        tensors: A, C and the operands of the epilogue, from the panel's first column on.
        starts: vectors of numbers for the columns.
        terms: see :meth:`TileBlocks.block`.
        buffers: the memory.
    """

    weights: Pointer
    tensors: BlockTensors
    starts: Sequence[Val]
    terms: RowTerms | None
    buffers: _Buffers


@dataclass(frozen=True, slots=True)
class TileBlocks:
    """Emitter of the tiles of a block: ``C = epilogue(start + A * B)``.

    Attributes:
        k: the emitter.
        registers: the tiles, configured to be whole.
        types: the element types of A and B.
        epilogue: chain applied to each sum, int32 or float32.
        window: layout of a row of A that is not copied, in elements of A's pointer.
        blocked: A is a copy of :func:`~.tile_rows.copy_rows`. Otherwise :func:`~.tile_rows.can_stay_in_place` is true
            for the groups of rows, of which a block may have the last ones only.
    """

    k: Emitter
    registers: MatrixTiles
    types: tuple[DType, DType]
    epilogue: Chain
    window: Window
    blocked: bool

    def block(
        self,
        tensors: BlockTensors,
        groups: Number,
        rows: Val,
        columns: Val,
        b: Pointer,
        starts: ColumnStarts,
        terms: RowTerms | None = None,
    ) -> None:
        """Emit a whole block; the outer loop is over panels, and the blocks of tiles of a panel prefetch the next one.

        Args:
            tensors: A, C and operands from the first row and column of the block on.
            groups: number of groups of rows.
            rows: rows of a group.
            columns: columns of C from the start of ``tensors`` and ``b`` on.
            b: panels packed by :func:`~lite_cpu.dot_panels.pack_dots`; begins at a whole panel.
            starts: the number that the sums of each column begin with.
            terms: factors of these numbers for each row; by default 1.
        """
        k, weights, itemsize = self.k, b.cast(_BYTES), tensors.a.start.dtype.itemsize
        depth, steps = groups_of_row(self.window, itemsize), steps_of_row(self.window, itemsize)
        panel_bytes = depth * (2 * ROW_BYTES)
        buffers = _Buffers(*(k.stack_bytes(count * 2 * ROW_BYTES, ROW_BYTES) for count in (1, _GROUPS, BLOCK_ROWS)))
        all_rows = rows * groups if self.blocked else rows
        blocks_of_group = (all_rows + (BLOCK_ROWS - 1)) / BLOCK_ROWS
        blocks = blocks_of_group if self.blocked else blocks_of_group * groups
        # A single block of tiles reads a panel only once, as a stream, which prefetches of another would disturb.
        lines = (blocks > 1).select((blocks + (_STEP_LINES - 1)) / k.maximum(blocks, 1), 0)

        def panel(column: Val, vectors: int, valid: Val | None) -> None:
            of_columns = starts(column, vectors, valid)
            for v, start in enumerate(of_columns):
                buffers.starts[v * ROW_BYTES].cast(start.dtype).store(start)
            here = weights[column * (depth * 4)]
            if self.blocked:
                self._copy_last_groups(here, depth, vectors, buffers.last_groups)
            this = _Panel(here, tensors.at(0, 0, column), of_columns, terms, buffers)
            following = k.choose(column + 2 * _COLUMNS < columns, here[panel_bytes], weights)

            def block(group: Val, row: Val, number: Val, rest: Val) -> None:
                first = number * steps * lines * _LINE_BYTES
                ahead = _Ahead(following[first], (first < panel_bytes).select(lines, 0))
                place = _Place(group, row, number, rows, k.minimum(rest, BLOCK_ROWS), vectors, valid)
                k.if_else(
                    place.count > ROWS,
                    lambda: self._tiles(this, place, 2, ahead, wrap=isinstance(groups, Val)),
                    lambda: self._tiles(this, place, 1, ahead, wrap=isinstance(groups, Val)),
                )

            if self.blocked:
                with k.loop(0, all_rows, BLOCK_ROWS) as at:
                    group, row = (at / rows, at % rows) if isinstance(groups, Val) else (k.index(0), at)
                    block(group, row, at / BLOCK_ROWS, all_rows - at)
            else:
                with k.loop(0, groups) as group, k.loop(0, rows, BLOCK_ROWS) as row:
                    block(group, row, group * blocks_of_group + row / BLOCK_ROWS, rows - row)

        cover_columns(k, columns, panel)

    def _copy_last_groups(self, panel: Pointer, depth: Val, vectors: int, target: Pointer) -> None:
        """Copy the groups of a panel behind its last whole step, and zeros behind them."""
        k, line = self.k, vectors * ROW_BYTES
        rest = depth % _GROUPS
        source = panel[(depth - rest) * line]
        with k.loop(0, rest * line, ROW_BYTES) as at:
            target[at].store(source[at].load(ROW_BYTES))
        with k.loop(rest * line, _GROUPS * line, ROW_BYTES) as at:
            target[at].store(k.constant(0, _BYTES, ROW_BYTES))

    def _tiles(self, panel: _Panel, place: _Place, tall: int, ahead: _Ahead, *, wrap: bool) -> None:
        """Emit a block of ``tall`` tiles below one another. With ``wrap`` its rows may go on in the next groups."""
        k, t = self.k, self.registers
        if self.blocked:
            tops: Sequence[Number] = [0, ROWS][:tall]
        else:  # the last rows of a group: the tile that they end
            tops = [0, place.count - ROWS] if tall == 2 else [place.count - ROWS]
        columns = range(place.vectors)
        for row in range(tall):
            for v in columns:
                if panel.terms is None:
                    t.load(_SUMS[row][v], panel.buffers.starts[v * ROW_BYTES], 0)
                else:
                    t.zero(_SUMS[row][v])
        self._multiply(panel, place, tops, ahead)
        line = place.vectors * ROW_BYTES
        # In the buffer as in the matrix, tiles may overlap; there the first row is that of the first tile.
        for row, top in enumerate(tops):
            for v in columns:
                at = panel.buffers.sums[(k.index(top) if row else k.index(0)) * line + v * ROW_BYTES]
                t.store(_SUMS[row][v], at, line)
        first = k.index(0) if tall == 2 else -k.index(tops[0])
        self._finish(panel, place, panel.buffers.sums[first * line], wrap=wrap)

    def _multiply(self, panel: _Panel, place: _Place, tops: Sequence[Number], ahead: _Ahead) -> None:
        """Emit the products of a block of tiles; its tiles of A begin at ``tops``, counted from the block's row."""
        k, window, a = self.k, self.window, panel.tensors.a
        itemsize = a.start.dtype.itemsize
        if self.blocked:
            depth, steps = groups_of_row(window, itemsize), steps_of_row(window, itemsize)
            start = a.start.cast(_BYTES)[place.number * (2 * TILE_BYTES) * steps]
            tiles = [start[steps * (TILE_BYTES * number)] for number in range(len(tops))]
            whole = depth / _GROUPS
            self._loop(tiles, ROW_BYTES, TILE_BYTES, panel.weights, place.vectors, ahead, whole)
            with k.if_(whole < steps):
                last = [tile[whole * TILE_BYTES] for tile in tiles]
                self._step(last, ROW_BYTES, panel.buffers.last_groups, place.vectors)
            return
        steps = window.depth * itemsize / ROW_BYTES
        with k.loop(0, window.segments) as segment, k.loop(0, window.taps) as tap:
            run = a.at(place.group, place.row, segment * window.a_segment + tap * window.a_tap).start
            tiles = [run[a.row * top].cast(_BYTES) for top in tops]
            position = (segment * window.taps + tap) * steps
            here = _Ahead(ahead.start[position * ahead.lines * _LINE_BYTES], ahead.lines)
            weights = panel.weights[position * (place.vectors * TILE_BYTES)]
            self._loop(tiles, a.row * itemsize, ROW_BYTES, weights, place.vectors, here, steps)

    def _loop(
        self, a: Sequence[Pointer], stride: Number, a_step: int, b: Pointer, vectors: int, ahead: _Ahead, steps: Val
    ) -> None:
        """Emit the loop along the depth; ``stride`` bytes are between rows of A, ``a_step`` between its steps."""
        moving: list[tuple[Pointer, Number]] = [
            (b, vectors * TILE_BYTES),
            (ahead.start, ahead.lines * _LINE_BYTES),
            *((tile, a_step) for tile in a),
        ]
        with self.k.walk(steps, *moving) as (weights, fetched, *tiles):
            self._step(tiles, stride, weights, vectors)
            with self.k.loop(0, ahead.lines) as number:
                fetched[number * _LINE_BYTES].prefetch(level=_PANEL_CACHE)

    def _step(self, a: Sequence[Pointer], stride: Number, b: Pointer, vectors: int) -> None:
        t = self.registers
        for v in range(vectors):
            t.load(_B[v], b[v * ROW_BYTES], vectors * ROW_BYTES)
        for row, tile in enumerate(a):
            t.load(_A[row], tile, stride)
            for v in range(vectors):
                t.dot(self.types, _SUMS[row][v], _A[row], _B[v])

    def _finish(self, panel: _Panel, place: _Place, sums: Pointer, *, wrap: bool) -> None:
        """Store ``C = epilogue(sums)`` of the rows of a block of tiles."""
        k, tensors = self.k, panel.tensors.at(place.group, place.row)
        dtype = DType.FLOAT32 if self.types[0].is_floating else DType.INT32
        outside = [tensors.c, *tensors.operands]
        if panel.terms is not None:
            outside.append(panel.terms.points.at(place.group, place.row))
        offsets = [k.variable(k.index(0)) for _ in outside]
        left = k.variable(place.rows - place.row)
        # From behind the last row of a group to the first one of the next.
        jumps = [rows.group - rows.row * place.rows for rows in outside] if wrap else []
        with k.walk(place.count, (sums, place.vectors * ROW_BYTES)) as (row_of_sums,):
            starts = [rows.start[offset.get()] for rows, offset in zip(outside, offsets)]
            for v in range(place.vectors):
                partial = place.valid if v == place.vectors - 1 else None

                def load(i: int, operand: Operand, v: int = v, partial: Val | None = partial) -> Val:
                    start = starts[1 + i]
                    if operand.spread:
                        return start.load().splat(_COLUMNS)
                    return k.load_first(start[v * _COLUMNS], partial, _COLUMNS)

                total = row_of_sums[v * ROW_BYTES].cast(dtype).load(_COLUMNS)
                if panel.terms is not None:
                    total = total + panel.starts[v] * panel.terms.factor(starts[-1])
                result = self.epilogue.emit(k, total, load)
                k.store_first(starts[0][v * _COLUMNS], result, partial)
            for rows, offset in zip(outside, offsets):
                offset.set(offset.get() + rows.row)
            if wrap:
                left.set(left.get() - 1)
                ends = left.get().eq(0)
                left.set(ends.select(place.rows, left.get()))
                for jump, offset in zip(jumps, offsets):
                    offset.set(offset.get() + ends.select(jump, 0))
