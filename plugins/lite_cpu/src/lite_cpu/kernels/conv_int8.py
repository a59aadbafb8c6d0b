"""Dense convolution of bytes: bands of output rows as matrix products over a padded copy of their input.

As :mod:`.direct`: the copy of a work item's input rows lies in the scratch memory of the thread, in the element type
that is multiplied, with the zero point around; a row of A is a window of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.chains import Chain
from lite_cpu.emit import Emitter, Params, Pointer, Pointers, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.int8_tiles import Int8BlockEmitter, LeftSide, convert_run
from lite_cpu.kernels.tiles import Place, Rows, Window

__all__ = ["ConvInt8", "ConvInt8Shape"]

#: Positions in the parameters; strides of epilogue operands follow, (batch, row, pixel, convolution group) each.
PARAMETERS = (
    "groups", "height", "width", "out_height", "out_width", "top", "left", "channels", "columns",
    "x_batch", "x_row", "x_pixel", "y_batch", "y_row", "y_pixel",
    "row_stride", "pixel_stride", "row_dilation", "window_rows", "taps", "depth", "a_tap",
    "b_group", "band_width", "band_rows", "column_block",
)  # fmt: skip
_AT = {name: i for i, name in enumerate(PARAMETERS)}

#: A group of the last window may reach this far beyond the copy.
_SLACK_BYTES = 64


@dataclass(frozen=True, slots=True)
class ConvInt8Shape:
    """Sizes and strides, in elements; see :data:`PARAMETERS`. ``channels`` and ``columns`` are those of a group.

    ``taps`` and ``depth`` divide a row of the window: one run of all its pixels, or where a dilation tears
    it apart one run for each pixel, ``a_tap`` apart.
    """

    batch: int
    groups: int
    height: int
    width: int
    out_height: int
    out_width: int
    top: int
    left: int
    channels: int
    columns: int
    x_batch: int
    x_row: int
    x_pixel: int
    y_batch: int
    y_row: int
    y_pixel: int
    row_stride: int
    pixel_stride: int
    row_dilation: int
    pixel_dilation: int
    window_rows: int
    window_pixels: int
    b_group: int
    band_rows: int
    column_block: int

    @property
    def taps(self) -> int:
        return 1 if self.pixel_dilation == 1 else self.window_pixels

    @property
    def depth(self) -> int:
        return self.channels * self.window_pixels // self.taps

    @property
    def a_tap(self) -> int:
        return self.channels * self.pixel_dilation

    @property
    def band_width(self) -> int:
        """Pixels of a row of the padded copy."""
        return (self.out_width - 1) * self.pixel_stride + (self.window_pixels - 1) * self.pixel_dilation + 1

    @property
    def items(self) -> int:
        bands = -(-self.out_height // self.band_rows)
        return self.batch * self.groups * bands * -(-self.columns // self.column_block)

    def scratch_bytes(self, itemsize: int) -> int:
        rows = (self.band_rows - 1) * self.row_stride + (self.window_rows - 1) * self.row_dilation + 1
        return itemsize * rows * self.band_width * self.channels + _SLACK_BYTES

    def params(self, operands: Sequence[tuple[int, int, int, int]]) -> list[int]:
        return [getattr(self, name) for name in PARAMETERS] + [stride for strides in operands for stride in strides]


@dataclass(frozen=True)
class ConvInt8(Kernel):
    """Pointers: input, its zero point, packed weights, the sums of their columns, output, operands of the epilogue."""

    left: LeftSide
    epilogue: Chain

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            p = {name: params[i] for name, i in _AT.items()}
            column_blocks = (p["columns"] + p["column_block"] - 1) / p["column_block"]
            bands = (p["out_height"] + p["band_rows"] - 1) / p["band_rows"]
            band = scratch.cast(self.left.form.left)
            zero = pointers.tensor(1, self.left.stored)
            copied = k.variable(k.index(-1))
            with k.loop(begin, end) as item:
                number = item / column_blocks
                column = item % column_blocks * p["column_block"]
                row, rest = number % bands * p["band_rows"], number / bands
                group, image = rest % p["groups"], rest / p["groups"]
                rows = k.minimum(p["band_rows"], p["out_height"] - row)
                # Neighbouring items differ in their columns only: they share the copy.
                with k.if_(number.ne(copied.get())):
                    copied.set(number)
                    start = pointers.tensor(0, self.left.stored)[image * p["x_batch"] + group * p["channels"]]
                    self._copy_band(k, p, start, band, zero, row * p["row_stride"] - p["top"], rows)
                self._products(k, pointers, params, p, band, (image, group, row, column), rows)

    def _copy_band(
        self, k: Emitter, p: dict[str, Val], image: Pointer, band: Pointer, zero: Pointer, top: Val, rows: Val
    ) -> None:
        """The input rows of ``rows`` rows of output, from input row ``top`` on, with the zero point around."""
        channels, left = p["channels"], self.left
        last = (rows - 1) * p["row_stride"] + (p["window_rows"] - 1) * p["row_dilation"]
        line = p["band_width"] * channels
        before = k.minimum(p["left"], p["band_width"])
        pixels = k.maximum(k.minimum(p["band_width"] - before, p["width"]), 0)
        padding = left.convert(zero.load())
        lanes = k.machine.vector_bytes // left.form.left.itemsize

        def clear(target: Pointer, first: Val, stop: Val) -> None:
            k.span(stop - first, lanes, lambda i, n: target[first + i].store(padding.splat(n)))

        with k.loop(0, last + 1) as r:
            y, target = top + r, band[r * line]
            valid = ((y >= 0) & (y < p["height"])).select(pixels, 0)
            inside = before * channels
            clear(target, k.index(0), inside)
            source = image[y * p["x_row"]]
            whole = p["x_pixel"].eq(channels)
            runs, length = whole.select(k.minimum(valid, 1), valid), whole.select(valid * channels, channels)
            with k.loop(0, runs) as run:
                convert_run(k, left, source[run * p["x_pixel"]], target[inside + run * channels], length)
            clear(target, inside + valid * channels, line)

    def _products(
        self,
        k: Emitter,
        pointers: Pointers,
        params: Params,
        p: dict[str, Val],
        band: Pointer,
        at: tuple[Val, Val, Val, Val],
        rows: Val,
    ) -> None:
        image, group, row, column = at
        form = self.left.form
        line = p["band_width"] * p["channels"]
        window = Window(p["window_rows"], p["taps"], p["depth"], line * p["row_dilation"], p["a_tap"])
        total = p["window_rows"] * p["taps"] * ((p["depth"] + (form.group - 1)) / form.group * form.group)
        first = group * p["columns"] + column
        operands = []
        for i, operand in enumerate(self.epilogue.operands):
            by_image, by_row, by_pixel, by_group = (params[len(PARAMETERS) + 4 * i + s] for s in range(4))
            offset = image * by_image + row * by_row + group * by_group
            start = pointers.tensor(5 + i, operand.dtype)[offset if operand.spread else offset + column]
            operands.append(Rows(start, by_pixel, by_row, operand.spread))
        y = pointers.tensor(4, self.epilogue.output)[image * p["y_batch"] + row * p["y_row"] + first]
        place = Place(
            Rows(band, p["pixel_stride"] * p["channels"], p["row_stride"] * line),
            Rows(y, p["y_pixel"], p["y_row"]),
            tuple(operands),
        )
        nowhere = k.index(0)
        Int8BlockEmitter(k, self.left, self.epilogue, window).block(
            place,
            Rows(pointers.tensor(1, self.left.stored), nowhere, nowhere),
            rows,
            p["out_width"],
            k.minimum(p["column_block"], p["columns"] - column),
            pointers.tensor(2, form.right)[group * p["b_group"] + column * total],
            pointers.tensor(3, DType.INT32)[first],
        )
