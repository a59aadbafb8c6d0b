"""Shared parts of dense convolutions with padding: their geometry, work items, and the padded copy of the input.

A work item is a band of output rows and a block of output channels. The input rows that the band needs are copied
with their padding into the scratch memory of the thread and stay in its cache; a row of A is a window of the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from lite_cpu.chains import Chain
from lite_cpu.emitter import Emitter, Params, Pointer, Pointers, Val
from lite_cpu.kernels.tiles import BlockTensors, Rows, Window

__all__ = ["BAND_PARAMETERS", "BandEmitter", "BandItem", "BandShape", "cut_bands"]

#: Order of the parameters; then follow the (batch, row, pixel, convolution group) strides of each epilogue operand.
BAND_PARAMETERS = (
    "groups", "height", "width", "out_height", "out_width", "top", "left", "channels", "columns",
    "x_batch", "x_row", "x_pixel", "y_batch", "y_row", "y_pixel",
    "row_stride", "pixel_stride", "row_dilation", "window_rows", "taps", "depth", "a_tap",
    "b_group", "band_width", "band_rows", "column_block",
)  # fmt: skip

AnyBandShape = TypeVar("AnyBandShape", bound="BandShape")


@dataclass(frozen=True, slots=True)
class BandShape:
    """Sizes and strides, in elements; see :data:`BAND_PARAMETERS`. ``channels`` and ``columns`` count one group's.

    A row of the window consists of ``taps`` runs of ``depth`` contiguous elements: one run of all its pixels, or with
    a dilation one run per pixel, at distances of ``a_tap``.
    """

    parameters: ClassVar[tuple[str, ...]] = BAND_PARAMETERS

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
    def band_elements(self) -> int:
        """Elements of the padded copy."""
        rows = (self.band_rows - 1) * self.row_stride + (self.window_rows - 1) * self.row_dilation + 1
        return rows * self.band_width * self.channels

    @property
    def items(self) -> int:
        bands = -(-self.out_height // self.band_rows)
        return self.batch * self.groups * bands * -(-self.columns // self.column_block)

    def params(self, operands: Sequence[tuple[int, int, int, int]]) -> list[int]:
        return [getattr(self, name) for name in self.parameters] + [stride for each in operands for stride in each]


def cut_bands(shape: AnyBandShape, items: int, tallest: int, panel: int) -> AnyBandShape:
    """Divide the work into at least ``items`` work items, or as many as possible.

    Bands of more than ``tallest`` rows are halved first; then the columns are, in multiples of ``panel``.
    """
    while shape.items < items:
        if shape.band_rows > tallest:
            shape = replace(shape, band_rows=-(-shape.band_rows // 2))
        elif shape.column_block > panel:
            shape = replace(shape, column_block=-(-shape.column_block // 2 // panel) * panel)
        else:
            break
    return shape


@dataclass(frozen=True, slots=True)
class BandItem:
    """A work item: image, convolution group, first row and column of the output, number of rows and columns."""

    image: Val
    group: Val
    row: Val
    column: Val
    rows: Val
    columns: Val


@dataclass(frozen=True, slots=True)
class BandEmitter:
    """Emitter of the parts of a kernel that do not depend on the element types.

    Attributes:
        k: the emitter.
        pointers: the kernel's tensors.
        params: the kernel's parameters.
        p: the parameters of the shape, by name.
    """

    k: Emitter
    pointers: Pointers
    params: Params
    p: dict[str, Val]

    def items(
        self, begin: Val, end: Val, copy: Callable[[BandItem], None], multiply: Callable[[BandItem], None]
    ) -> None:
        """Emit the loop over work items: ``copy`` the input of each new band, then ``multiply``."""
        k, p = self.k, self.p
        column_blocks = (p["columns"] + p["column_block"] - 1) / p["column_block"]
        bands = (p["out_height"] + p["band_rows"] - 1) / p["band_rows"]
        copied = k.variable(k.index(-1))
        with k.loop(begin, end) as number:
            band = number / column_blocks
            column = number % column_blocks * p["column_block"]
            columns = k.minimum(p["column_block"], p["columns"] - column)
            row, rest = band % bands * p["band_rows"], band / bands
            group, image = rest % p["groups"], rest / p["groups"]
            rows = k.minimum(p["band_rows"], p["out_height"] - row)
            item = BandItem(image, group, row, column, rows, columns)
            # Consecutive items that differ only in their columns share the copy.
            with k.if_(band.ne(copied.get())):
                copied.set(band)
                copy(item)
            multiply(item)

    def copy(
        self, item: BandItem, target: Pointer, padding: Val, copy_row: Callable[[Val, Pointer, Val], None]
    ) -> None:
        """Copy the input rows of an item and surround them with ``padding``.

        ``copy_row(y, to, pixels)`` copies the first ``pixels`` pixels of input row ``y``; 0 pixels for rows outside
        the image.
        """
        k, p, channels = self.k, self.p, self.p["channels"]
        top = item.row * p["row_stride"] - p["top"]
        last = (item.rows - 1) * p["row_stride"] + (p["window_rows"] - 1) * p["row_dilation"]
        line = p["band_width"] * channels
        before = k.minimum(p["left"], p["band_width"])
        pixels = k.maximum(k.minimum(p["band_width"] - before, p["width"]), 0)
        lanes = k.machine.vector_bytes // target.dtype.itemsize

        def clear(row: Pointer, first: Val, stop: Val) -> None:
            k.span(stop - first, lanes, lambda i, n: row[first + i].store(padding.splat(n)))

        with k.loop(0, last + 1) as r:
            y, row = top + r, target[r * line]
            valid = ((y >= 0) & (y < p["height"])).select(pixels, 0)
            inside = before * channels
            clear(row, k.index(0), inside)
            copy_row(y, row[inside], valid)
            clear(row, inside + valid * channels, line)

    def copy_pixels(
        self, source: Pointer, target: Pointer, pixels: Val, copy_run: Callable[[Pointer, Pointer, Val], None]
    ) -> None:
        """Copy pixels: call ``copy_run(source, target, length)`` once if they are contiguous, else for each pixel."""
        k, p, channels = self.k, self.p, self.p["channels"]
        whole = p["x_pixel"].eq(channels)
        runs, length = whole.select(k.minimum(pixels, 1), pixels), whole.select(pixels * channels, channels)
        with k.loop(0, runs) as run:
            copy_run(source[run * p["x_pixel"]], target[run * channels], length)

    def window(self) -> Window:
        """Return the layout of a row of A in the copy."""
        p = self.p
        line = p["band_width"] * p["channels"]
        return Window(p["window_rows"], p["taps"], p["depth"], line * p["row_dilation"], p["a_tap"])

    def windows(self, copy: Pointer) -> Rows:
        """Return A, with one group of rows for each row of the output."""
        p = self.p
        line = p["band_width"] * p["channels"]
        return Rows(copy, p["pixel_stride"] * p["channels"], p["row_stride"] * line)

    def tensors(self, item: BandItem, a: Rows, epilogue: Chain, output: int) -> BlockTensors:
        """Return the tensors of an item; tensor number ``output`` is C, and the operands of the epilogue follow it."""
        p, pointers = self.p, self.pointers
        operands = []
        for i, operand in enumerate(epilogue.operands):
            by_image, by_row, by_pixel, by_group = (self.params[len(p) + 4 * i + s] for s in range(4))
            offset = item.image * by_image + item.row * by_row + item.group * by_group
            start = pointers.tensor(output + 1 + i, operand.dtype)
            operands.append(
                Rows(start[offset if operand.spread else offset + item.column], by_pixel, by_row, operand.spread)
            )
        offset = item.image * p["y_batch"] + item.row * p["y_row"] + self.first_column(item)
        c = Rows(pointers.tensor(output, epilogue.output)[offset], p["y_pixel"], p["y_row"])
        return BlockTensors(a, c, tuple(operands))

    def first_column(self, item: BandItem) -> Val:
        """Return the first column of an item, counted over all groups."""
        return item.group * self.p["columns"] + item.column
