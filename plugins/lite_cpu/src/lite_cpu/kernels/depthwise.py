"""Depthwise convolution on channels-last images: every channel has its own filter.

Vectors hold channels, and the register tile is a rectangle of output pixels: an element of the input is loaded once
for all pixels of the tile whose windows contain it, and an element of the weights once for the whole tile. The input
is not padded: tiles at the border check each input pixel, the others do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core.ir import DType
from lite_cpu.chains import Chain, Operand
from lite_cpu.emitter import Emitter, Params, Pointer, Pointers, Val, Variable
from lite_cpu.kernels.base import Kernel

__all__ = ["Axis", "Depthwise", "DepthwiseShape", "Plane", "pack_depthwise"]

Array = np.ndarray[Any, Any]
F32 = DType.FLOAT32

#: Order of the parameters; then follow the (batch, row, pixel) strides of each epilogue operand.
PARAMETERS = (
    "batches", "rows", "columns", "channels",
    "x_rows", "x_columns", "x_batch", "x_row", "x_pixel",
    "y_batch", "y_row", "y_pixel",
    "top", "left", "window_rows", "row_stride", "row_dilation",
    "tap", "channel_block",
)  # fmt: skip


def pack_depthwise(weights: Array, bias: Array | None, lanes: int) -> Array:
    """Pack bias and weights in the order in which the kernel reads them.

    Args:
        weights: [channels, 1, height, width], float32.
        bias: [channels], or None for zeros.
        lanes: elements of a vector register.

    Returns:
        [1 + height * width, n]: the bias, then a row for each tap of the window. ``n`` is the number of channels,
        padded with zeros to at least one vector.
    """
    channels = weights.shape[0]
    taps = weights.reshape(channels, -1).T
    packed = np.zeros((1 + len(taps), max(channels, lanes)), np.float32)
    packed[1:, :channels] = taps
    if bias is not None:
        packed[0, :channels] = bias
    return packed


@dataclass(frozen=True, slots=True)
class DepthwiseShape:
    """Sizes, strides (in elements) and padding of one convolution; see :data:`PARAMETERS`.

    ``rows`` and ``columns`` are sizes of the output, ``x_rows`` and ``x_columns`` of the input; ``tap`` is the length
    of a row of the packed weights. A work item computes ``channel_block`` channels: whole vectors, or all channels.
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
    tap: int
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

    Pointers: input, packed bias and weights, output, then the operands of the epilogue.

    A work item is a row of tiles over a block of channels.

    Attributes:
        across: geometry along a row of the image.
        down: geometry along a column; None supports windows of any height, one row of output at a time.
        narrow: there are fewer channels than elements of a vector.
        epilogue: chain applied to each element before it is stored.
    """

    optimize = "loops"  # hoisting invariants out of the small tiles saves 10 % of the time of some layers

    across: Axis
    down: Axis | None
    narrow: bool
    epilogue: Chain

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
                row_tile, rest = item % row_tiles, item / row_tiles
                block, image = rest % channel_blocks, rest / channel_blocks
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
        x = pointers.tensor(0, F32)[image * p["x_batch"]]
        return Plane(x, pointers.tensor(1, F32), y, tuple(operands))

    def emit_row(
        self, k: Emitter, p: dict[str, Val], plane: Plane, row: Val, last_row: Val, channels: tuple[Val, Val]
    ) -> None:
        """Emit a row of tiles from output row ``row`` on. Rows from ``last_row`` on are not written."""
        x_row = row * p["row_stride"] - p["top"]
        rows_inside = k.constant(1, DType.BOOL)
        if self.down:
            reach = self.down.input_lines()[-1].offset
            rows_inside = (x_row >= 0) & (x_row + reach < p["x_rows"]) & (row + self.down.tile <= last_row)
        reach = self.across.input_lines()[-1].offset
        with k.loop(0, p["columns"], self.across.tile) as column:
            x_column = column * self.across.stride - p["left"]
            columns_inside = (x_column >= 0) & (x_column + reach < p["x_columns"])
            inside = rows_inside & columns_inside & (column + self.across.tile <= p["columns"])
            tile = _Tile(k, self, p, plane, row, last_row, column, x_row, x_column)
            k.if_else(inside, lambda: tile.emit(channels, guarded=False), lambda: tile.emit(channels, guarded=True))


@dataclass(slots=True)
class _Tile:
    """Emitter of one tile; ``x_row`` and ``x_column`` are the start of its first window in the input."""

    k: Emitter
    kernel: Depthwise
    p: dict[str, Val]
    plane: Plane
    row: Val
    last_row: Val
    column: Val
    x_row: Val
    x_column: Val

    def emit(self, channels: tuple[Val, Val], guarded: bool) -> None:
        """Emit all channels of a range, a vector at a time."""
        k, lanes, rows, columns = self.k, self.k.machine.lanes(), self.kernel.tile_rows, self.kernel.across.tile
        first, last = channels
        with k.loop(first, last, lanes) as c:
            # The last vector overlaps the one before it, so that it needs no mask: some channels are computed twice.
            # NOTE: therefore the output must not reuse the memory of an operand, whose elements are read twice, too.
            channel = c if self.kernel.narrow else k.minimum(c, self.p["channels"] - lanes)
            weights = self.plane.weights[channel]
            bias = weights.load(lanes)
            sums = [[k.variable(bias) for _ in range(columns)] for _ in range(rows)]
            taps = weights[self.p["tap"]]
            if self.kernel.down:
                self._sum_rows(self.kernel.down, channel, taps, sums, guarded)
            else:
                self._sum_window(channel, taps, sums[0], guarded)
            for row in range(rows):
                for column in range(columns):
                    exists = (self.row + row < self.last_row) & (self.column + column < self.p["columns"])
                    with self._only_if(exists, guarded):
                        self._store(row, column, channel, sums[row][column].get())

    def _sum_rows(self, down: Axis, channel: Val, taps: Pointer, sums: list[list[Variable]], guarded: bool) -> None:
        """Process every row of the input under the tile once, for all rows of the tile that need it."""
        step = self.p["tap"] * self.kernel.across.window
        for line in down.input_lines():
            with self._only_if(self._has_row(self.x_row + line.offset), guarded):
                x = self._input(self.x_row + line.offset, channel)
                self._sum_row(x, [(sums[row], taps[step * tap]) for row, tap in line.uses], guarded)

    def _sum_window(self, channel: Val, taps: Pointer, sums: list[Variable], guarded: bool) -> None:
        """Compute a single row of output by a loop over the rows of the window that are inside the image."""
        k, p, step = self.k, self.p, self.p["tap"] * self.kernel.across.window
        dilation = p["row_dilation"]
        first = k.maximum(0, (dilation - 1 - self.x_row) / dilation)
        stop = k.minimum(p["window_rows"], (p["x_rows"] - self.x_row + dilation - 1) / dilation)
        with k.loop(first, stop) as tap:
            x = self._input(self.x_row + tap * dilation, channel)
            self._sum_row(x, [(sums, taps[step * tap])], guarded)

    def _sum_row(self, x: Pointer, uses: Sequence[tuple[list[Variable], Pointer]], guarded: bool) -> None:
        """Multiply one row of the input and add it to rows of the tile; each is given with its row of weights."""
        k, lanes, across = self.k, self.k.machine.lanes(), self.kernel.across
        weights = [[taps[self.p["tap"] * tap].load(lanes) for tap in range(across.window)] for _, taps in uses]
        for line in across.input_lines():
            column = self.x_column + line.offset
            with self._only_if((column >= 0) & (column < self.p["x_columns"]), guarded):
                element = k.load_first(x[self.p["x_pixel"] * line.offset], self._valid, lanes)
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

    def _input(self, row: Val, channel: Val) -> Pointer:
        return self.plane.x[row * self.p["x_row"] + self.x_column * self.p["x_pixel"] + channel]

    def _has_row(self, row: Val) -> Val:
        return (row >= 0) & (row < self.p["x_rows"])

    @property
    def _valid(self) -> Val | None:
        """Number of valid lanes of a vector of channels; None for all."""
        return self.p["channels"] if self.kernel.narrow else None

    def _only_if(self, condition: Val, guarded: bool) -> AbstractContextManager[None]:
        return self.k.if_(condition) if guarded else nullcontext()
