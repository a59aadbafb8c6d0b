"""Depthwise convolution on channels-last images: every channel has its own filter.

Vectors hold channels, and the register tile is a rectangle of output pixels: an element of the input is loaded once
for all pixels of the tile whose windows contain it, and an element of the weights once for the whole tile.

The input is not padded. Rows of the input outside the image are skipped by a branch for each row of the window. Columns
outside it are under the first and the last tile of a row only, and the code of these tiles leaves them out
(:class:`Edges`). In an image of another geometry, tiles at the border check each input column when they run.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lite_compiler.tracing.numbers import at_most, largest
from lite_core.ir import DType
from lite_cpu.aligned import LINE_BYTES
from lite_cpu.chains import Chain, Operand
from lite_cpu.emitter import Emitter, Params, Pointer, Pointers, Val, Variable
from lite_cpu.kernels.base import Kernel, Products

__all__ = ["Axis", "Depthwise", "DepthwiseShape", "Edges", "Plane", "pack_depthwise"]

Array = np.ndarray[Any, Any]
F32 = DType.FLOAT32

#: Order of the parameters; then follow the (batch, row, pixel) strides of each epilogue operand.
PARAMETERS = (
    "batches", "rows", "columns", "channels",
    "x_rows", "x_columns", "x_batch", "x_row", "x_pixel",
    "y_batch", "y_row", "y_pixel",
    "top", "left", "window_rows", "row_stride", "row_dilation",
    "channel_block",
)  # fmt: skip


def pack_depthwise(weights: Array, bias: Array | None, lanes: int) -> Array:
    """Pack bias and weights in the order in which the kernel reads them.

    Args:
        weights: [channels, 1, height, width], floats of 32 or 16 bits.
        bias: [channels], or None for zeros.
        lanes: elements of a vector register.

    Returns:
        [vectors, 1 + height * width, lanes]: for each vector of channels the bias, then the weights of each tap of the
        window. The last vector ends at the last channel, so it overlaps the one before it if ``channels`` is not a
        multiple of ``lanes``. If there are fewer channels than lanes, zeros follow them.
    """
    channels = weights.shape[0]
    rows = np.zeros((1 + weights[0].size, max(channels, lanes)), np.float32)
    rows[1:, :channels] = weights.reshape(channels, -1).T
    if bias is not None:
        rows[0, :channels] = bias
    starts = [min(start, rows.shape[1] - lanes) for start in range(0, channels, lanes)]
    return np.stack([rows[:, start : start + lanes] for start in starts])


@dataclass(frozen=True, slots=True)
class DepthwiseShape:
    """Sizes, strides (in elements) and padding of one convolution; see :data:`PARAMETERS`.

    ``rows`` and ``columns`` are sizes of the output, ``x_rows`` and ``x_columns`` of the input. A work item
    computes ``channel_block`` channels: whole vectors, or all channels.
    """

    batches: int
    rows: int
    columns: int
    channels: int
    x_rows: int
    x_columns: int
    x_batch: int
    x_row: int
    x_pixel: int
    y_batch: int
    y_row: int
    y_pixel: int
    top: int
    left: int
    window_rows: int
    row_stride: int
    row_dilation: int
    channel_block: int

    def params(self, operands: Sequence[tuple[int, int, int]]) -> list[int]:
        return [getattr(self, n) for n in PARAMETERS] + [stride for strides in operands for stride in strides]


@dataclass(frozen=True, slots=True)
class _InputLine:
    """A row (or column) of the input under a tile; ``uses`` lists (output of the tile, tap) pairs that need it."""

    offset: int
    uses: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """Static geometry along one axis of the image; ``tile`` is the number of outputs computed together."""

    window: int
    stride: int
    dilation: int
    tile: int

    def input_lines(self) -> list[_InputLine]:
        """Return the rows (or columns) of the input under a tile, in ascending order."""
        uses: dict[int, list[tuple[int, int]]] = {}
        for output in range(self.tile):
            for tap in range(self.window):
                uses.setdefault(output * self.stride + tap * self.dilation, []).append((output, tap))
        return [_InputLine(offset, tuple(uses[offset])) for offset in sorted(uses)]

    @property
    def reach(self) -> int:
        """Offset of the last row (or column) of the input under a tile."""
        return (self.tile - 1) * self.stride + (self.window - 1) * self.dilation


@dataclass(frozen=True, slots=True)
class Edges:
    """The columns of the input under the first and the last tile of a row that are outside the image.

    Under no other tile is there such a column. All tiles have full width: the last one ends at the last column of the
    output, the one before it where the last one begins, and so on; the first two may overlap.

    Attributes:
        before: number of columns left of the image under the first tile.
        after: number of columns right of the image under the last tile.
        only: the first tile is the last one.
    """

    before: int
    after: int
    only: bool

    @staticmethod
    def numbers(across: Axis, left: int, columns: int, x_columns: int) -> tuple[int, int, int, int]:
        """Return 1 if an output of ``columns`` columns has edges, else 0: other tiles leave the image, too.

        The edges follow: ``before``, ``after`` and ``only``, as integers.

        Args:
            across: geometry along a row.
            left: columns of padding left of the image.
            columns: columns of the output.
            x_columns: columns of the input.
        """
        others = (columns - 1) // across.tile  # the tiles besides the first one; the last one ends at the last column
        second, last = columns - others * across.tile, at_most(1, others, columns - across.tile, 0)
        last_but_one = at_most(2, others, columns - 2 * across.tile, 0)

        def before(start: int) -> int:
            return largest(0, left - start * across.stride)

        def after(start: int) -> int:
            return largest(0, start * across.stride - left + across.reach + 1 - x_columns)

        # The second tile is the next one to leave the image on the left, the last but one on the right.
        leave = at_most(1, others, before(second) + after(last_but_one), 0)
        has_edges = at_most(across.tile, columns, at_most(leave, 0, 1, 0), 0)
        return has_edges, before(0), after(last), at_most(others, 0, 1, 0)

    @classmethod
    def of(cls, across: Axis, left: int, columns: int, x_columns: int) -> Edges | None:
        """Return the edges, or None if there are none; see :meth:`numbers`."""
        has_edges, before, after, only = cls.numbers(across, left, columns, x_columns)
        return cls(before, after, only=bool(only)) if has_edges else None


@dataclass(frozen=True, slots=True)
class Plane:
    """One image: addresses of its first pixel in each tensor, with the row and pixel strides of epilogue operands."""

    x: Pointer
    weights: Pointer
    y: Pointer
    operands: tuple[tuple[Pointer, Val, Val], ...]


@dataclass(frozen=True)
class Depthwise(Kernel):
    """Depthwise convolution.

    Pointers: input, packed bias and weights, output, then the operands of the epilogue. All is summed in float32.

    A work item is a row of tiles over a block of channels; the blocks of a row follow each other.

    Attributes:
        across: geometry along a row of the image.
        down: geometry along a column; None supports windows of any height, one row of output at a time.
        narrow: there are fewer channels than elements of a vector.
        epilogue: chain applied to each element before it is stored.
        edges: columns outside the image; None supports images of any width.
        ahead: each tile prefetches the input of the next one in its row. Pixels are then close together.
        image: element type of the input, a float of 32 or 16 bits.
    """

    optimize = "loops"  # hoisting invariants out of the small tiles saves 10 % of the time of some layers

    across: Axis
    down: Axis | None
    narrow: bool
    epilogue: Chain
    edges: Edges | None
    ahead: bool = False
    image: DType = F32

    @property
    def computes(self) -> Products:
        return Products("float32")

    @property
    def tile_rows(self) -> int:
        return self.down.tile if self.down else 1

    def items(self, shape: DepthwiseShape) -> int:
        return shape.batches * -(-shape.rows // self.tile_rows) * -(-shape.channels // shape.channel_block)

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            p = self.read_params(params)
            row_tiles = (p["rows"] + self.tile_rows - 1) / self.tile_rows
            channel_blocks = (p["channels"] + p["channel_block"] - 1) / p["channel_block"]
            with k.loop(begin, end) as item:
                block, rest = item % channel_blocks, item / channel_blocks
                row_tile, image = rest % row_tiles, rest / row_tiles
                y = pointers.tensor(2, self.epilogue.output)[image * p["y_batch"]]
                plane = self.plane(pointers, params, p, image, y, first_operand=3)
                channels = (block * p["channel_block"], k.minimum((block + 1) * p["channel_block"], p["channels"]))
                self.emit_row(k, p, plane, row_tile * self.tile_rows, p["rows"], channels)

    def read_params(self, params: Params) -> dict[str, Val]:
        return {name: params[i] for i, name in enumerate(PARAMETERS)}

    def plane(
        self, pointers: Pointers, params: Params, p: dict[str, Val], image: Val, y: Pointer, first_operand: int
    ) -> Plane:
        """Return image number ``image`` of the batch; ``y`` is the address of its output."""
        operands = []
        for i, operand in enumerate(self.epilogue.operands):
            batch, row, pixel = (params[len(PARAMETERS) + 3 * i + n] for n in range(3))
            operands.append((pointers.tensor(first_operand + i, operand.dtype)[image * batch], row, pixel))
        x = pointers.tensor(0, self.image)[image * p["x_batch"]]
        return Plane(x, pointers.tensor(1, F32), y, tuple(operands))

    def emit_row(
        self, k: Emitter, p: dict[str, Val], plane: Plane, row: Val, last_row: Val, channels: tuple[Val, Val]
    ) -> None:
        """Emit a row of tiles from output row ``row`` on. Rows from ``last_row`` on are not written."""
        across, edges, columns = self.across, self.edges, p["columns"]
        tile = partial(_Tile, k, self, p, plane, row, last_row)
        inner = partial(tile, inside=self._inside(0, 0))
        if edges is None:
            with k.loop(0, columns, across.tile) as column:
                x_column = column * across.stride - p["left"]
                whole = (x_column >= 0) & (x_column + across.reach < p["x_columns"]) & (column + across.tile <= columns)
                inside = [(x_column >= -o) & (x_column < p["x_columns"] - o) for o in self._offsets]
                exists = [column < columns - i for i in range(across.tile)]
                border = tile(column, inside, exists)
                k.if_else(whole, lambda: inner(column).emit(channels), lambda: border.emit(channels))
        elif edges.only:
            tile(k.index(0), self._inside(edges.before, edges.after)).emit(channels)
        else:
            second = columns - (columns - 1) / across.tile * across.tile
            if edges.before:
                tile(k.index(0), self._inside(edges.before, 0)).emit(channels)
            start = second if edges.before else second - across.tile
            stop = columns - across.tile if edges.after else columns
            with k.loop(start, stop, across.tile) as column:
                inner(column if edges.before else k.maximum(column, 0)).emit(channels)
            if edges.after:
                tile(columns - across.tile, self._inside(0, edges.after)).emit(channels)

    @property
    def _offsets(self) -> list[int]:
        return [line.offset for line in self.across.input_lines()]

    def _inside(self, before: int, after: int) -> list[bool]:
        """Return which columns of the input under a tile are inside the image."""
        return [before <= offset <= self.across.reach - after for offset in self._offsets]


@dataclass(slots=True)
class _Tile:
    """Emitter of one tile.

    Attributes:
        k: the emitter.
        kernel: the kernel.
        p: the parameters of the shape, by name.
        plane: the image.
        row: first row of the output.
        last_row: rows of the output from this one on are not written.
        column: first column of the output.
        inside: for each column of the input under the tile, True if it is inside the image, or a condition.
        exists: conditions for the columns of the output that are written; None for all.
    """

    k: Emitter
    kernel: Depthwise
    p: dict[str, Val]
    plane: Plane
    row: Val
    last_row: Val
    column: Val
    inside: Sequence[bool | Val]
    exists: Sequence[Val] | None = None

    def emit(self, channels: tuple[Val, Val]) -> None:
        """Emit all channels of a range, a vector at a time."""
        k, kernel, p, lanes = self.k, self.kernel, self.p, self.k.machine.lanes()
        first, last = channels
        x_row = self.row * p["row_stride"] - p["top"]
        start = self.plane.x[x_row * p["x_row"] + (self.column * kernel.across.stride - p["left"]) * p["x_pixel"]]
        window_rows = k.index(kernel.down.window) if kernel.down else p["window_rows"]
        packed = window_rows * kernel.across.window + 1

        def every_vector(*, is_whole: bool) -> None:
            with k.loop(first, last, lanes) as c:
                emit_vector(c, is_whole)

        def emit_vector(c: Val, is_whole: bool) -> None:
            # The last vector overlaps the one before it, so that it needs no mask: some channels are computed twice.
            # NOTE: therefore the output must not reuse the memory of an operand, whose elements are read twice, too.
            channel = c if kernel.narrow else k.minimum(c, p["channels"] - lanes)
            weights = self.plane.weights[c * packed]
            bias, taps = weights.load(lanes), weights[lanes]
            sums = [[k.variable(bias) for _ in range(kernel.across.tile)] for _ in range(kernel.tile_rows)]
            if kernel.down:
                new_columns = kernel.across.tile * kernel.across.stride
                ahead = start[p["x_pixel"] * new_columns][c * new_columns] if kernel.ahead else None
                self._sum_rows(kernel.down, x_row, start[channel], taps, sums, ahead, is_whole)
            else:
                self._sum_window(x_row, start[channel], taps, sums[0])
            for row, row_sums in enumerate(sums):
                with self._only_if(self.row + row < self.last_row if row and not is_whole else True):
                    for column, total in enumerate(row_sums):
                        with self._only_if(self.exists[column] if self.exists else True):
                            self._store(row, column, channel, total.get())

        down = kernel.down
        if down is None or k.machine.memory_operands:
            every_vector(is_whole=False)
        else:
            # Without conditions in the loop, LLVM keeps all weights in registers.
            is_inside = (x_row >= 0) & (x_row < p["x_rows"] - down.reach) & (self.row + down.tile <= self.last_row)
            k.if_else(is_inside, lambda: every_vector(is_whole=True), lambda: every_vector(is_whole=False))

    def _sum_rows(
        self,
        down: Axis,
        x_row: Val,
        x: Pointer,
        taps: Pointer,
        sums: list[list[Variable]],
        ahead: Pointer | None,
        is_whole: bool,
    ) -> None:
        """Process every row of the input under the tile once, for all rows of the tile that need it.

        ``ahead`` is the address of what is prefetched meanwhile of the first of these rows; None for nothing.
        ``is_whole``: all of these rows are inside the image.
        """
        step = self.k.machine.lanes() * self.kernel.across.window
        for line in down.input_lines():
            is_inside = (x_row >= -line.offset) & (x_row < self.p["x_rows"] - line.offset)
            with self._only_if(True if is_whole else is_inside):
                offset = self.p["x_row"] * line.offset
                # The other rows are under the tiles above, too, so they are in a nearer cache.
                if ahead is not None and line.offset > down.reach - down.tile * down.stride:
                    self._prefetch(ahead[offset])
                uses = [(sums[row], taps[step * tap]) for row, tap in line.uses]
                self._sum_row(x[offset], uses)

    def _prefetch(self, ahead: Pointer) -> None:
        """Prefetch a part of a row of the next tile, as long as one vector of each of its new pixels.

        The parts of all vectors of channels are the whole row: pixel by pixel, most lines would be prefetched twice.
        """
        across, lanes = self.kernel.across, self.k.machine.lanes()
        for element in range(0, lanes * across.tile * across.stride, LINE_BYTES // ahead.dtype.itemsize):
            ahead[element].prefetch()

    def _sum_window(self, x_row: Val, x: Pointer, taps: Pointer, sums: list[Variable]) -> None:
        """Compute a single row of output by a loop over the rows of the window that are inside the image."""
        k, p, step = self.k, self.p, self.k.machine.lanes() * self.kernel.across.window
        dilation = p["row_dilation"]
        first = k.maximum(0, (dilation - 1 - x_row) / dilation)
        stop = k.minimum(p["window_rows"], (p["x_rows"] - x_row + dilation - 1) / dilation)
        # Offsets that move with the row of the window: multiplied by it, they would be computed anew for every row.
        x_step = dilation * p["x_row"]
        x_at, taps_at = k.variable(first * x_step), k.variable(first * step)
        with k.loop(first, stop):
            self._sum_row(x[x_at.get()], [(sums, taps[taps_at.get()])])
            x_at.set(x_at.get() + x_step)
            taps_at.set(taps_at.get() + step)

    def _sum_row(self, x: Pointer, uses: Sequence[tuple[list[Variable], Pointer]]) -> None:
        """Multiply one row of the input and add it to rows of the tile; each is given with its row of weights."""
        k, lanes, across = self.k, self.k.machine.lanes(), self.kernel.across
        weights = [[taps[lanes * tap].load(lanes) for tap in range(across.window)] for _, taps in uses]
        at = 0
        for line, inside in zip(across.input_lines(), self.inside):
            if inside is not False:
                if k.machine.memory_operands:
                    # From pixel to pixel. With the distance of each pixel from the first one, LLVM loads elements so
                    # early that too few vector registers are left: a 5x5 window then takes up to 20 % longer (Zen 4,
                    # AVX2).
                    x, at = x[self.p["x_pixel"] * (line.offset - at)], line.offset
                    pixel = x
                else:  # a load adds a distance in bytes that is in a register
                    distance = self.p["x_pixel"] * (line.offset * x.dtype.itemsize)
                    pixel = x.cast(DType.UINT8)[distance].cast(x.dtype)
                with self._only_if(inside):
                    element = k.load_first(pixel, self._valid, lanes).to(F32)
                    for (sums, _), row_weights in zip(uses, weights):
                        for output, tap in line.uses:
                            sums[output].set(k.fma(element, row_weights[tap], sums[output].get()))

    def _store(self, row: int, column: int, channel: Val, value: Val) -> None:
        k, lanes = self.k, self.k.machine.lanes()

        def load(i: int, operand: Operand) -> Val:
            start, row_stride, pixel_stride = self.plane.operands[i]
            at = start[(self.row + row) * row_stride + (self.column + column) * pixel_stride]
            return at.load().splat(lanes) if operand.spread else k.load_first(at[channel], self._valid, lanes)

        at = (self.row + row) * self.p["y_row"] + (self.column + column) * self.p["y_pixel"] + channel
        k.store_first(self.plane.y[at], self.kernel.epilogue.emit(k, value, load), self._valid)

    @property
    def _valid(self) -> Val | None:
        """Number of valid lanes of a vector of channels; None for all."""
        return self.p["channels"] if self.kernel.narrow else None

    def _only_if(self, condition: bool | Val) -> AbstractContextManager[None]:
        return self.k.if_(condition) if isinstance(condition, Val) else nullcontext()
